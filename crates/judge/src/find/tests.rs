//! Searches over levels whose requests are drawn from known shares.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ttft_model::{ErrorClass, Failure, Nanos, Outcome as Ended, Record, Stamp};

use super::*;
use crate::{Axis, Error, Slo};

const USERS: Bounds = Bounds { axis: Axis::Concurrency, low: 1.0, high: 256.0 };

fn slos(texts: &[&str]) -> Vec<Slo> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A request that takes a second to its first token, or three.
fn request(started: i64, slow: bool) -> Record {
    let mut r = Record::default();
    r.phases.started = Nanos::from_millis(started);
    let stamp = |ms: i64| Some(Stamp::user(Nanos::from_millis(started + ms)));
    r.answer.first_token = stamp(if slow { 3_000 } else { 1_000 });
    r.answer.last_token = stamp(5_000);
    r.answer.usage.output = Some(11);
    r.answer.outcome = Some(Ended::Ok);
    r.finished = Nanos::from_millis(started + 5_000);
    r
}

fn observe(search: &mut Search, level: f64, requests: u64, share: f64, random: &mut StdRng) {
    let mut watch = search.watch();
    for i in 0..requests {
        watch.push(&request(i as i64, random.random_bool(share)));
    }
    search.observe(level, watch);
}

/// A search in which that share of the requests is slow at each level; where it looked, and the answer.
fn run(options: Options, share: impl Fn(f64) -> f64) -> (Vec<f64>, Answer) {
    let mut search = Search::new(USERS, &slos(&["ttft_p95<2s"]), options).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let mut looked = Vec::new();
    loop {
        match search.next() {
            Action::Done(answer) => return (looked, answer),
            Action::Measure { level, requests } => {
                looked.push(level);
                observe(&mut search, level, requests, share(level), &mut random);
            }
        }
    }
}

#[test]
fn a_sharp_limit_is_found_by_doubling_and_halving() {
    let (looked, answer) = run(Options::default(), |level| if level <= 40.0 { 0.0 } else { 0.5 });
    assert_eq!(looked[..8], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 45.0]);
    assert_eq!((answer.outcome, answer.met, answer.missed), (Outcome::Found, Some(40.0), Some(41.0)));
    let of = |level: f64| answer.levels.iter().find(|l| l.level.to_bits() == level.to_bits()).unwrap();
    assert_eq!((of(40.0).says, of(41.0).says, of(2.0).says), (Says::Meets, Says::Misses, Says::Unclear));
    assert!(of(40.0).stages >= 2 && of(41.0).stages >= 2, "both ends are looked at twice");
    assert_eq!(of(2.0).stages, 1, "what does not matter is not looked at again");
    assert_eq!(answer.requests, answer.levels.iter().map(|l| l.requests).sum::<u64>());
    assert!(answer.requests < 2_500, "it costs {}", answer.requests);
    let json = serde_json::to_string(&answer).unwrap();
    let again: Answer = serde_json::from_str(&json).unwrap();
    assert_eq!((again.met, again.levels.len()), (answer.met, answer.levels.len()));
}

#[test]
fn at_the_very_limit_the_answer_widens() {
    let share = |level: f64| match level {
        ..20.0 => 0.0,
        20.0..=40.0 => 0.05,
        _ => 0.4,
    };
    let (_, answer) = run(Options { per_level: 600, ..Options::default() }, share);
    assert_eq!(answer.outcome, Outcome::Found);
    assert!(answer.met.unwrap() <= 40.0 && answer.missed.unwrap() > 20.0, "{answer:?}");
    assert!(
        answer.missed.unwrap() - answer.met.unwrap() > 10.0,
        "no side of the flat part is taken: {answer:?}"
    );
}

#[test]
fn limits_outside_of_the_bounds() {
    let (looked, below) = run(Options::default(), |_| 0.5);
    assert_eq!((below.outcome, below.met, below.missed), (Outcome::BelowSmallest, None, Some(1.0)));
    assert_eq!(looked, [1.0, 1.0], "and that is confirmed");
    let (_, above) = run(Options::default(), |_| 0.0);
    assert_eq!((above.outcome, above.met, above.missed), (Outcome::NotReached, Some(256.0), None));
    let (_, unclear) = run(Options { per_level: 300, ..Options::default() }, |_| 0.05);
    assert!(unclear.met.is_none(), "{unclear:?}");
}

#[test]
fn a_budget_ends_it_with_what_is_known() {
    let options = Options { in_all: Some(500), ..Options::default() };
    let (_, answer) = run(options, |level| if level <= 40.0 { 0.0 } else { 0.5 });
    assert!(answer.requests <= 500 && answer.stopped.unwrap().contains("more than 500 in all"));
    assert_eq!(answer.met, None, "a quick look makes no level sure");
}

#[test]
fn failures_are_misses() {
    let mut search =
        Search::new(USERS, &slos(&["ttft_p95<2s", "error_rate<5%"]), Options::default()).unwrap();
    let mut watch = search.watch();
    for i in 0..100 {
        let mut r = request(i, false);
        if i % 4 == 0 {
            r.answer.outcome = Some(Ended::Error);
            r.answer.failure = Some(Failure::new(ErrorClass::HttpOverloaded, "busy"));
        }
        watch.push(&r);
    }
    assert_eq!(watch.counts(), (100, 25));
    search.observe(1.0, watch);
    let seen = search.learnt(1.0).unwrap();
    assert!(seen.objectives.iter().all(|of| of.says == Says::Misses), "{seen:?}");
}

#[test]
fn objectives_that_no_search_is_for_are_refused() {
    for (texts, part) in [
        (&["ttft<2s"][..], "add `goodput>0.95`"),
        (&["ttft_max<2s"], "ask for a percentile"),
        (&["goodput>0.9"], "needs an objective on requests"),
        (&["ttft<2s", "goodput<0.9"], "write `goodput>0.95`"),
        (&["requests_per_s>5"], "ask for a latency"),
        (&["ttft<2s", "goodput>=1"], "no room for a single miss"),
        (&[], "nothing to look for"),
    ] {
        let error = Search::new(USERS, &slos(texts), Options::default()).unwrap_err().to_string();
        assert!(error.contains(part), "{texts:?}: {error}");
    }
    let bounds = Bounds { low: 9.0, high: 2.0, ..USERS };
    let error = Search::new(bounds, &slos(&["ttft_p95<2s"]), Options::default()).unwrap_err();
    assert!(matches!(error, Error::Bounds { .. }), "{error}");
}
