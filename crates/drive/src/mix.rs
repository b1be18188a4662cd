//! What the requests of a stage are of: one workload, or several by their weights.

use std::sync::Arc;

use ttft_wire::Target;

use crate::RequestMaker;

/// One thing that is asked: a workload of a model at an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Number of the endpoint.
    pub lane: usize,
    /// Its path may name the model.
    pub target: Target,
    /// Number of the workload.
    pub workload: u32,
    /// The stage that its requests are told to be of.
    pub stage: u32,
    pub maker: Arc<RequestMaker>,
}

/// The parts of a stage, and how often each is asked.
#[derive(Debug)]
pub(crate) struct Mix {
    parts: Vec<Part>,
    share: Share,
}

#[derive(Debug)]
enum Share {
    /// One after another, so that few requests cover all.
    InTurn,
    /// At random; the sums of the weights so far, the last being 1.
    Weighted { sums: Vec<f64>, seed: u64 },
}

impl Mix {
    /// Each as often as its weight says; which one, the seed and the request's number tell. Never without a part.
    pub(crate) fn weighted(parts: Vec<(Part, f64)>, seed: u64) -> Self {
        let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let sums = parts.iter().map(|(_, weight)| {
            sum += weight / total;
            sum
        });
        let share = Share::Weighted { sums: sums.collect(), seed };
        Self { parts: parts.into_iter().map(|(part, _)| part).collect(), share }
    }

    /// One after another. Never without a part.
    pub(crate) fn in_turn(parts: Vec<Part>) -> Self {
        Self { parts, share: Share::InTurn }
    }

    /// All of them.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What request number `number` is of.
    pub(crate) fn of(&self, number: u64) -> &Part {
        let at = match &self.share {
            Share::InTurn => number as usize % self.parts.len(),
            Share::Weighted { sums, seed } => {
                let at = uniform(*seed, number);
                sums.partition_point(|sum| *sum <= at).min(self.parts.len() - 1)
            }
        };
        &self.parts[at]
    }
}

/// A number of `0..1` for each seed and number (the finaliser of `SplitMix64`).
fn uniform(seed: u64, number: u64) -> f64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly_and_repeat() {
        let n = 100_000u64;
        let below =
            |limit: f64| (0..n).filter(|number| uniform(3, *number) < limit).count() as f64 / n as f64;
        for limit in [0.1, 0.5, 0.9] {
            assert!((below(limit) - limit).abs() < 0.01, "{limit}: {}", below(limit));
        }
        assert_eq!(uniform(3, 5).to_bits(), uniform(3, 5).to_bits());
        assert_ne!(uniform(3, 5).to_bits(), uniform(4, 5).to_bits());
    }
}
