//! How an open loop's requests really started, against the process that was asked for.
//!
//! Starts, not what was planned: a client that falls behind, or a limit in flight, shows here. The distance is
//! Kolmogorov's and Smirnov's between the gaps and the law that was asked for (its rate is given, not fitted), the
//! p-value that of its limiting distribution.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Exp, Gamma};
use ttft_model::{Arrival, Load, Nanos, Record};

/// Requests whose gaps are looked at: the first of the stage, one after another (1 MiB).
const MOST: u64 = 1 << 16;

/// Fewer gaps have no distribution to speak of.
const LEAST: usize = 20;

/// A p-value below this says that the gaps are not of the law that was asked for.
pub const ODD: f64 = 0.01;

/// The arrivals of an open loop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrivals {
    /// Requests a second that were asked for.
    pub asked_rate: f64,
    /// Requests a second that started, from the first to the last of those looked at.
    pub rate: Option<f64>,
    /// Gaps looked at.
    pub n: u64,
    /// Their mean in milliseconds.
    pub mean_gap_ms: Option<f64>,
    /// Their standard deviation over their mean.
    pub cv: Option<f64>,
    /// What that is in the law that was asked for: 0 of constant gaps, 1 of a Poisson process.
    pub asked_cv: f64,
    /// Largest distance between the distribution of the gaps and the law; null of constant gaps, which have none.
    pub ks_distance: Option<f64>,
    /// How often gaps of that law would be so far from it.
    pub ks_p_value: Option<f64>,
}

/// Collects starts, in any order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArrivalFold {
    starts: Vec<(u64, Nanos)>,
}

impl ArrivalFold {
    /// Takes a request in that is no warm-up.
    pub(crate) fn push(&mut self, load: &Load, r: &Record) {
        if matches!(load, Load::Open { rate_to: None, .. }) && r.seq < MOST && r.attempt <= 1 {
            self.starts.push((r.seq, r.phases.started));
        }
    }

    /// The figures; `None` of a load that is not one rate of arrivals.
    pub(crate) fn finish(mut self, load: &Load) -> Option<Arrivals> {
        let Load::Open { rate, rate_to: None, arrival, .. } = load else { return None };
        self.starts.sort_unstable();
        // Two workers that are late by different amounts may swap two starts; the order that counts is that of time.
        let mut at: Vec<Nanos> = self.starts.into_iter().map(|(_, at)| at).collect();
        at.sort_unstable();
        let gaps: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis_f64()).collect();
        let samples: crate::Samples = gaps.iter().copied().collect();
        let mean = samples.mean();
        let spread = samples.stddev().zip(mean).filter(|(_, mean)| *mean > 0.0);
        let asked_cv = match arrival {
            Arrival::Constant => 0.0,
            Arrival::Poisson => 1.0,
            Arrival::Gamma(shape) => 1.0 / shape.sqrt(),
        };
        let law = law(*arrival, 1e3 / rate).filter(|_| gaps.len() >= LEAST);
        let distance = law.map(|law| distance(gaps, law));
        Some(Arrivals {
            asked_rate: *rate,
            rate: mean.filter(|mean| *mean > 0.0).map(|mean| 1e3 / mean),
            n: samples.len(),
            mean_gap_ms: mean,
            cv: spread.map(|(stddev, mean)| stddev / mean),
            asked_cv,
            ks_distance: distance,
            ks_p_value: distance.map(|distance| p_value(samples.len(), distance)),
        })
    }
}

type Law = Box<dyn Fn(f64) -> f64>;

/// The distribution function of gaps with that mean; `None` of constant ones.
fn law(arrival: Arrival, mean: f64) -> Option<Law> {
    match arrival {
        Arrival::Constant => None,
        Arrival::Poisson => {
            let law = Exp::new(1.0 / mean).ok()?;
            Some(Box::new(move |gap| law.cdf(gap)))
        }
        Arrival::Gamma(shape) => {
            let law = Gamma::new(shape, shape / mean).ok()?;
            Some(Box::new(move |gap| law.cdf(gap)))
        }
    }
}

/// The largest distance between the empirical distribution of values and a law.
fn distance(mut values: Vec<f64>, law: impl Fn(f64) -> f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let at = |(i, value): (usize, &f64)| {
        let expected = law(*value);
        (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
    };
    values.iter().enumerate().map(at).fold(0.0, f64::max)
}

/// How often `n` values of the law itself are at least that far from it: Kolmogorov's limit,
/// `2 Σ (−1)^(k−1) exp(−2 k² n d²)`, and for small arguments its other form,
/// `1 − √(2π)/x Σ exp(−(2k − 1)² π² / 8x²)`, x = d √n.
fn p_value(n: u64, distance: f64) -> f64 {
    let x = distance * (n as f64).sqrt();
    if x < 1.0 {
        let term = |k: u32| {
            let odd = f64::from(2 * k - 1);
            (-odd * odd * std::f64::consts::PI.powi(2) / (8.0 * x * x)).exp()
        };
        let below = (1..=8).map(term).sum::<f64>() * std::f64::consts::TAU.sqrt() / x.max(1e-9);
        return (1.0 - below).clamp(0.0, 1.0);
    }
    let term = |k: u32| {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        sign * (-2.0 * f64::from(k * k) * x * x).exp()
    };
    (2.0 * (1..=20).map(term).sum::<f64>()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use rand_distr::{Distribution as _, Exp1};

    use super::*;

    #[derive(serde::Deserialize)]
    struct Golden {
        kolmogorov_smirnov: Vec<Known>,
    }

    #[derive(serde::Deserialize)]
    struct Known {
        law: String,
        shape: f64,
        samples: Vec<f64>,
        distance: f64,
        p_value: f64,
    }

    #[test]
    fn distance_and_p_value_are_scipys() {
        let golden: Golden = serde_json::from_str(include_str!("../testdata/golden.json")).unwrap();
        for known in golden.kolmogorov_smirnov {
            let arrival = if known.law == "gamma" { Arrival::Gamma(known.shape) } else { Arrival::Poisson };
            let n = known.samples.len() as u64;
            let got = distance(known.samples, law(arrival, 1.0).unwrap());
            assert!((got - known.distance).abs() < 1e-9, "{got} for {}", known.distance);
            let p = p_value(n, got);
            assert!((p - known.p_value).abs() < 1e-9 + 1e-6 * known.p_value, "{p} for {}", known.p_value);
        }
    }

    /// Starts at these gaps in milliseconds.
    fn of(load: &Load, gaps: impl Iterator<Item = f64>) -> Arrivals {
        let (mut fold, mut at) = (ArrivalFold::default(), 0.0);
        for (seq, gap) in gaps.enumerate() {
            let mut r = Record { seq: seq as u64, ..Record::default() };
            r.phases.started = Nanos(at as i64);
            fold.push(load, &r);
            at += gap * 1e6;
        }
        fold.finish(load).unwrap()
    }

    fn exponential(mean: f64) -> impl Iterator<Item = f64> {
        let mut random = StdRng::seed_from_u64(3);
        std::iter::repeat_with(move || -> f64 { Exp1.sample(&mut random) }).map(move |gap: f64| gap * mean)
    }

    #[test]
    fn a_poisson_process_is_told_from_others() {
        let load = Load::open(100.0, Arrival::Poisson);
        let good = of(&load, exponential(10.0).take(2_000));
        assert!(good.ks_p_value.unwrap() > ODD && (good.cv.unwrap() - 1.0).abs() < 0.1, "{good:?}");
        assert!((good.rate.unwrap() / 100.0 - 1.0).abs() < 0.1);
        let slow = of(&load, exponential(13.0).take(2_000));
        assert!(slow.ks_p_value.unwrap() < ODD, "a client that is too slow: {slow:?}");
        let even = of(&load, std::iter::repeat_n(10.0, 2_000));
        assert!(even.ks_p_value.unwrap() < ODD && even.cv.unwrap() < 0.01, "{even:?}");
        let ticks = of(&load, exponential(10.0).take(2_000).map(|gap| (gap / 10.0).round() * 10.0));
        assert!(ticks.ks_p_value.unwrap() < ODD, "a clock of ten milliseconds: {ticks:?}");
    }

    #[test]
    fn what_has_no_law_has_no_distance() {
        let even = of(&Load::open(100.0, Arrival::Constant), std::iter::repeat_n(10.0, 100));
        assert_eq!((even.ks_distance, even.asked_cv, even.n), (None, 0.0, 99));
        assert_eq!(even.rate.map(f64::round), Some(100.0));
        assert_eq!(ArrivalFold::default().finish(&Load::closed(3)), None);
        let few = of(&Load::open(1.0, Arrival::Poisson), exponential(1e3).take(5));
        assert_eq!((few.ks_p_value, few.n), (None, 4));
        assert_eq!(of(&Load::open(1.0, Arrival::Poisson), exponential(1e3).take(1)).rate, None);
    }
}
