//! How the requests of a trace arrived.

use serde::Serialize;

/// How requests arrived.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arrivals {
    /// From the first to the last.
    pub span_ms: f64,
    /// Requests a second: (n − 1) / span; null without a span.
    pub mean_rate_per_s: Option<f64>,
    /// Standard deviation of the gaps over their mean: 0 is a clock, 1 Poisson, more is burstier.
    pub gap_cv: Option<f64>,
    /// Different instants.
    pub distinct_timestamps: u64,
    /// Share of requests that arrived at the same instant as another.
    pub equal_timestamps_share: f64,
    /// Most requests at one instant.
    pub max_burst: u64,
    /// The longest time without an arrival.
    pub largest_gap_ms: f64,
    /// Whether the file is in order of arrival.
    pub sorted: bool,
}

impl Arrivals {
    /// Of instants in ascending order, in nanoseconds.
    pub(super) fn of(at: &[i64]) -> Self {
        let bursts: Vec<u64> = at.chunk_by(|a, b| a == b).map(|burst| burst.len() as u64).collect();
        let gaps: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let span_ms = at.last().zip(at.first()).map_or(0.0, |(last, first)| (last - first) as f64 / 1e6);
        let together: u64 = bursts.iter().filter(|burst| **burst > 1).sum();
        Self {
            span_ms,
            mean_rate_per_s: (span_ms > 0.0).then(|| gaps.len() as f64 * 1e3 / span_ms),
            gap_cv: cv(&gaps),
            distinct_timestamps: bursts.len() as u64,
            equal_timestamps_share: together as f64 / at.len().max(1) as f64,
            max_burst: bursts.iter().copied().max().unwrap_or(0),
            largest_gap_ms: gaps.iter().copied().fold(0.0, f64::max),
            sorted: true,
        }
    }
}

/// Standard deviation over mean, with n − 1; `None` of fewer than two gaps or of gaps that are all zero.
fn cv(gaps: &[f64]) -> Option<f64> {
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (gaps.len() > 1 && mean > 0.0).then(|| variance.sqrt() / mean)
}
