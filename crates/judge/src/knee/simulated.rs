//! Knees of the simulated engine, which are known from its limits, in virtual time.

use ttft_model::{Arrival, Load, Nanos};
use ttft_sim::{Profile, Shape, VirtualEngine};

use super::*;
use crate::virtual_run;

/// Runs, each of another seed.
const RUNS: u64 = 100;

/// Of so many runs at least so many must be right.
const MOST: usize = 95;

const SHAPE: Shape = Shape { prompt: 60, output: 12, sigma: 0.3 };

/// A sweep over users that begin one after another, and its knees.
fn closed(profile: &Profile, seed: u64, users: &[u32], requests: u32, shape: Shape) -> Knee {
    let ramp = Nanos::from_millis(3_000);
    let loads: Vec<Load> = users.iter().map(|users| Load::closed(*users)).collect();
    let play = |engine: &mut VirtualEngine, i: usize| engine.closed(users[i], ramp, requests, shape);
    sweep(profile, seed, &loads, play)
}

fn sweep(
    profile: &Profile,
    seed: u64,
    loads: &[Load],
    play: impl Fn(&mut VirtualEngine, usize) -> ttft_sim::Played,
) -> Knee {
    let plan = virtual_run::plan(loads, &[]);
    let mut engine = VirtualEngine::new(profile, seed);
    let of = |i: usize| virtual_run::fold(&plan, i as u32, &play(&mut engine, i));
    let (stages, evidence): (Vec<_>, Vec<_>) = (0..loads.len()).map(of).unzip();
    find(&stages, &evidence)
}

#[track_caller]
fn mostly(what: &str, right: impl Fn(u64) -> Result<(), String>) {
    let wrong: Vec<String> = (0..RUNS).filter_map(|seed| right(seed).err()).collect();
    assert!(
        RUNS as usize - wrong.len() >= MOST,
        "{what}: {} of {RUNS} wrong: {:?}",
        wrong.len(),
        &wrong[..3.min(wrong.len())]
    );
}

/// Throughput stops growing where all places of the engine are taken.
#[test]
fn capacity_ends_at_the_engines_places() {
    let profile = virtual_run::sixteen_places();
    mostly("capacity", |seed| {
        let knee = closed(&profile, seed, &[1, 2, 4, 8, 16, 32, 64], 600, SHAPE);
        match &knee.capacity_knee {
            Some(at) if at.stage == "s4" && at.ci95[0] <= 16.0 && at.ci95[1] >= 16.0 => Ok(()),
            other => Err(format!("seed {seed}: {other:?}, {}", knee.reason)),
        }
    });
}

/// The tail leaves where memory grows scarce, at sixteen users of the default profile, while the median does not.
#[test]
fn the_tail_leaves_where_memory_is_scarce() {
    let profile = Profile::load("default").unwrap();
    let shape = Shape { prompt: 500, output: 64, sigma: 0.3 };
    mostly("tail", |seed| {
        let knee = closed(&profile, seed, &[1, 4, 8, 16], 400, shape);
        match &knee.tail_knee {
            Some(at) if at.stage == "s3" => Ok(()),
            other => Err(format!("seed {seed}: {other:?}, {}", knee.reason)),
        }
    });
}

/// An engine whose times do not depend on the load has no knee, over users as over arrivals.
#[test]
fn flat_engines_raise_few_alarms() {
    let profile = Profile::parse(
        "flat",
        "about = 'x'\nmax_model_len = 4096\noutput = { median = 9, sigma = 0 }\n\
         [timed]\nttft_ms = 80\nitl_ms = 5\nsigma = 0.3",
    );
    let profile = profile.unwrap();
    let none = |seed: u64, knee: &Knee| match (&knee.tail_knee, &knee.capacity_knee) {
        (None, None) => Ok(()),
        found => Err(format!("seed {seed}: {found:?}")),
    };
    mostly("flat over users", |seed| none(seed, &closed(&profile, seed, &[1, 2, 4, 8, 16, 32], 150, SHAPE)));
    let rates = [2.0, 4.0, 8.0, 16.0, 32.0];
    let loads = rates.map(|rate| Load::open(rate, Arrival::Poisson));
    mostly("flat over rates", |seed| {
        none(seed, &sweep(&profile, seed, &loads, |engine, i| engine.poisson(rates[i], 150, SHAPE)))
    });
}
