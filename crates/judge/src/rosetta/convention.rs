//! How tools take a percentile of a sample.

use serde::{Deserialize, Serialize};

use crate::quantile;

/// A rule for the percentile of `n` samples in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convention {
    /// Between the neighbours of index (n − 1)·p, from 0: Hyndman–Fan type 7, `NumPy`'s default, and ours.
    #[default]
    Linear,
    /// The sample of rank ⌈n·p⌉, from 1.
    NearestRank,
    /// The smallest sample at which the share of samples up to it reaches p: the same sample as nearest rank.
    InverseCdf,
    /// The sample of index ⌊n·p⌋, from 0.
    Floor,
    /// Between the neighbours of rank (n + 1)·p, and beyond the last one by extrapolation: Python's
    /// `statistics.quantiles`, whose tails can lie outside the sample.
    Exclusive,
}

impl Convention {
    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::NearestRank => "nearest rank",
            Self::InverseCdf => "inverse CDF",
            Self::Floor => "floor index",
            Self::Exclusive => "exclusive",
        }
    }

    /// Percentile `percent` of `n` samples of which `nth(k)` gives the `k`-th smallest, from 0; `None` of none.
    ///
    /// Whole percents, so that n·p is exact: 0.99 × 100 must be 99.
    pub fn of_nth(self, n: u64, percent: u64, nth: impl Fn(u64) -> f64) -> Option<f64> {
        let last = n.checked_sub(1)?;
        let scaled = u128::from(n) * u128::from(percent);
        let whole = (scaled / 100) as u64;
        Some(match self {
            Self::Linear => return quantile::of_nth(n, percent as f64 / 100.0, nth),
            Self::NearestRank | Self::InverseCdf => nth((scaled.div_ceil(100) as u64).saturating_sub(1)),
            Self::Floor => nth(whole.min(last)),
            Self::Exclusive if n == 1 => nth(0),
            Self::Exclusive => {
                let at = u128::from(n + 1) * u128::from(percent);
                let below = ((at / 100) as u64).clamp(1, last);
                let share = (at as f64 - 100.0 * below as f64) / 100.0;
                nth(below - 1) * (1.0 - share) + nth(below) * share
            }
        })
    }
}
