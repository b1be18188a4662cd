//! Records in, one stage's summary out, without keeping a record.

use std::collections::BTreeMap;

use ttft_model::{ErrorClass, Nanos, Outcome, Plan, Record, Run, Share, Stage, StageWindow, Workload};

use crate::arrivals::ArrivalFold;
use crate::client::{ClientFold, Context};
use crate::decompose::Decomposition;
use crate::experience::Deadlines;
use crate::goodput::GoodFold;
use crate::knee::Evidence;
use crate::metrics::METRICS;
use crate::reconcile::{Ours, Reconcile};
use crate::server::{Server, SourceStage, View};
use crate::summary::{
    FailureGroup, PartSummary, Requests, StageSummary, Summary, Throughput, WindowChoice, Windows,
};
use crate::turns::TurnsFold;
use crate::window::Flow;
use crate::{Error, Slo, contamination, diagnose, knee, reconcile, repeats};

mod latencies;

use self::latencies::{Failures, Latencies};

/// Metrics that the window `whole` shows beside the steady ones.
const BESIDE: [&str; 3] = ["ttft", "tpot", "e2e"];

/// Folds the records of a whole run, in any order, into its summary.
#[derive(Debug)]
pub struct RunFold<'a> {
    run: &'a Run,
    stages: Vec<StageFold<'a>>,
}

impl<'a> RunFold<'a> {
    /// One fold for each stage that was begun. Fails if an objective of the plan cannot be understood.
    pub fn new(run: &'a Run) -> Result<Self, Error> {
        let stages = run.stages.iter().filter_map(|window| StageFold::new(&run.plan, window).transpose());
        Ok(Self { run, stages: stages.collect::<Result<_, _>>()? })
    }

    /// Counts one record; one of a stage that the run does not know is passed over.
    pub fn push(&mut self, record: &Record) {
        if let Some(stage) = self.stages.iter_mut().find(|s| s.window.stage == record.stage) {
            stage.push(record);
        }
    }

    /// The summary, with what the server's own pages told of each stage; none if nothing was scraped.
    pub fn finish(self, sources: &[SourceStage]) -> Summary {
        let numbers: Vec<u32> = self.stages.iter().map(|stage| stage.window.stage).collect();
        let (mut stages, evidence): (Vec<_>, Vec<_>) =
            self.stages.into_iter().map(StageFold::finish_with_evidence).unzip();
        let of = |number: u32| sources.iter().filter(move |source| source.stage == number);
        let views: Vec<View> = numbers.iter().map(|number| View::of(of(*number))).collect();
        for (i, stage) in stages.iter_mut().enumerate() {
            let (ours, view) = (&evidence[i].ours, &views[i]);
            stage.server = Server::of(of(numbers[i]));
            stage.reconcile = reconcile::put_together(ours, view);
            stage.decomposition = Decomposition::of(ours, stage.requests.sent, view, &stage.reconcile);
        }
        reconcile::judge(&mut stages, &evidence, &views);
        let mut summary = Summary::new(self.run, stages);
        summary.repeats = repeats::find(&summary.stages);
        summary.knee = knee::find(&summary.stages, &evidence);
        let (stages, governor) = (&summary.stages, self.run.governor.as_deref());
        summary.contamination = contamination::find(stages, &evidence, &views, governor);
        summary.diagnosis = diagnose::find(stages, &evidence, &views, &summary.contamination);
        summary
    }
}

/// Folds the records of one stage, in any order. Memory grows by a few numbers a request up to a limit, and not
/// beyond it.
#[derive(Debug)]
pub struct StageFold<'a> {
    plan: &'a Plan,
    stage: &'a Stage,
    /// The first workload, and its number.
    number: u32,
    workload: &'a Workload,
    window: &'a StageWindow,
    slos: Vec<Slo>,
    deadlines: Deadlines,
    last: Nanos,
    warmup: u64,
    outcomes: BTreeMap<Outcome, u64>,
    failures: BTreeMap<ErrorClass, Failures>,
    steady: Flow,
    whole: Flow,
    good_steady: GoodFold,
    good_whole: GoodFold,
    /// Of ok requests that started in the steady window, and of all others.
    inside: Latencies,
    outside: Latencies,
    client: ClientFold,
    arrivals: ArrivalFold,
    ours: Ours,
    turns: TurnsFold,
    /// Where several workloads are mixed: each by itself.
    parts: Vec<StageFold<'a>>,
}

impl<'a> StageFold<'a> {
    /// A fold for the stage of that window; `None` if the plan has no such stage or workload. Fails if an objective
    /// of the plan cannot be understood.
    pub fn new(plan: &'a Plan, window: &'a StageWindow) -> Result<Option<Self>, Error> {
        let slos = plan.slo.iter().map(|text| text.parse()).collect::<Result<Vec<Slo>, Error>>()?;
        let Some(stage) = plan.stages.get(window.stage as usize) else { return Ok(None) };
        let workloads: Option<Vec<_>> =
            stage.mix.iter().map(|share| plan.workload(&share.workload)).collect();
        let Some(workloads) = workloads else { return Ok(None) };
        let of = |(number, workload)| Self::of(plan, stage, number, workload, window, slos.clone());
        let Some(mut fold) = workloads.first().copied().map(of) else { return Ok(None) };
        if workloads.len() > 1 {
            fold.parts = workloads.into_iter().map(of).collect();
        }
        Ok(Some(fold))
    }

    /// A fold without parts.
    fn of(
        plan: &'a Plan,
        stage: &'a Stage,
        number: u32,
        workload: &'a Workload,
        window: &'a StageWindow,
        slos: Vec<Slo>,
    ) -> Self {
        Self {
            plan,
            stage,
            number,
            workload,
            window,
            last: window.start,
            warmup: 0,
            outcomes: BTreeMap::new(),
            failures: BTreeMap::new(),
            steady: Flow::new(window.reached, window.dry),
            whole: Flow::new(window.start, window.end),
            good_steady: GoodFold::new(&slos),
            good_whole: GoodFold::new(&slos),
            inside: Latencies::default(),
            outside: Latencies::default(),
            client: ClientFold::default(),
            arrivals: ArrivalFold::default(),
            ours: Ours::default(),
            turns: TurnsFold::default(),
            deadlines: Deadlines::of(&slos),
            slos,
            parts: Vec::new(),
        }
    }

    /// Counts one record.
    pub fn push(&mut self, r: &Record) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.number == r.workload) {
            part.push(r);
        }
        if r.warmup {
            self.warmup += 1;
            return;
        }
        let inside = self.steady.holds(r.phases.started);
        self.last = self.last.max(r.finished);
        *self.outcomes.entry(r.outcome()).or_default() += 1;
        self.steady.push(r);
        self.whole.push(r);
        self.good_steady.push(r, &self.slos, &self.steady);
        self.good_whole.push(r, &self.slos, &self.whole);
        self.client.push(r, inside);
        self.arrivals.push(&self.stage.load, r);
        self.ours.push(r);
        self.turns.push(r);
        if let Some(failure) = r.failure().filter(|_| r.outcome().is_failure()) {
            self.failures.entry(failure.class).or_default().push(r.status, &failure.message);
        }
        let latencies = if inside { &mut self.inside } else { &mut self.outside };
        match r.outcome() {
            Outcome::Ok => latencies.push(r, &self.deadlines),
            Outcome::Cancelled => {}
            _ => latencies.failed += 1,
        }
    }

    /// The stage's summary.
    pub fn finish(self) -> StageSummary {
        self.finish_with_evidence().0
    }

    /// The stage's summary, and what a look at several stages needs beside it.
    pub(crate) fn finish_with_evidence(self) -> (StageSummary, Evidence) {
        let chosen = self.choose();
        self.finish_in(chosen)
    }

    fn finish_in(mut self, chosen: (WindowChoice, Option<&'static str>)) -> (StageSummary, Evidence) {
        let (window, reason) = chosen;
        let parts = std::mem::take(&mut self.parts);
        let parts: Vec<StageSummary> = parts.into_iter().map(|part| part.finish_in(chosen).0).collect();
        let start = self.window.start;
        let mut windows = Windows {
            steady: self.steady.figures(start, self.last),
            whole: self.whole.figures(start, self.last),
        };
        let requests = self.requests();
        windows.whole.latency_ms = self.outside.only_with(&self.inside, &BESIDE);
        let (mut latencies, figures, good) = match window {
            WindowChoice::Steady => (self.inside, &windows.steady, self.good_steady),
            WindowChoice::Whole => {
                let mut whole = self.outside;
                whole.merge(&self.inside);
                (whole, &windows.whole, self.good_whole)
            }
        };
        let latency_ms = latencies.all();
        let experience = latencies.experience.finish(&self.deadlines);
        let ttft = METRICS.iter().position(|metric| metric.name == "ttft");
        let ttft = ttft.and_then(|at| latencies.metrics.get(at)).cloned().unwrap_or_default();
        let evidence =
            Evidence { ttft, points: std::mem::take(&mut latencies.series).finish(), ours: self.ours };
        let median = |metric: &str| latency_ms.get(metric).and_then(|d| d.p50);
        let throughput = Throughput {
            requests_per_s: figures.requests_per_s,
            output_tokens_per_s: figures.output_tokens_per_s,
            input_tokens_per_s: figures.input_tokens_per_s,
            output_tokens_per_s_per_user: median("tpot").filter(|ms| *ms > 0.0).map(|ms| 1000.0 / ms),
        };
        let tokens = latencies.tokens();
        let stream = latencies.stream.finish();
        let client = self.client.finish(&Context {
            load: &self.stage.load,
            window: self.window,
            length_s: windows.whole.duration_s,
            steady_s: windows.steady.duration_s,
            ttft_p50: median("ttft"),
            itl_p50: median("itl"),
            stream: &stream,
        });
        let window_s = figures.duration_s;
        let mut summary = StageSummary {
            name: self.stage.name.clone(),
            load: self.stage.load.clone(),
            workload: match &parts[..] {
                [] => self.workload.name.clone(),
                several => several.iter().map(|part| part.workload.as_str()).collect::<Vec<_>>().join("+"),
            },
            cache: self.workload.cache,
            max_tokens: parts.iter().map(|part| part.max_tokens).max().unwrap_or(self.workload.max_tokens),
            endpoint: (self.plan.endpoints.len() > 1).then(|| self.plan.endpoint_of(self.stage).name.clone()),
            model: self.plan.model_of(self.stage).map(str::to_owned),
            requests,
            window,
            window_reason: reason.map(str::to_owned),
            ended_early: self.window.ended_early.clone(),
            parts: Vec::new(),
            latency_ms,
            throughput,
            tokens,
            goodput: crate::Goodput::default(),
            sessions: self.turns.finish(),
            experience,
            stream,
            arrivals: self.arrivals.finish(&self.stage.load),
            client,
            server: Server::default(),
            reconcile: Reconcile::default(),
            decomposition: Decomposition::default(),
            windows,
        };
        summary.goodput = good.finish(&self.slos, &summary, window_s);
        let weights: f64 = self.stage.mix.iter().map(|share| share.weight).sum();
        let sent = summary.requests.sent;
        let part =
            |(share, part): (&Share, StageSummary)| PartSummary::new(part, share.weight / weights, sent);
        summary.parts = self.stage.mix.iter().zip(parts).map(part).collect();
        (summary, evidence)
    }

    /// The steady window, unless too little happened in it.
    fn choose(&self) -> (WindowChoice, Option<&'static str>) {
        let users = match self.stage.load {
            ttft_model::Load::Closed { concurrency, .. } => u64::from(concurrency),
            ttft_model::Load::Open { .. } | ttft_model::Load::Trace { .. } => 1,
        };
        let is_changing = matches!(self.stage.load, ttft_model::Load::Open { rate_to: Some(_), .. });
        let reason = if is_changing {
            "its rate changes all the time: there is no steady state"
        } else if self.window.dry.is_some_and(|dry| dry <= self.window.reached) {
            "the asked load was never held: there is no steady window"
        } else if self.steady.ok() == 0 || self.inside.requests == 0 {
            "no request started and ended well in the steady window"
        } else if self.steady.ended() < users {
            "the steady window ended before each user had finished one request"
        } else {
            return (WindowChoice::Steady, None);
        };
        (WindowChoice::Whole, Some(reason))
    }

    fn requests(&self) -> Requests {
        let of = |wanted: fn(Outcome) -> bool| {
            self.outcomes.iter().filter(|(outcome, _)| wanted(**outcome)).map(|(_, n)| n).sum()
        };
        let mut failures: Vec<FailureGroup> =
            self.failures.iter().map(|(class, group)| group.finish(*class)).collect();
        failures.sort_by_key(|group| std::cmp::Reverse(group.n));
        Requests {
            sent: of(|_| true),
            ok: of(|outcome| outcome == Outcome::Ok),
            failed: of(Outcome::is_failure),
            unsent: self.window.unsent,
            warmup: self.warmup,
            outcomes: self.outcomes.iter().map(|(outcome, n)| (outcome.name().to_owned(), *n)).collect(),
            errors: self.failures.iter().map(|(class, group)| (class.name().to_owned(), group.n)).collect(),
            failures,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
