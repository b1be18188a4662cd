//! The few figures that stand for many samples.

use serde::Serialize;
use ttft_judge::quantile::of_sorted;

/// Percentiles (type 7) of samples in nanoseconds, given in microseconds. All are null when there are no samples.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Spread {
    /// Number of samples.
    pub(crate) n: usize,
    /// The smallest, with its sign.
    pub(crate) min: Option<f64>,
    /// The median, with its sign.
    pub(crate) p50: Option<f64>,
    /// 95th percentile of the magnitude.
    pub(crate) p95: Option<f64>,
    /// 99th percentile of the magnitude.
    pub(crate) p99: Option<f64>,
    /// The largest magnitude.
    pub(crate) max: Option<f64>,
}

impl Spread {
    /// Of errors: an error below zero counts by its size.
    pub(crate) fn of(samples: impl IntoIterator<Item = i64>) -> Self {
        let mut signed: Vec<f64> = samples.into_iter().map(|ns| ns as f64 / 1e3).collect();
        signed.sort_by(f64::total_cmp);
        let mut size: Vec<f64> = signed.iter().map(|us| us.abs()).collect();
        size.sort_by(f64::total_cmp);
        Self {
            n: signed.len(),
            min: signed.first().copied(),
            p50: of_sorted(&signed, 0.5),
            p95: of_sorted(&size, 0.95),
            p99: of_sorted(&size, 0.99),
            max: size.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_above_the_median_and_signs_below() {
        let spread = Spread::of([-5_000, 1_000, 2_000]);
        assert_eq!((spread.min, spread.p50, spread.max), (Some(-5.0), Some(1.0), Some(5.0)));
        assert_eq!(Spread::of([]).p50, None);
    }
}
