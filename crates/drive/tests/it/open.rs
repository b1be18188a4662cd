//! Arrivals that wait for nobody.

use ttft_drive::Arrivals;
use ttft_model::{Arrival, Load, Nanos, Outcome};

use crate::run::{engine, ms, numbers, plan, play, stage};
use crate::scripted::{hang, serve};

fn open(rate: f64, arrival: Arrival, max_in_flight: Option<u32>) -> Load {
    Load::Open { rate, arrival, max_in_flight }
}

#[test]
fn requests_are_sent_on_schedule_by_any_count_of_workers() {
    let engine = engine(1.0, 0.0);
    for (arrival, workers) in [(Arrival::Constant, 1), (Arrival::Poisson, 3), (Arrival::Gamma(0.5), 2)] {
        let plan = plan(engine.addr(), vec![stage(open(400.0, arrival, None), Some(60), None)]);
        let due: Vec<Nanos> = Arrivals::new(400.0, arrival, plan.seed).take(60).collect();
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
