//! Stages made up, with and without a change.

use rand_distr::{Distribution as _, LogNormal, StandardNormal};

use super::*;

/// TTFT in milliseconds of independent requests.
fn independent(n: usize, random: &mut StdRng) -> Vec<f64> {
    let ttft = LogNormal::new(5.0, 0.6).unwrap();
    (0..n).map(|_| ttft.sample(random)).collect()
}

/// The same of requests that depend on the ones before.
fn dependent(n: usize, random: &mut StdRng) -> Vec<f64> {
    let mut log = 0.0f64;
    let mut next = || {
        let noise: f64 = StandardNormal.sample(random);
        log = 0.5 * log + 0.5 * noise;
        (5.0 + log).exp()
    };
    (0..n).map(|_| next()).collect()
}

fn alarms(rounds: usize, mut draw: impl FnMut(&mut StdRng) -> Vec<f64>) -> f64 {
    let mut random = StdRng::seed_from_u64(4);
    let alarms = (0..rounds).filter(|_| change(&draw(&mut random)).is_some()).count();
    alarms as f64 / rounds as f64
}

#[test]
fn what_does_not_change_raises_few_alarms() {
    for n in [30, 200] {
        let share = alarms(200, |random| independent(n, random));
        assert!(share <= 0.03, "n={n}: {share}");
        let share = alarms(200, |random| dependent(n, random));
        assert!(share <= 0.05, "dependent, n={n}: {share}");
    }
    assert_eq!(change(&[7.0; 100]), None, "all the same");
    let steps: Vec<f64> = (0..100).map(|i| f64::from(i % 3)).collect();
    assert_eq!(change(&steps), None);
}

#[test]
fn slow_first_requests_are_found() {
    for (first, factor) in [(20, 2.5), (5, 6.0), (100, 1.6)] {
        let found = alarms(60, |random| {
            let mut values = independent(300, random);
            values[..first].iter_mut().for_each(|ms| *ms *= factor);
            values
        });
        assert!(found >= 0.95, "{first} times {factor}: {found}");
    }
}

#[test]
fn the_place_is_found() {
    let mut random = StdRng::seed_from_u64(9);
    let mut values = independent(300, &mut random);
    values[..30].iter_mut().for_each(|ms| *ms *= 6.0);
    assert!(change(&values).unwrap().at.abs_diff(30) <= 3);
}

/// Place and height of the largest sum are NumPy's (`testdata/make_golden.py`).
#[test]
fn the_largest_change_is_where_numpy_sees_it() {
    #[derive(serde::Deserialize)]
    struct Golden {
        changes: Vec<Known>,
    }
    #[derive(serde::Deserialize)]
    struct Known {
        values: Vec<f64>,
        at: usize,
        height: f64,
    }
    let golden: Golden = serde_json::from_str(include_str!("../../testdata/golden.json")).unwrap();
    for known in golden.changes {
        let (at, height) = largest(&scores(&known.values).unwrap());
        assert_eq!(at, known.at);
        assert!((height - known.height).abs() < 1e-6 * height, "{height} for {}", known.height);
    }
}
