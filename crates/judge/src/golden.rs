//! The statistics against NumPy and SciPy (`testdata/make_golden.py`).

use serde::Deserialize;

use crate::{Distribution, Samples, interval, quantile};

#[derive(Deserialize)]
struct Golden {
    percentiles: Vec<Shape>,
    one_sequence: Vec<Drawn>,
    order_places: Vec<Places>,
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
struct Places {
    n: u64,
    p: f64,
    low: Option<f64>,
    high: Option<f64>,
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
fn order_statistic_places_are_scipys() {
    for wanted in golden().order_places {
        let (low, high) = interval::order_places(wanted.n, wanted.p);
        let variance = wanted.n as f64 * wanted.p * (1.0 - wanted.p);
        let slack = if variance > 2_000.0 { 0.02 * variance.sqrt() } else { 1e-6 };
        for (got, wanted_place) in [(low, wanted.low), (high, wanted.high)] {
            let near = match (got, wanted_place) {
                (Some(got), Some(place)) => (got - place).abs() < slack,
                (got, place) => got == place,
            };
            assert!(near, "n={} p={}: {got:?} for {wanted_place:?}", wanted.n, wanted.p);
        }
    }
}

/// Where the binomial is too large to be computed, the places go on as they were.
#[test]
fn places_of_very_many_follow_the_normal_law() {
    for p in [0.5f64, 0.95, 0.99] {
        let limit = (2_000.0 / (p * (1.0 - p))).floor();
        let of = |n: f64| {
            let deviation = (n * p * (1.0 - p)).sqrt();
            let (low, high) = interval::order_places(n as u64, p);
            [low, high].map(|place| (place.unwrap() - n * p - 0.5) / deviation)
        };
        for (exact, normal) in of(limit).into_iter().zip(of(limit + 1.0)) {
            assert!((exact - normal).abs() < 0.03, "p={p}: {exact} and {normal}");
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
