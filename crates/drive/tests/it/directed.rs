//! Runs whose stages are decided on the way, and stages that are ended before their end.

use std::sync::atomic::Ordering;

use ttft_drive::{Director, Message, Rest, Running, Stop, start_directed};
use ttft_model::{Outcome, Plan, StageWindow};

use crate::run::{Told, begin, closed, engine, finish, job, ms, numbers, plan, stage};
use crate::scripted::{hang, serve};

fn directed(plan: Plan) -> (Running, Director) {
    start_directed(job(plan, 2), Stop::default())
}

/// Listens until a stage is over.
fn await_window(running: &Running, told: &mut Told) -> StageWindow {
    loop {
        match running.messages.recv().unwrap() {
            Message::StageEnded(window) => return window,
            Message::Records(records) => told.records.extend(records),
            Message::StageBegan { stage, .. } => told.news.push(format!("stage {stage}")),
            Message::WarmUp { .. } => told.news.push("warm-up".to_owned()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_next_stage_is_decided_by_the_last() {
    let engine = engine(1.0, 0.0);
    let mut plan = plan(engine.addr(), vec![stage(closed(1), Some(5), None)]);
    plan.warmup = 2;
    let (running, director) = directed(plan);
    let mut told = Told::default();
    for users in [1, 2, 4] {
        let window = await_window(&running, &mut told);
        let seen = told.records.iter().filter(|r| !r.warmup && r.stage == window.stage).count();
        assert_eq!((window.stage, seen as u32), (users / 2, 4 + users), "all records come before its end");
        assert!(director.play(stage(closed(2 * users), Some(u64::from(4 + 2 * users)), None)));
    }
    drop(director);
    let rest = finish(running);
    assert!(!rest.interrupted);
    assert_eq!((rest.windows[0].stage, rest.records.len()), (3, 12));
    assert_eq!(told.news, ["warm-up", "stage 0", "stage 1", "stage 2"]);
}

#[test]
fn a_run_without_planned_stages_waits_for_the_first_and_may_be_stopped_meanwhile() {
    let engine = engine(1.0, 0.0);
    let (running, director) = directed(plan(engine.addr(), Vec::new()));
    assert!(director.play(stage(closed(2), Some(3), None)));
    let mut told = Told::default();
    assert_eq!(await_window(&running, &mut told).stage, 0);
    assert_eq!(numbers(&told.records), [0, 1, 2]);
    // Nobody says what comes next.
    running.stop.in_order();
    assert!(finish(running).interrupted);
    assert!(!director.play(stage(closed(2), Some(3), None)));
}

#[test]
fn a_stage_ended_early_lets_its_requests_end_and_the_next_one_begin() {
    let engine = engine(1.0, 0.0);
    let stages = vec![stage(closed(4), Some(1_000_000), None), stage(closed(2), Some(6), None)];
    let running = begin(plan(engine.addr(), stages), 2);
    while running.progress.ok.load(Ordering::Relaxed) < 50 {
        std::thread::yield_now();
    }
    assert!(!running.end_stage(1, Rest::Drain, "not this one".to_owned()));
    assert!(running.end_stage(0, Rest::Drain, "enough".to_owned()));
    let told = finish(running);
    assert!(!told.interrupted && told.records.len() < 1_000_000);
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Ok));
    assert_eq!(told.windows[0].ended_early.as_deref(), Some("enough"));
    assert_eq!((told.windows[1].ended_early.as_deref(), told.windows[1].stage), (None, 1));
}

#[test]
fn a_stage_ended_at_once_gives_up_what_is_under_way() {
    let stages = vec![stage(closed(3), None, Some(ms(3_600_000))), stage(closed(2), Some(2), None)];
    let mut plan = plan(serve(hang), stages);
    plan.timeouts.first_token = ms(300_000);
    let running = begin(plan, 2);
    for stage in [0, 1] {
        while !running.end_stage(stage, Rest::Cancel, format!("no {stage}")) {
            std::thread::yield_now();
        }
    }
    let told = finish(running);
    assert!(!told.interrupted);
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Cancelled));
    let why: Vec<_> = told.windows.iter().map(|window| window.ended_early.as_deref()).collect();
    assert_eq!(why, [Some("no 0"), Some("no 1")]);
}
