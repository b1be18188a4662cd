//! Goodput: requests that met every objective, and whether each objective held over the stage.

use serde::{Deserialize, Serialize};
use ttft_model::{Outcome, Record};

use crate::distribution::Bound;
use crate::slo::{Comparison, Slo, Subject};
use crate::summary::StageSummary;
use crate::window::Flow;
use crate::{interval, stream};

/// How the stage did against the plan's objectives.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Goodput {
    /// Each objective over the stage.
    pub slo: Vec<SloResult>,
    /// Requests started in the window that met every objective on a single request.
    pub good: u64,
    /// Requests started in the window, without those cut off by the end of the run.
    pub of: u64,
    /// `good / of`: failures and missing metrics are misses.
    pub attainment: Option<f64>,
    /// Its 95 % interval (Wilson).
    pub ci95: Option<[f64; 2]>,
    /// Good requests per second, counted like those of the throughput.
    pub requests_per_s: Option<f64>,
}

/// One objective over the stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SloResult {
    /// As it was written.
    pub slo: String,
    /// What was measured, in the objective's unit: milliseconds, a share, or per second. Null for an objective on
    /// single requests, and where nothing was measured.
    pub value: Option<f64>,
    /// The same with failed requests at +inf; it is what a percentile is judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pessimistic: Option<Bound>,
    /// The threshold, in the same unit.
    pub threshold: f64,
    /// Whether it held; null where nothing was measured. An objective on single requests holds when all met it; beside
    /// an objective on `goodput` that one alone says how many must.
    pub met: Option<bool>,
    /// Requests that met it, when it can be asked of a single request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_met: Option<u64>,
}

/// The counts behind [`Goodput`] in one window.
#[derive(Debug, Clone)]
pub(crate) struct GoodFold {
    met: Vec<u64>,
    good: u64,
    of: u64,
    good_share: f64,
}

impl GoodFold {
    pub(crate) fn new(slos: &[Slo]) -> Self {
        Self { met: vec![0; slos.len()], good: 0, of: 0, good_share: 0.0 }
    }

    /// Counts one request that is no warm-up.
    pub(crate) fn push(&mut self, r: &Record, slos: &[Slo], window: &Flow) {
        if r.outcome() == Outcome::Cancelled {
            return;
        }
        let started = window.holds(r.phases.started);
        let mut good = r.outcome() == Outcome::Ok;
        self.of += u64::from(started);
        for (slo, met) in slos.iter().zip(&mut self.met) {
            let Subject::Metric(metric, _) = &slo.subject else { continue };
            let value = (metric.of)(r).filter(|_| r.outcome() == Outcome::Ok);
            let holds = value.is_some_and(|value| slo.comparison.holds(value, slo.threshold));
            *met += u64::from(holds && started);
            good &= holds;
        }
        self.good += u64::from(good && started);
        if good {
            self.good_share += window.share_of(r.phases.started, r.finished);
        }
    }

    /// The figures, given the stage's others and the window's length.
    pub(crate) fn finish(self, slos: &[Slo], stage: &StageSummary, window_s: f64) -> Goodput {
        let of_requests = slos.iter().any(|slo| matches!(slo.subject, Subject::Metric(..)));
        let attainment = stream::share(self.good, self.of).filter(|_| of_requests);
        let result = |(slo, met): (&Slo, &u64)| judge(slo, *met, self.of, attainment, stage);
        let mut results: Vec<SloResult> = slos.iter().zip(&self.met).map(result).collect();
        if slos.iter().any(|slo| matches!(slo.subject, Subject::Goodput)) {
            let single = |slo: &Slo| matches!(slo.subject, Subject::Metric(_, None));
            let of_one = slos.iter().zip(&mut results).filter(|(slo, _)| single(slo));
            of_one.for_each(|(_, result)| result.met = None);
        }
        if !of_requests {
            return Goodput { slo: results, ..Goodput::default() };
        }
        Goodput {
            slo: results,
            good: self.good,
            of: self.of,
            attainment,
            ci95: interval::wilson(self.good, self.of),
            requests_per_s: (window_s > 0.0).then(|| self.good_share / window_s),
        }
    }
}

fn judge(slo: &Slo, met: u64, of: u64, attainment: Option<f64>, stage: &StageSummary) -> SloResult {
    let mut result = SloResult {
        slo: slo.text.clone(),
        value: None,
        pessimistic: None,
        threshold: slo.threshold,
        met: None,
        requests_met: None,
    };
    let statistic = |metric: &str, name: &str| stage.latency_ms.get(metric).and_then(|d| d.get(name));
    match &slo.subject {
        Subject::Metric(metric, Some(of_stage)) => {
            result.requests_met = Some(met);
            result.value = statistic(metric.name, of_stage.0);
            let upper = matches!(slo.comparison, Comparison::Below | Comparison::AtMost);
            let pessimistic = stage.latency_ms.get(metric.name).and_then(|d| d.pessimistic.get(of_stage.0));
            result.pessimistic = pessimistic.filter(|_| upper).copied();
        }
        Subject::Metric(_, None) => {
            result.requests_met = Some(met);
            result.met = (of > 0).then_some(met == of);
            return result;
        }
        Subject::Gaps(metric, of_stage) => result.value = statistic(metric, of_stage.0),
        Subject::ErrorRate => {
            result.value = stream::share(stage.requests.failed, stage.requests.ok + stage.requests.failed);
        }
        Subject::Goodput => result.value = attainment,
        Subject::RequestRate => result.value = stage.throughput.requests_per_s,
        Subject::OutputRate => result.value = stage.throughput.output_tokens_per_s,
    }
    let judged = result.pessimistic.map(|bound| bound.0).or(result.value);
    result.met = judged.map(|value| slo.comparison.holds(value, slo.threshold));
    result
}
