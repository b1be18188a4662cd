//! 95 % intervals against simulated truth: how often they hold the figure of the population that was drawn from.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution as _, LogNormal};
use statrs::distribution::{ContinuousCDF, LogNormal as Law};

use crate::{Distribution, interval};

/// Samples drawn of each shape and length.
const ROUNDS: u32 = 2_000;

/// What an interval of a true 95 % may cover in so many rounds: its standard error is half a percent.
const COVERS: std::ops::RangeInclusive<f64> = 0.93..=0.97;

const CLAIMS: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// A mixture of log-normal laws: (share, μ, σ) of each.
struct Population(&'static [(f64, f64, f64)]);

/// Waits as they come from one queue, and from a server of which a fifth of the requests miss a cache.
const LOG_NORMAL: Population = Population(&[(1.0, 5.0, 0.6)]);
const BIMODAL: Population = Population(&[(0.8, 4.0, 0.3), (0.2, 6.0, 0.25)]);

impl Population {
    fn draw(&self, n: u64, random: &mut StdRng) -> Vec<f64> {
        let mut upto = 0.0;
        let laws = self.0.iter().map(|(share, mu, sigma)| {
            upto += share;
            (upto, LogNormal::new(*mu, *sigma).unwrap())
        });
        let laws: Vec<_> = laws.collect();
        let mut one = || {
            let which: f64 = random.random();
            laws.iter().find(|(upto, _)| which < *upto).unwrap_or(&laws[0]).1.sample(random)
        };
        (0..n).map(|_| one()).collect()
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|(share, mu, sigma)| share * (mu + sigma * sigma / 2.0).exp()).sum()
    }

    fn quantile(&self, p: f64) -> f64 {
        let laws: Vec<_> = self.0.iter().map(|(share, mu, s)| (*share, Law::new(*mu, *s).unwrap())).collect();
        let (mut low, mut high) = (0.0, 1e6);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            let below: f64 = laws.iter().map(|(share, law)| share * law.cdf(middle)).sum();
            if below < p { low = middle } else { high = middle }
        }
        high
    }
}

/// The shares of rounds in which the intervals of the mean and of each claimed percentile hold the truth.
fn covered(population: &Population, n: u64) -> Vec<(&'static str, f64)> {
    let mut random = StdRng::seed_from_u64(n);
    let places = CLAIMS.map(|(_, p)| (interval::order_places(n, p), population.quantile(p)));
    let mean = population.mean();
    let mut hits = [0u32; 4];
    for _ in 0..ROUNDS {
        let mut x = population.draw(n, &mut random);
        x.sort_unstable_by(f64::total_cmp);
        for (((low, high), truth), hits) in places.iter().zip(&mut hits[1..]) {
            let at = |place: f64| interval::at_place(place, |k| x[k as usize]);
            let inside =
                low.is_none_or(|low| at(low) <= *truth) && high.is_none_or(|high| *truth <= at(high));
            *hits += u32::from(inside);
        }
        let average = x.iter().sum::<f64>() / n as f64;
        let variance = x.iter().map(|v| (v - average).powi(2)).sum::<f64>() / (n - 1) as f64;
        let [low, high] = interval::mean_t(n, average, variance.sqrt()).unwrap();
        hits[0] += u32::from((low..=high).contains(&mean));
    }
    let names = ["mean"].into_iter().chain(CLAIMS.map(|(name, _)| name));
    names.zip(hits.map(|hits| f64::from(hits) / f64::from(ROUNDS))).collect()
}

#[track_caller]
fn check(population: &Population, n: u64) {
    for (name, share) in covered(population, n) {
        assert!(COVERS.contains(&share), "{name} of {n} samples: covered {share}");
    }
}

#[test]
fn of_a_hundred_log_normal_samples() {
    check(&LOG_NORMAL, 100);
}

#[test]
fn of_a_thousand_log_normal_samples() {
    check(&LOG_NORMAL, 1_000);
}

#[test]
fn of_a_hundred_samples_with_two_modes() {
    check(&BIMODAL, 100);
}

#[test]
fn of_a_thousand_samples_with_two_modes() {
    check(&BIMODAL, 1_000);
}

/// What is claimed where: two ends wherever n can give them; of p99 of a hundred samples a lower end alone, which is
/// a one-sided 95 % bound and covers like one.
#[test]
fn an_end_that_n_cannot_give_is_open() {
    let open = |n: u64, p: f64| {
        let (low, high) = interval::order_places(n, p);
        [low.is_none(), high.is_none()]
    };
    assert_eq!(open(100, 0.5), [false, false]);
    assert_eq!(open(100, 0.95), [false, false]);
    assert_eq!(open(100, 0.99), [false, true], "0.99¹⁰⁰ is 37 %: nothing bounds p99 from above");
    assert_eq!([open(367, 0.99), open(368, 0.99)], [[false, true], [false, false]], "0.99³⁶⁸ is 2.5 %");
    assert_eq!([open(71, 0.95), open(72, 0.95)], [[false, true], [false, false]], "0.95⁷² is 2.5 %");
    assert_eq!(open(4, 0.5), [true, true], "all of four lie on one side of the median one time in eight");
}

/// What a distribution says of its percentiles is what stands at these places.
#[test]
fn a_distribution_tells_the_same_intervals() {
    let mut x = LOG_NORMAL.draw(100, &mut StdRng::seed_from_u64(1));
    let told = Distribution::of(&x.iter().copied().collect());
    x.sort_unstable_by(f64::total_cmp);
    for (name, p) in CLAIMS {
        let (low, high) = interval::order_places(100, p);
        let wanted = [low, high].map(|place| Some(interval::at_place(place?, |k| x[k as usize])));
        assert_eq!(told.ci95.get(name), Some(wanted), "{name}");
    }
}
