//! The statistics against NumPy and SciPy (`testdata/make_golden.py`), and intervals against simulated truth.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution as _, LogNormal};
use serde::Deserialize;

use crate::{Distribution, Samples, interval, quantile};

#[derive(Deserialize)]
struct Golden {
    percentiles: Vec<Shape>,
    one_sequence: Vec<Drawn>,
    order_ranks: Vec<Ranks>,
    wilson: Vec<Share>,
}

#[derive(Deserialize)]
struct Shape {
    #[serde(rename = "shape")]
    name: String,
    samples: Vec<f64>,
    percentiles: Vec<f64>,
    mean: f64,
    stddev: Option<f64>,
    t95: Option<[f64; 2]>,
}

#[derive(Deserialize)]
struct Drawn {
    samples: Vec<f64>,
    p99: f64,
    max: f64,
}

#[derive(Deserialize)]
struct Ranks {
    n: u64,
    p: f64,
    low: Option<u64>,
    high: Option<u64>,
}

#[derive(Deserialize)]
struct Share {
    hits: u64,
    n: u64,
    interval: [f64; 2],
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../testdata/golden.json")).unwrap()
}

fn collect(values: &[f64]) -> Samples {
    values.iter().copied().collect()
}

#[track_caller]
fn same(got: Option<f64>, wanted: Option<f64>, what: &str) {
    match (got, wanted) {
        (Some(got), Some(wanted)) => {
            assert!((got - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "{what}: {got} for {wanted}");
        }
        (got, wanted) => assert_eq!(got, wanted, "{what}"),
    }
}

#[test]
fn percentiles_and_moments_are_numpys() {
    for shape in golden().percentiles {
        let what = format!("{} n={}", shape.name, shape.samples.len());
        let got = Distribution::of(&collect(&shape.samples));
        for ((name, _), wanted) in quantile::PERCENTILES.iter().zip(shape.percentiles) {
            same(got.get(name), Some(wanted), &format!("{what} {name}"));
        }
        same(got.mean, Some(shape.mean), &what);
        same(got.stddev, shape.stddev, &what);
        if let Some([low, high]) = shape.t95 {
            let ci = got.ci95.get("mean").unwrap();
            same(ci[0], Some(low), &what);
            same(ci[1], Some(high), &what);
        }
    }
}

/// One log-normal sequence at four lengths, p99 by NumPy's linear rule: 345, 572, 536 and 619, where other tools'
/// rules give up to 31 % more.
#[test]
fn p99_of_one_sequence() {
    let drawn = golden().one_sequence;
    for (drawn, whole) in drawn.iter().zip([345.0, 572.0, 536.0, 619.0]) {
        let got = Distribution::of(&collect(&drawn.samples));
        same(got.p99, Some(drawn.p99), "p99");
        same(got.max, Some(drawn.max), "max");
        same(got.p99.map(f64::round), Some(whole), "p99 in whole milliseconds");
    }
}

/// Exact where the binomial can be computed; within a hundredth of the interval's width beyond.
#[test]
fn order_statistic_ranks_are_scipys() {
    for wanted in golden().order_ranks {
        let (low, high) = interval::order_ranks(wanted.n, wanted.p);
        let deviation = (wanted.n as f64 * wanted.p * (1.0 - wanted.p)).sqrt();
        let slack = if deviation > 40.0 { (0.04 * deviation).ceil() as u64 } else { 0 };
        for (got, wanted_rank) in [(low, wanted.low), (high, wanted.high)] {
            let near = match (got, wanted_rank) {
                (Some(got), Some(rank)) => got.abs_diff(rank) <= slack,
                (got, rank) => got == rank,
            };
            assert!(near, "n={} p={}: {got:?} for {wanted_rank:?}", wanted.n, wanted.p);
        }
    }
}

#[test]
fn shares_are_scipys_wilson() {
    for share in golden().wilson {
        let got = interval::wilson(share.hits, share.n).unwrap();
        for (got, wanted) in got.into_iter().zip(share.interval) {
            same(Some(got), Some(wanted), &format!("{} of {}", share.hits, share.n));
        }
    }
}

/// 95 % intervals cover the true percentile as often as they claim. They are whole ranks, each side keeping its own
/// 2.5 %, so they cover a little more than 95 %, the most in the tail where a rank weighs most.
#[test]
fn intervals_cover_the_truth() {
    let (n, rounds) = (1000, 2000);
    let mut random = StdRng::seed_from_u64(11);
    let times = LogNormal::new(5.0, 0.6).unwrap();
    let claims =
        [("p50", 0.5, 0.0f64), ("p95", 0.95, 1.644_853_626_951_472_7), ("p99", 0.99, 2.326_347_874_040_841)];
    let ranks = claims.map(|(_, p, _)| interval::order_ranks(n, p));
    let mut covered = [0u32; 3];
    for _ in 0..rounds {
        let mut x: Vec<f64> = (0..n).map(|_| times.sample(&mut random)).collect();
        x.sort_unstable_by(f64::total_cmp);
        for (((_, _, z), (low, high)), covered) in claims.iter().zip(ranks).zip(&mut covered) {
            let truth = (5.0 + 0.6 * z).exp();
            let inside = low.is_none_or(|rank| x[rank as usize - 1] <= truth)
                && high.is_none_or(|rank| truth <= x[rank as usize - 1]);
            *covered += u32::from(inside);
        }
    }
    for ((name, ..), covered) in claims.iter().zip(covered) {
        let share = f64::from(covered) / f64::from(rounds);
        assert!((0.93..=0.98).contains(&share), "{name}: covered {share}");
    }
}
