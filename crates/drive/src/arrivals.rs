//! When the requests of an open loop are due: offsets from the stage's start, for ever.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Exp1, Gamma};
use ttft_model::{Arrival, Nanos};

use crate::Rate;

/// A seeded sequence of arrival offsets, endless unless the rate falls to nothing. The same seed gives the same sequence.
///
/// Where the rate changes, the process is one of rate 1 in a time that runs as fast as arrivals are expected (the time
/// rescaling theorem): with exponential gaps that is exactly the inhomogeneous Poisson process, without thinning; gamma
/// and constant gaps keep their shape in that time.
#[derive(Debug)]
pub struct Arrivals {
    rate: Rate,
    /// Arrivals expected before the next one.
    expected: f64,
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
    /// Arrivals at this rate. A shape that is no positive number falls back to Poisson; plans are checked
    /// before.
    pub fn new(rate: Rate, arrival: Arrival, seed: u64) -> Self {
        let kind = match arrival {
            Arrival::Constant => Kind::Constant,
            Arrival::Poisson => Kind::Poisson,
            // Mean 1 whatever the shape.
            Arrival::Gamma(shape) => Gamma::new(shape, 1.0 / shape).map_or(Kind::Poisson, Kind::Gamma),
        };
        Self { rate, expected: 0.0, kind, random: StdRng::seed_from_u64(seed) }
    }
}

impl Iterator for Arrivals {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let due = self.rate.when(self.expected)?;
        let gap = match &self.kind {
            Kind::Constant => 1.0,
            Kind::Poisson => Exp1.sample(&mut self.random),
            Kind::Gamma(gamma) => gamma.sample(&mut self.random),
        };
        self.expected += gap;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(arrival: Arrival) -> Vec<f64> {
        let due: Vec<f64> = Arrivals::new(Rate::constant(1_000.0), arrival, 42)
            .take(20_001)
            .map(Nanos::as_millis_f64)
            .collect();
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
        // Critical value at the 1 % level.
        assert!(ks_to_exponential(gaps(Arrival::Poisson)) < 1.63);
    }

    /// The Kolmogorov–Smirnov statistic against the exponential distribution of mean 1, times √n.
    fn ks_to_exponential(mut gaps: Vec<f64>) -> f64 {
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
        distance * n.sqrt()
    }

    #[test]
    fn a_ramp_is_poisson_in_its_own_time() {
        // A Poisson process has independent exponential gaps in the time of its expected arrivals: 2t + t²/2 here.
        let due = Arrivals::new(Rate::changing(2.0, 202.0, 200.0, None), Arrival::Poisson, 5);
        let expected = |at: Nanos| 2.0 * at.as_secs_f64() + at.as_secs_f64().powi(2) / 2.0;
        let times: Vec<f64> = due.take_while(|at| *at < Nanos::from_millis(200_000)).map(expected).collect();
        assert!((times.len() as f64 - 20_400.0).abs() < 4.0 * 20_400f64.sqrt(), "{}", times.len());
        assert!(ks_to_exponential(times.windows(2).map(|pair| pair[1] - pair[0]).collect()) < 1.63);
    }

    #[test]
    fn steps_come_at_their_rates() {
        let due: Vec<Nanos> = Arrivals::new(Rate::changing(10.0, 40.0, 40.0, Some(4)), Arrival::Constant, 1)
            .take_while(|at| *at < Nanos::from_millis(40_000))
            .collect();
        let per_step = |step: i64| {
            due.iter().filter(|at| (step * 10_000..(step + 1) * 10_000).contains(&(at.0 / 1_000_000))).count()
        };
        for (step, count) in [100, 200, 300, 400].into_iter().enumerate() {
            let n = per_step(step as i64);
            assert!(n.abs_diff(count) <= 1, "step {step}: {n}");
        }
    }

    #[test]
    fn the_first_is_due_at_once_and_a_seed_repeats() {
        let take =
            |seed| Arrivals::new(Rate::constant(10.0), Arrival::Poisson, seed).take(5).collect::<Vec<_>>();
        assert_eq!(take(1)[0], Nanos::ZERO);
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }
}
