//! When the requests of an open loop are due: offsets from the stage's start, for ever.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Exp1, Gamma};
use ttft_model::{Arrival, Nanos};

/// An endless, seeded sequence of arrival offsets. The same seed gives the same sequence.
#[derive(Debug)]
pub struct Arrivals {
    /// Mean gap in nanoseconds.
    gap: f64,
    at: f64,
    kind: Kind,
    random: StdRng,
}

#[derive(Debug)]
enum Kind {
    Constant,
    Poisson,
    Gamma(Gamma<f64>),
}

impl Arrivals {
    /// Arrivals at `rate` a second. A shape that is no positive number falls back to Poisson; plans are checked
    /// before.
    pub fn new(rate: f64, arrival: Arrival, seed: u64) -> Self {
        let kind = match arrival {
            Arrival::Constant => Kind::Constant,
            Arrival::Poisson => Kind::Poisson,
            // Mean 1 whatever the shape.
            Arrival::Gamma(shape) => Gamma::new(shape, 1.0 / shape).map_or(Kind::Poisson, Kind::Gamma),
        };
        Self { gap: 1e9 / rate, at: 0.0, kind, random: StdRng::seed_from_u64(seed) }
    }
}

impl Iterator for Arrivals {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let due = self.at;
        let gap = match &self.kind {
            Kind::Constant => 1.0,
            Kind::Poisson => Exp1.sample(&mut self.random),
            Kind::Gamma(gamma) => gamma.sample(&mut self.random),
        };
        self.at += self.gap * gap;
        Some(Nanos(due as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(arrival: Arrival) -> Vec<f64> {
        let due: Vec<f64> =
            Arrivals::new(1_000.0, arrival, 42).take(20_001).map(Nanos::as_millis_f64).collect();
        due.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Mean and coefficient of variation of the gaps, in ms at 1,000/s.
    fn shape(arrival: Arrival) -> (f64, f64) {
        let gaps = gaps(arrival);
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn each_kind_has_its_mean_and_spread() {
        for (arrival, spread) in [
            (Arrival::Constant, 0.0),
            (Arrival::Poisson, 1.0),
            (Arrival::Gamma(4.0), 0.5),
            (Arrival::Gamma(0.25), 2.0),
        ] {
            let (mean, cv) = shape(arrival);
            assert!((mean - 1.0).abs() < 0.06 && (cv - spread).abs() < 0.08, "{arrival:?}: {mean} {cv}");
        }
    }

    #[test]
    fn poisson_gaps_pass_a_kolmogorov_smirnov_test() {
        let mut gaps = gaps(Arrival::Poisson);
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| {
                let cdf = 1.0 - (-gap).exp();
                (cdf - i as f64 / n).abs().max((cdf - (i + 1) as f64 / n).abs())
            })
            .fold(0.0, f64::max);
        // Critical value at the 1 % level.
        assert!(distance < 1.63 / n.sqrt(), "{distance}");
    }

    #[test]
    fn the_first_is_due_at_once_and_a_seed_repeats() {
        let take = |seed| Arrivals::new(10.0, Arrival::Poisson, seed).take(5).collect::<Vec<_>>();
        assert_eq!(take(1)[0], Nanos::ZERO);
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }
}
