//! Searches against the simulated engine in virtual time, whose true limit a very long run shows.

use ttft_model::Nanos;
use ttft_sim::{Played, Profile, Shape, VirtualEngine};

use super::*;
use crate::{Axis, Slo, virtual_run};

/// Runs, each of another seed, and how many of them must be right.
const RUNS: u64 = 100;
const MOST: usize = 95;

const SHAPE: Shape = Shape { prompt: 60, output: 12, sigma: 0.3 };

fn slos(texts: &[&str]) -> Vec<Slo> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn play(engine: &mut VirtualEngine, axis: Axis, level: f64, requests: u64) -> Played {
    match axis {
        Axis::Concurrency => engine.closed(level as u32, Nanos::ZERO, requests as u32, SHAPE),
        Axis::Rate => engine.poisson(level, requests as u32, SHAPE),
    }
}

/// Whether a level meets the objectives in a run of so many requests.
fn truly_meets(axis: Axis, level: f64, texts: &[&str], requests: u64) -> bool {
    let objectives = objective::Objective::all(&slos(texts)).unwrap();
    let mut engine = VirtualEngine::new(&virtual_run::sixteen_places(), 4_711);
    let played = play(&mut engine, axis, level, requests);
    let records = virtual_run::records(0, &played);
    objectives.iter().all(|objective| {
        let scores: Vec<f64> = records.iter().filter_map(|r| objective.score(r)).collect();
        scores.iter().sum::<f64>() / scores.len() as f64 <= objective.allowed.unwrap_or(0.0)
    })
}

/// The limit between two levels, to within `close`.
fn truth(axis: Axis, [mut low, mut high]: [f64; 2], texts: &[&str], close: f64) -> [f64; 2] {
    while high - low > close {
        let middle = f64::midpoint(low, high);
        let middle = if axis == Axis::Concurrency { middle.floor() } else { middle };
        if truly_meets(axis, middle, texts, 40_000) { low = middle } else { high = middle }
    }
    [low, high]
}

fn search(profile: &Profile, seed: u64, bounds: Bounds, texts: &[&str]) -> Answer {
    let mut engine = VirtualEngine::new(profile, seed);
    let mut search = Search::new(bounds, &slos(texts), Options::default()).unwrap();
    loop {
        match search.next() {
            Action::Done(answer) => return answer,
            Action::Measure { level, requests } => {
                let played = play(&mut engine, bounds.axis, level, requests);
                let mut watch = search.watch();
                for record in virtual_run::records(0, &played) {
                    watch.push(&record);
                }
                search.observe(level, watch);
            }
        }
    }
}

/// Of a hundred searches at least 95 must hold the limit between their two levels.
#[track_caller]
fn brackets(bounds: Bounds, texts: &[&str], [below, above]: [f64; 2]) {
    let profile = virtual_run::sixteen_places();
    let (mut wrong, mut requests, mut widths) = (Vec::new(), 0, 0.0);
    for seed in 0..RUNS {
        let answer = search(&profile, seed, bounds, texts);
        let holds = answer.outcome == Outcome::Found
            && answer.met.is_some_and(|met| met <= below)
            && answer.missed.is_some_and(|missed| missed >= above);
        requests += answer.requests;
        // Whole users are no closer than one.
        widths += (answer.missed.unwrap_or(0.0) / answer.met.unwrap_or(f64::NAN)) / (above / below).max(1.0);
        if !holds {
            wrong.push((seed, answer.outcome, answer.met, answer.missed));
        }
    }
    let (requests, width) = (requests / RUNS, widths / RUNS as f64);
    assert!(
        RUNS as usize - wrong.len() >= MOST && width < 1.4 && requests < 25_000,
        "limit {below} to {above}; mean {requests} requests, ends {width} apart; {} wrong: {wrong:?}",
        wrong.len()
    );
}

const USERS: Bounds = Bounds { axis: Axis::Concurrency, low: 1.0, high: 128.0 };

#[test]
fn users_who_wait_no_longer_than_a_tail() {
    let texts = ["ttft_p95<80ms"];
    brackets(USERS, &texts, truth(Axis::Concurrency, [1.0, 128.0], &texts, 1.0));
}

#[test]
fn several_objectives_at_once() {
    let texts = ["ttft_p95<200ms", "tpot_p99<14ms", "ttft<120ms", "goodput>0.95", "error_rate<1%"];
    brackets(USERS, &texts, truth(Axis::Concurrency, [1.0, 128.0], &texts, 1.0));
}

#[test]
fn arrivals_that_a_queue_can_bear() {
    let texts = ["ttft_p95<150ms"];
    let bounds = Bounds { axis: Axis::Rate, low: 5.0, high: 400.0 };
    let [below, above] = truth(Axis::Rate, [50.0, 120.0], &texts, 0.2);
    // What a long run shows has an error of its own.
    brackets(bounds, &texts, [below * 1.005, above * 0.995]);
}

#[test]
fn a_limit_outside_of_the_bounds_is_said_to_be() {
    let profile = virtual_run::sixteen_places();
    let below = search(&profile, 1, USERS, &["ttft_p95<5ms"]);
    assert_eq!((below.outcome, below.met, below.missed), (Outcome::BelowSmallest, None, Some(1.0)));
    assert!(below.requests < 1_000, "it costs {}", below.requests);
    let few = Bounds { high: 8.0, ..USERS };
    let above = search(&profile, 1, few, &["ttft_p95<2s"]);
    assert_eq!((above.outcome, above.met, above.missed), (Outcome::NotReached, Some(8.0), None));
    assert!(above.requests < 2_000, "it costs {}", above.requests);
}
