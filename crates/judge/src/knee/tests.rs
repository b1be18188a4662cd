//! Sweeps drawn from known curves.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_distr::{Distribution as _, LogNormal, StandardNormal};
use ttft_model::{CachePolicy, Load, Nanos};

use super::*;
use crate::series::Point;
use crate::{Client, Distribution, Samples, Throughput, Verdict, WindowChoice};

/// One level: users, requests, how median and tail are multiplied, true requests a second.
#[derive(Clone, Copy)]
struct True {
    users: u32,
    n: usize,
    median: f64,
    /// Of the slowest five requests in a hundred.
    tail: f64,
    rate: f64,
}

pub(crate) fn stage(name: String, load: Load) -> StageSummary {
    StageSummary {
        name,
        load,
        workload: "short".to_owned(),
        cache: CachePolicy::Cold,
        max_tokens: 64,
        endpoint: None,
        model: None,
        requests: crate::Requests::default(),
        window: WindowChoice::Steady,
        window_reason: None,
        ended_early: None,
        parts: Vec::new(),
        latency_ms: BTreeMap::new(),
        throughput: Throughput::default(),
        tokens: crate::Tokens::default(),
        goodput: crate::Goodput::default(),
        sessions: crate::Sessions::default(),
        experience: crate::Experience::default(),
        stream: crate::Stream::default(),
        arrivals: None,
        client: Client::default(),
        server: crate::server::Server::default(),
        reconcile: crate::Reconcile::default(),
        decomposition: crate::Decomposition::default(),
        windows: crate::Windows::default(),
    }
}

fn users(users: u32) -> Load {
    Load::closed(users)
}

fn draw(level: True, random: &mut StdRng) -> (StageSummary, Evidence) {
    let ttft = LogNormal::new(5.0, 0.4).unwrap();
    let total = LogNormal::new(7.0, 0.3).unwrap();
    let points: Vec<Point> = (0..level.n)
        .map(|i| {
            let slow = random.random_bool(0.05);
            let factor = if slow { level.tail.max(level.median) } else { level.median };
            Point {
                seq: i as u64,
                started: Nanos(i as i64),
                ttft_ms: ttft.sample(random) * factor,
                total_ms: total.sample(random),
                output: None,
            }
        })
        .collect();
    let samples: Samples = points.iter().map(|p| p.ttft_ms).collect();
    let mut stage = stage(format!("c{}", level.users), users(level.users));
    stage.latency_ms.insert("ttft".to_owned(), Distribution { n: level.n as u64, ..Distribution::default() });
    let noise: f64 = StandardNormal.sample(random);
    stage.throughput.requests_per_s = Some(level.rate * (1.0 + 0.3 * noise / (level.n as f64).sqrt()));
    (stage, Evidence { ttft: samples, points, ..Evidence::default() })
}

fn find_in(levels: &[True], random: &mut StdRng) -> Knee {
    let (stages, evidence): (Vec<_>, Vec<_>) = levels.iter().map(|level| draw(*level, random)).unzip();
    find(&stages, &evidence)
}

const USERS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Levels of these users, all alike but for throughput, which grows without end.
fn flat(n: usize) -> Vec<True> {
    USERS.map(|users| True { users, n, median: 1.0, tail: 1.0, rate: f64::from(users) }).to_vec()
}

/// Beyond eight users the slowest are four times as slow, and beyond sixteen throughput stands.
fn knees(n: usize) -> Vec<True> {
    let mut levels = flat(n);
    for level in &mut levels[3..] {
        level.tail = 6.0;
    }
    levels[5].rate = levels[4].rate;
    for level in &mut levels[4..] {
        level.median = 1.1;
    }
    levels.push(True { users: 64, ..levels[5] });
    levels
}

const ROUNDS: usize = 100;

/// The shares of sweeps whose tail knee, and whose capacity knee, is as it should be.
fn shares(
    levels: &[True],
    tail: impl Fn(Option<&KneePoint>) -> bool,
    capacity: impl Fn(Option<&KneePoint>) -> bool,
) -> (f64, f64) {
    let mut random = StdRng::seed_from_u64(3);
    let (mut tails, mut capacities) = (0, 0);
    for _ in 0..ROUNDS {
        let knee = find_in(levels, &mut random);
        tails += usize::from(tail(knee.tail_knee.as_ref()));
        capacities += usize::from(capacity(knee.capacity_knee.as_ref()));
    }
    (tails as f64 / ROUNDS as f64, capacities as f64 / ROUNDS as f64)
}

#[test]
fn flat_curves_raise_few_alarms() {
    for n in [100, 400] {
        let (tails, capacities) = shares(&flat(n), |k| k.is_some(), |k| k.is_some());
        assert!(tails <= 0.05 && capacities <= 0.05, "n={n}: {tails} tails, {capacities} capacities");
    }
    let mut idle = flat(200);
    for level in &mut idle {
        level.rate = 5.0;
    }
    let (_, named) = shares(&idle, |k| k.is_some(), |k| k.is_some());
    assert!(named <= 0.05, "throughput that never grew: {named}");
    let mut random = StdRng::seed_from_u64(1);
    let reason = find_in(&idle, &mut random).reason;
    assert!(reason.contains("throughput does not grow"), "{reason}");
}

#[test]
fn known_knees_are_found() {
    let (tails, capacities) = shares(
        &knees(500),
        |k| k.is_some_and(|k| k.stage == "c8" && k.above == Some(4.0)),
        |k| k.is_some_and(|k| k.stage == "c16" && k.ci95[0] <= 16.0 && k.ci95[1] >= 16.0),
    );
    assert!(tails >= 0.95 && capacities >= 0.95, "{tails} tails, {capacities} capacities");
}

#[test]
fn small_sweeps_cannot_tell() {
    let mut random = StdRng::seed_from_u64(1);
    let two = find_in(&knees(500)[2..4], &mut random);
    assert!(two.tail_knee.is_none() && two.capacity_knee.is_none());
    assert_eq!(two.reason, "neither knee: cannot tell from 2 usable levels; 3 are needed");
    let few = find_in(&knees(12), &mut random);
    assert!(few.tail_knee.is_none() && few.capacity_knee.is_none());
    assert!(
        few.reason.contains("cannot tell: 0 of 7 levels have the 100 requests that it takes, 3 must"),
        "{}",
        few.reason
    );
    let one = find_in(&knees(500)[..1], &mut random);
    assert!(one.reason.starts_with("no sweep"), "{}", one.reason);
}

#[test]
fn a_knee_of_the_client_is_not_the_servers() {
    let mut random = StdRng::seed_from_u64(1);
    let (mut stages, evidence): (Vec<_>, Vec<_>) =
        knees(500).iter().map(|level| draw(*level, &mut random)).unzip();
    for stage in &mut stages[3..] {
        stage.client.verdict = Verdict::Invalid;
        stage.client.reasons = vec!["it was busy".to_owned()];
    }
    let knee = find(&stages, &evidence);
    assert!(knee.tail_knee.is_none() && knee.capacity_knee.is_none(), "{knee:?}");
    assert!(
        knee.reason.contains("not the server's") && knee.reason.contains("it was busy"),
        "{}",
        knee.reason
    );
    // A level of a suspect client may be flat, but is no knee.
    for stage in &mut stages[..3] {
        stage.client.verdict = Verdict::Suspect;
    }
    for stage in &mut stages[3..] {
        stage.client = Client::default();
    }
    let knee = find(&stages, &evidence);
    assert_eq!(knee.tail_knee.unwrap().stage, "c8");
    assert_eq!(knee.capacity_knee.unwrap().stage, "c16", "suspect levels may grow");
    for stage in &mut stages[5..] {
        stage.client.verdict = Verdict::Suspect;
    }
    assert!(find(&stages, &evidence).capacity_knee.is_none(), "what is beyond must be sure");
    stages[3].client.verdict = Verdict::Suspect;
    assert_ne!(find(&stages, &evidence).tail_knee.map(|knee| knee.stage).as_deref(), Some("c8"));
    for stage in &mut stages {
        let verdict = if stage.name == "c1" || stage.name == "c2" { Verdict::Ok } else { Verdict::Invalid };
        stage.client.verdict = verdict;
    }
    stages[2].client = Client::default();
    // Levels of a good client still tell.
    stages[3].client = Client::default();
    let knee = find(&stages, &evidence);
    assert_eq!(knee.tail_knee.unwrap().stage, "c8");
}

#[test]
fn a_median_that_rises_too_is_no_tail_knee() {
    let mut levels = flat(500);
    for level in &mut levels[3..] {
        (level.median, level.tail) = (3.0, 3.0);
    }
    let mut random = StdRng::seed_from_u64(1);
    let knee = find_in(&levels, &mut random);
    assert!(knee.tail_knee.is_none());
    assert!(knee.reason.contains("the median and p99 rise together, at c8"), "{}", knee.reason);
}

#[test]
fn repetitions_are_one_level_and_sweeps_stand_apart() {
    let mut random = StdRng::seed_from_u64(1);
    let twice: Vec<True> = knees(250).into_iter().chain(knees(250)).collect();
    let (mut stages, mut evidence): (Vec<_>, Vec<_>) =
        twice.iter().map(|level| draw(*level, &mut random)).unzip();
    for level in flat(300) {
        let (mut stage, of) = draw(level, &mut random);
        stage.workload = "long".to_owned();
        stages.push(stage);
        evidence.push(of);
    }
    let knee = find(&stages, &evidence);
    assert_eq!(knee.sweep.as_deref(), Some("short over concurrency"));
    assert_eq!(knee.tail_knee.unwrap().stage, "c8");
    assert_eq!(knee.capacity_knee.unwrap().stage, "c16");
    assert_eq!(knee.others.len(), 1);
    assert!(knee.others[0].tail_knee.is_none() && knee.others[0].capacity_knee.is_none());
}

#[test]
fn the_probable_cause_is_what_the_figures_tell() {
    let mut random = StdRng::seed_from_u64(1);
    let (mut stages, evidence): (Vec<_>, Vec<_>) =
        knees(500).iter().map(|level| draw(*level, &mut random)).unzip();
    let tpot = |ms: f64| Distribution { n: 9, p50: Some(ms), ..Distribution::default() };
    for (i, stage) in stages.iter_mut().enumerate() {
        stage.latency_ms.insert("tpot".to_owned(), tpot(if i < 3 { 10.0 } else { 20.0 }));
    }
    let knee = find(&stages, &evidence);
    let cause = knee.tail_knee.unwrap().probable_cause.unwrap();
    assert!(cause.contains("decoding slows"), "{cause}");
    stages[3].requests.sent = 100;
    stages[3].requests.failed = 30;
    let cause = find(&stages, &evidence).tail_knee.unwrap().probable_cause.unwrap();
    assert!(cause.contains("30.0 % of requests fail at c8"), "{cause}");
}

#[test]
fn rates_with_ramp_and_tail_show_no_capacity() {
    let mut random = StdRng::seed_from_u64(1);
    let (mut stages, evidence): (Vec<_>, Vec<_>) =
        knees(500).iter().map(|level| draw(*level, &mut random)).unzip();
    for stage in &mut stages[5..] {
        stage.window = WindowChoice::Whole;
    }
    let knee = find(&stages, &evidence);
    assert!(
        knee.capacity_knee.is_none() && knee.reason.contains("still grows at the last level, c16"),
        "{knee:?}"
    );
    for stage in &mut stages[2..] {
        stage.window = WindowChoice::Whole;
    }
    let reason = find(&stages, &evidence).reason;
    assert!(reason.contains("cannot tell from 2 of 7 levels with a steady window"), "{reason}");
}
