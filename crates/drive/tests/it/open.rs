//! Arrivals that wait for nobody.

use ttft_drive::{Arrivals, Rate};
use ttft_model::{Arrival, CachePolicy, Lengths, Load, Nanos, Outcome, Prompt, Record};

use crate::run::{engine, ms, numbers, plan, play, stage};
use crate::scripted::{hang, serve};

fn open(rate: f64, arrival: Arrival, max_in_flight: Option<u32>) -> Load {
    Load::Open { rate, rate_to: None, rate_steps: None, arrival, max_in_flight }
}

#[test]
fn requests_are_sent_on_schedule_by_any_count_of_workers() {
    let engine = engine(1.0, 0.0);
    for (arrival, workers) in [(Arrival::Constant, 1), (Arrival::Poisson, 3), (Arrival::Gamma(0.5), 2)] {
        let plan = plan(engine.addr(), vec![stage(open(400.0, arrival, None), Some(60), None)]);
        let due: Vec<Nanos> = Arrivals::new(Rate::constant(400.0), arrival, plan.seed).take(60).collect();
        let mut told = play(plan, workers);
        told.records.sort_by_key(|record| record.seq);
        assert_eq!(numbers(&told.records), (0..60).collect::<Vec<_>>());
        let start = told.windows[0].start;
        for (record, due) in told.records.iter().zip(due) {
            assert_eq!(record.phases.scheduled, start + due, "{arrival:?} number {}", record.seq);
            assert!(record.phases.started >= record.phases.scheduled);
            assert_eq!(record.outcome(), Outcome::Ok);
            assert_eq!(u64::from(record.worker), record.seq % u64::from(workers));
        }
    }
}

#[test]
fn a_slow_answer_delays_no_arrival() {
    // The answers take far longer than all the arrivals.
    let mut plan = plan(serve(hang), vec![stage(open(1_000.0, Arrival::Constant, None), Some(50), None)]);
    plan.timeouts.first_token = ms(1_500);
    let told = play(plan, 2);
    assert_eq!(told.records.len(), 50);
    let last_start = told.records.iter().map(|record| record.phases.started).max().unwrap();
    let first_end = told.records.iter().map(|record| record.finished).min().unwrap();
    assert!(last_start < first_end);
    assert_eq!(told.windows[0].max_in_flight, 50);
}

#[test]
fn never_more_in_flight_than_allowed() {
    let engine = engine(10.0, 0.0);
    for (limit, workers) in [(1, 1), (1, 3), (3, 2), (5, 4)] {
        let load = open(2_000.0, Arrival::Constant, Some(limit));
        let told = play(plan(engine.addr(), vec![stage(load, Some(40), None)]), workers);
        assert_eq!(numbers(&told.records), (0..40).collect::<Vec<_>>());
        assert!(told.records.iter().all(|record| record.outcome() == Outcome::Ok));
        let most = told.windows[0].max_in_flight;
        assert!(most <= limit, "{most} of {limit} by {workers} workers");
        // The wait is on record.
        let lag = told.records.iter().map(|record| record.phases.started - record.phases.scheduled).max();
        assert!(lag.unwrap() >= ms(10).0);
    }
}

#[test]
fn arrivals_that_found_no_place_are_not_sent_behind_the_stages_end() {
    let load = open(1_000.0, Arrival::Constant, Some(2));
    let mut plan = plan(serve(hang), vec![stage(load, None, Some(ms(150)))]);
    plan.drain = ms(50);
    let told = play(plan, 2);
    assert_eq!(told.records.len(), 2, "only those that had a place");
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Cancelled));
}

#[test]
fn a_rate_that_cannot_be_kept_still_sends_each_once() {
    let engine = engine(0.0, 0.0);
    let load = open(1e6, Arrival::Poisson, None);
    let told = play(plan(engine.addr(), vec![stage(load, Some(400), None)]), 2);
    assert_eq!(numbers(&told.records), (0..400).collect::<Vec<_>>());
}

/// Tokens that the engine counts around a prompt.
const TEMPLATE: u64 = 6;

const TRACE: &str = "\
TIMESTAMP,ContextTokens,GeneratedTokens\r
2023-11-16 18:17:03.9799500,40,11\r
2023-11-16 18:17:04.0319500,30,7\r
2023-11-16 18:17:04.0319501,110,27\r
2023-11-16 18:17:04.1000000,1,0\r
2023-11-16 18:17:04.1000000,5,2";

fn replay(path: &str, speed: f64, smooth: bool) -> (Load, Prompt) {
    let (path, format) = (path.to_owned(), None);
    let load = Load::Trace { path: path.clone(), format: None, speed, smooth, max_in_flight: None };
    (load, Prompt::Trace { path, format })
}

#[test]
fn a_trace_is_replayed_as_recorded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), TRACE).unwrap();
    let path = file.path().to_str().unwrap();
    let engine = engine(1.0, 0.0);
    for (speed, smooth, workers, cache, due) in [
        (1.0, false, 1, CachePolicy::Cold, [0, 52_000_000, 52_000_100, 120_050_000, 120_050_000]),
        (0.5, false, 3, CachePolicy::AsIs, [0, 104_000_000, 104_000_200, 240_100_000, 240_100_000]),
        // The last two share an instant, and the time that the one before had to itself.
        (2.0, true, 2, CachePolicy::AsIs, [0, 26_000_000, 26_000_050, 60_025_000, 77_037_475]),
    ] {
        let (load, prompt) = replay(path, speed, smooth);
        let mut plan = plan(engine.addr(), vec![stage(load, None, None)]);
        plan.warmup = 2;
        let workload = &mut plan.workloads[0];
        (workload.prompt, workload.cache, workload.output) = (prompt, cache, Some(Lengths::Recorded));
        let mut told = play(plan, workers);
        told.records.retain(|record| !record.warmup);
        told.records.sort_by_key(|record| record.seq);
        let start = told.windows[0].start;
        let offsets: Vec<i64> =
            told.records.iter().map(|record| (record.phases.scheduled - start).0).collect();
        assert_eq!(offsets, due, "speed {speed}");
        assert!(told.records.iter().all(|record| record.phases.started >= record.phases.scheduled));
        let usage = |of: fn(&Record) -> Option<u64>| told.records.iter().filter_map(of).collect::<Vec<_>>();
        assert_eq!(usage(|record| record.answer.usage.output), [11, 7, 27, 1, 2]);
        let words = usage(|record| record.answer.usage.input.map(|tokens| tokens - TEMPLATE));
        assert_eq!(words, [40, 30, 110, 1, 5]);
    }
}

#[test]
fn a_replay_may_be_cut_short() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), TRACE).unwrap();
    let (load, prompt) = replay(file.path().to_str().unwrap(), 1.0, false);
    let engine = engine(1.0, 0.0);
    for (requests, duration, sent) in [(Some(2), None, 2), (None, Some(ms(100)), 3), (Some(99), None, 5)] {
        let mut plan = plan(engine.addr(), vec![stage(load.clone(), requests, duration)]);
        plan.workloads[0].prompt = prompt.clone();
        assert_eq!(numbers(&play(plan, 2).records), (0..sent).collect::<Vec<_>>());
    }
}
