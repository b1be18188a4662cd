//! Stages put together into sweeps of levels.

use rand::RngExt;
use rand::rngs::StdRng;
use rand_distr::{Beta, Distribution as _, Normal};
use ttft_model::{Arrival, Load};

use super::Axis;
use crate::reconcile::Ours;
use crate::samples::Sorted;
use crate::series::{Point, design_effect, moments, ranks};
use crate::{Samples, StageSummary, Verdict, WindowChoice};

/// What a stage keeps for the search, beside its summary.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    /// TTFT of the ok requests in its window.
    pub(crate) ttft: Samples,
    /// The same requests in the order of their starts, thinned if very many.
    pub(crate) points: Vec<Point>,
    /// What reconciliation and diagnosis rest on.
    pub(crate) ours: Ours,
}

/// Levels of one workload and model.
pub(super) struct Sweep<'a> {
    pub(super) name: String,
    pub(super) axis: Axis,
    /// In ascending order.
    pub(super) levels: Vec<Level<'a>>,
}

/// One level, all its repetitions together.
pub(super) struct Level<'a> {
    /// Users, or requests a second asked for.
    pub(super) load: f64,
    /// The first repetition.
    pub(super) stage: &'a StageSummary,
    /// Requests with a TTFT.
    pub(super) n: u64,
    /// Requests a second, the mean of the repetitions.
    pub(super) rate: f64,
    /// Standard error of that, relative.
    pub(super) rate_error: f64,
    /// Its rates are of a steady window, in every repetition: ramp and tail would lower them.
    pub(super) steady: bool,
    /// How far the client can be trusted there: the worst of the repetitions.
    pub(super) trust: Verdict,
    /// Why no further.
    pub(super) trouble: Option<String>,
    ttft: Sorted,
    /// Independent requests that are worth as much as all.
    worth: f64,
}

/// What must be equal in a sweep.
#[derive(PartialEq)]
struct Key<'a> {
    axis: Axis,
    workload: &'a str,
    endpoint: Option<&'a str>,
    model: Option<&'a str>,
    arrival: Option<Arrival>,
}

fn place(stage: &StageSummary) -> Option<(Key<'_>, f64)> {
    let (axis, arrival, level) = match &stage.load {
        Load::Closed { concurrency, .. } => (Axis::Concurrency, None, f64::from(*concurrency)),
        Load::Open { rate, arrival, rate_to: None, .. } => (Axis::Rate, Some(*arrival), *rate),
        Load::Open { .. } | Load::Trace { .. } => return None,
    };
    let (endpoint, model) = (stage.endpoint.as_deref(), stage.model.as_deref());
    Some((Key { axis, workload: &stage.workload, endpoint, model, arrival }, level))
}

pub(super) fn sweeps<'a>(stages: &'a [StageSummary], evidence: &[Evidence]) -> Vec<Sweep<'a>> {
    type Repetitions<'s, 'e> = Vec<(&'s StageSummary, &'e Evidence)>;
    let mut groups: Vec<(Key<'a>, Vec<(f64, Repetitions<'a, '_>)>)> = Vec::new();
    for (stage, evidence) in stages.iter().zip(evidence) {
        let Some((key, level)) = place(stage) else { continue };
        let at = groups.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        let levels = &mut groups[at].1;
        match levels.iter_mut().find(|(known, _)| known.to_bits() == level.to_bits()) {
            Some((_, repetitions)) => repetitions.push((stage, evidence)),
            None => levels.push((level, vec![(stage, evidence)])),
        }
    }
    let sweep = |(key, mut levels): (Key<'a>, Vec<(f64, Repetitions<'a, '_>)>)| {
        levels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut name = format!("{} over {}", key.workload, key.axis.name());
        if let Some(model) = key.model {
            name = format!("{model}, {name}");
        }
        if let Some(endpoint) = key.endpoint {
            name = format!("{endpoint}, {name}");
        }
        let levels = levels.into_iter().filter_map(|(level, of)| Level::new(level, &of)).collect();
        Sweep { name, axis: key.axis, levels }
    };
    groups.into_iter().map(sweep).collect()
}

impl<'a> Level<'a> {
    fn new(load: f64, repetitions: &[(&'a StageSummary, &Evidence)]) -> Option<Self> {
        let stage = repetitions.first()?.0;
        let mut ttft = Samples::default();
        let (mut rates, mut errors, mut worth) = (Vec::new(), Vec::new(), 0.0);
        for (stage, evidence) in repetitions {
            ttft.merge(&evidence.ttft);
            rates.extend(stage.throughput.requests_per_s);
            errors.push(rate_error(stage, &evidence.points));
            let values: Vec<f64> = evidence.points.iter().map(|p| p.ttft_ms).collect();
            worth += evidence.ttft.len() as f64 / design_effect(ranks(&values).into_iter());
        }
        let repeated = repetitions.len() as f64;
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        // Each repetition's own error, or the spread between them where that is larger.
        let own = errors.iter().map(|e| e * e).sum::<f64>().sqrt() / repeated;
        let between = moments(rates.iter().copied())
            .filter(|_| mean > 0.0)
            .map_or(0.0, |(_, variance)| (variance / repeated).sqrt() / mean);
        let worst = repetitions.iter().map(|(s, _)| &s.client).max_by_key(|client| client.verdict)?;
        let trouble = worst.reasons.first().and_then(|why| why.split(';').next()).map(str::to_owned);
        Some(Self {
            load,
            stage,
            n: ttft.len(),
            rate: mean,
            rate_error: own.max(between),
            steady: repetitions.iter().all(|(stage, _)| stage.window == WindowChoice::Steady),
            trust: worst.verdict,
            trouble,
            ttft: ttft.sorted(),
            worth: worth.max(1.0),
        })
    }

    /// The `p`-quantile of TTFT.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        crate::quantile::of_nth(self.n, p, |k| self.ttft.nth(k)).unwrap_or(f64::NAN)
    }

    /// Median and 99th percentile of a bootstrap replicate of TTFT.
    ///
    /// The k-th smallest of n draws with replacement is the sample's quantile at a beta-distributed place, so a
    /// replicate needs two random numbers and not n (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993,
    /// 5.2 on the exact distribution of order statistics). n is what the requests are worth as independent ones.
    pub(super) fn draw_ttft(&self, random: &mut StdRng) -> (f64, f64) {
        let n = self.worth;
        let (middle, high) = (0.5 * (n + 1.0), 0.99 * (n + 1.0));
        let beta = |a: f64, b: f64, random: &mut StdRng| {
            Beta::new(a.max(1e-3), b.max(1e-3)).map_or(0.5, |beta| beta.sample(random))
        };
        let median = beta(middle, n + 1.0 - middle, random);
        let rest = beta(high - middle, n + 1.0 - high, random);
        let at = |u: f64| self.ttft.nth(((u * self.n as f64) as u64).min(self.n.saturating_sub(1)));
        (at(median), at(median + (1.0 - median) * rest))
    }

    /// Requests a second of a replicate.
    pub(super) fn draw_rate(&self, random: &mut StdRng) -> f64 {
        match Normal::new(0.0, self.rate_error) {
            Ok(error) => (self.rate * (1.0 + error.sample(random))).max(0.0),
            Err(_) => self.rate * random.random::<f64>(),
        }
    }
}

/// Relative standard error of requests a second. A closed loop's is that of its mean time in flight, since by Little's
/// law the one is users over the other; an open loop's that of the number of its arrivals, unless they are constant.
fn rate_error(stage: &StageSummary, points: &[Point]) -> f64 {
    let effect = design_effect(points.iter().map(|p| p.total_ms));
    let n = stage.latency_ms.get("ttft").map_or(0, |of| of.n).max(1) as f64;
    let of_time = moments(points.iter().map(|p| p.total_ms))
        .filter(|(mean, _)| *mean > 0.0)
        .map_or(1.0, |(mean, variance)| variance.sqrt() / mean);
    let of_arrivals = match &stage.load {
        Load::Open { arrival: Arrival::Constant, .. } | Load::Closed { .. } => 0.0,
        Load::Open { arrival: Arrival::Gamma(shape), .. } => 1.0 / shape.max(0.01).sqrt(),
        _ => 1.0,
    };
    (of_time.max(of_arrivals) * (effect / n).sqrt()).max(1e-4)
}
