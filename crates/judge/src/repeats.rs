//! Levels that were played several times: how far their figures lie apart.

use serde::{Deserialize, Serialize};

use crate::StageSummary;
use crate::quantile::of_sorted;

/// One level with all its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The level's name.
    pub name: String,
    /// How often it was played.
    pub n: usize,
    /// Median TTFT in milliseconds.
    pub ttft_p50_ms: Option<Between>,
    /// 95th percentile of TTFT in milliseconds.
    pub ttft_p95_ms: Option<Between>,
    /// Median TPOT in milliseconds.
    pub tpot_p50_ms: Option<Between>,
    /// Ok requests per second.
    pub requests_per_s: Option<Between>,
    /// Output tokens per second.
    pub output_tokens_per_s: Option<Between>,
}

/// One figure over the repetitions that have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

impl Between {
    fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.flatten().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { min, median: of_sorted(&sorted, 0.5)?, max })
    }
}

/// The levels that were played more than once, in the order of their first stage.
pub(crate) fn find(stages: &[StageSummary]) -> Vec<Repeats> {
    let mut levels: Vec<Vec<&StageSummary>> = Vec::new();
    for stage in stages {
        match levels.iter_mut().find(|level| is_same(level[0], stage)) {
            Some(level) => level.push(stage),
            None => levels.push(vec![stage]),
        }
    }
    levels.iter().filter(|level| level.len() > 1).map(|level| repeats(level)).collect()
}

fn is_same(a: &StageSummary, b: &StageSummary) -> bool {
    (&a.load, &a.workload, &a.endpoint, &a.model) == (&b.load, &b.workload, &b.endpoint, &b.model)
}

fn repeats(level: &[&StageSummary]) -> Repeats {
    let figure = |of: &dyn Fn(&StageSummary) -> Option<f64>| Between::of(level.iter().map(|stage| of(stage)));
    let name = &level[0].name;
    let base = name.rsplit_once(" #").filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
    Repeats {
        name: base.map_or(name.as_str(), |(base, _)| base).to_owned(),
        n: level.len(),
        ttft_p50_ms: figure(&|stage| stage.latency_ms.get("ttft")?.p50),
        ttft_p95_ms: figure(&|stage| stage.latency_ms.get("ttft")?.p95),
        tpot_p50_ms: figure(&|stage| stage.latency_ms.get("tpot")?.p50),
        requests_per_s: figure(&|stage| stage.throughput.requests_per_s),
        output_tokens_per_s: figure(&|stage| stage.throughput.output_tokens_per_s),
    }
}
