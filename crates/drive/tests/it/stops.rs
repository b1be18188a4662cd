//! Runs that are told to stop, and stages whose time is over.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};

use ttft_drive::Running;
use ttft_model::{Arrival, Load, Outcome};

use crate::run::{begin, closed, engine, finish, ms, numbers, plan, play, stage};
use crate::scripted::{HEAD, TOKEN, answer, event, hang, say, serve};

/// Waits until so many requests have begun.
fn await_started(running: &Running, count: u64) {
    while running.progress.started.load(Ordering::Relaxed) < count {
        std::thread::yield_now();
    }
}

#[test]
fn at_once_gives_up_what_is_under_way_and_keeps_its_records() {
    let addr = serve(|socket| {
        say(socket, &[HEAD, &event(TOKEN)].concat())?;
        hang(socket)
    });
    let running = begin(plan(addr, vec![stage(closed(8), Some(1_000), None)]), 2);
    await_started(&running, 8);
    running.stop.at_once();
    let told = finish(running);
    assert!(told.interrupted);
    assert_eq!(numbers(&told.records), (0..8).collect::<Vec<_>>());
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Cancelled));
    assert_eq!((told.windows.len(), told.windows[0].max_in_flight), (1, 8));
}

#[test]
fn at_once_reaches_requests_without_an_answer() {
    let running = begin(plan(serve(hang), vec![stage(closed(3), Some(1_000), None)]), 1);
    await_started(&running, 3);
    running.stop.at_once();
    let told = finish(running);
    assert_eq!(told.records.len(), 3);
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Cancelled));
}

#[test]
fn in_order_lets_them_end() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let addr = serve(move |socket| {
        wait.lock().unwrap().recv().unwrap();
        say(socket, &answer())
    });
    let stages = vec![stage(closed(4), Some(1_000), None), stage(closed(4), Some(1_000), None)];
    let running = begin(plan(addr, stages), 2);
    await_started(&running, 4);
    running.stop.in_order();
    for _ in 0..4 {
        go.send(()).unwrap();
    }
    let told = finish(running);
    assert!(told.interrupted);
    assert_eq!(numbers(&told.records), [0, 1, 2, 3]);
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Ok), "{:?}", told.records);
    assert_eq!(told.news, ["stage 0", "records"]);
}

#[test]
fn in_order_waits_no_longer_than_the_drain() {
    let mut plan = plan(serve(hang), vec![stage(closed(4), Some(1_000), None)]);
    plan.drain = ms(50);
    let running = begin(plan, 2);
    await_started(&running, 4);
    running.stop.in_order();
    let told = finish(running);
    assert_eq!(told.records.len(), 4);
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Cancelled));
}

#[test]
fn a_run_stopped_before_its_first_request_ends() {
    let engine = engine(1.0, 0.0);
    let running = begin(plan(engine.addr(), vec![stage(closed(2), Some(1_000_000), None)]), 2);
    running.stop.at_once();
    let told = finish(running);
    assert!(told.interrupted && told.records.len() <= 2);
}

#[test]
fn no_request_starts_after_the_stages_time() {
    let engine = engine(3.0, 1.0);
    let loads = [closed(4), Load::open(300.0, Arrival::Poisson)];
    let stages = loads.map(|load| stage(load, None, Some(ms(200)))).to_vec();
    let told = play(plan(engine.addr(), stages), 2);
    assert!(!told.interrupted);
    for window in &told.windows {
        let records: Vec<_> = told.records.iter().filter(|record| record.stage == window.stage).collect();
        assert!(!records.is_empty());
        for record in records {
            assert_eq!(record.outcome(), Outcome::Ok, "{record:?}");
            assert!(record.phases.scheduled - window.start < ms(200).0, "{record:?}");
        }
        let (dry, end) = (window.dry.unwrap(), window.end.unwrap());
        assert!(window.start <= dry && dry <= end && end - window.start >= ms(200).0 - ms(50).0);
    }
}

#[test]
fn what_outlives_the_stages_time_is_drained_or_given_up() {
    let mut plan = plan(serve(hang), vec![stage(closed(5), None, Some(ms(400)))]);
    plan.drain = ms(40);
    let told = play(plan, 2);
    assert!(!told.interrupted);
    assert_eq!(told.records.len(), 5);
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Cancelled));
    let window = &told.windows[0];
    assert!(window.end.unwrap() - window.start >= ms(440).0);
}

#[test]
fn a_ramp_longer_than_the_stage_does_not_make_it_longer() {
    let engine = engine(1.0, 0.0);
    let load = Load::Closed { concurrency: 4, ramp_up: ms(3_600_000), think_time: None };
    let told = play(plan(engine.addr(), vec![stage(load, None, Some(ms(400)))]), 2);
    assert!(told.windows[0].max_in_flight == 1 && !told.records.is_empty());
}

#[test]
fn a_run_stopped_while_connections_are_opened_ends() {
    // It accepts, and never answers the handshake.
    let (told, reached) = mpsc::channel();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let kept: Vec<_> = listener.incoming().inspect(|_| told.send(()).unwrap_or_default()).collect();
        drop(kept);
    });
    let mut plan = plan(addr, vec![stage(closed(4), Some(1_000), None)]);
    plan.endpoints[0].url = format!("https://{addr}/v1/chat/completions");
    plan.timeouts.connect = ms(3_600_000);
    let running = begin(plan, 1);
    reached.recv().unwrap();
    running.stop.at_once();
    let told = finish(running);
    assert!(told.interrupted && told.records.is_empty());
}
