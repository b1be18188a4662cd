//! Users that wait for their answers: counts, connections, warm-up.

use std::collections::BTreeSet;

use ttft_model::{Connections, ErrorClass, HttpVersion, Outcome, Record};

use crate::run::{Told, closed, engine, numbers, plan, play, stage};

fn connections(records: &[Record]) -> BTreeSet<u64> {
    records.iter().map(|record| record.connection.id).collect()
}

fn assert_all_ok(told: &Told, count: u64) {
    assert_eq!(numbers(&told.records), (0..count).collect::<Vec<_>>());
    for record in &told.records {
        assert_eq!(record.outcome(), Outcome::Ok, "{record:?}");
        let phases = &record.phases;
        assert!(phases.scheduled <= phases.started && phases.started <= phases.connected.unwrap());
        assert!(record.finished >= record.answer.last_token.unwrap().at(), "{record:?}");
    }
    let ids: BTreeSet<_> = told.records.iter().map(|record| record.id).collect();
    assert_eq!(ids.len() as u64, count);
}

#[test]
fn each_number_is_sent_once_with_any_count_of_workers() {
    let engine = engine(1.0, 0.0);
    for (workers, users) in [(1, 1), (1, 7), (2, 7), (3, 2), (5, 16)] {
        let told = play(plan(engine.addr(), vec![stage(closed(users), Some(103), None)]), workers);
        assert_all_ok(&told, 103);
        let most = told.windows[0].max_in_flight;
        assert!(most <= users && most >= 1, "{most} of {users}");
        assert_eq!(told.windows[0].worker_cpu_ns.len(), workers as usize);
    }
}

#[test]
fn fewer_requests_than_users() {
    let engine = engine(1.0, 0.0);
    assert_all_ok(&play(plan(engine.addr(), vec![stage(closed(20), Some(3), None)]), 2), 3);
}

#[test]
fn users_that_reuse_connections_need_no_more_than_there_are_users() {
    let engine = engine(1.0, 0.0);
    let told = play(plan(engine.addr(), vec![stage(closed(4), Some(120), None)]), 2);
    assert_all_ok(&told, 120);
    // They were opened before the first request.
    assert_eq!(engine.stop().unwrap().connections, 4);
    assert!(told.records.iter().all(|record| record.connection.reused && record.phases.tcp_done.is_none()));
}

#[test]
fn users_with_connections_of_their_own() {
    let engine = engine(1.0, 0.0);
    let mut plan = plan(engine.addr(), vec![stage(closed(4), Some(120), None)]);
    plan.endpoints[0].connections = Connections::PerUser;
    let told = play(plan, 2);
    assert_all_ok(&told, 120);
    assert_eq!(connections(&told.records).len(), 4);
    assert_eq!(told.records.iter().filter(|record| !record.connection.reused).count(), 4);
    assert_eq!(engine.stop().unwrap().connections, 4);
}

#[test]
fn a_connection_for_each_request() {
    let engine = engine(1.0, 0.0);
    let mut plan = plan(engine.addr(), vec![stage(closed(4), Some(60), None)]);
    plan.endpoints[0].connections = Connections::New;
    let told = play(plan, 3);
    assert_all_ok(&told, 60);
    assert_eq!(connections(&told.records).len(), 60);
    assert!(told.records.iter().all(|record| !record.connection.reused && record.phases.tcp_done.is_some()));
    assert_eq!(engine.stop().unwrap().connections, 60);
}

#[test]
fn warm_up_requests_come_first_and_are_marked() {
    let engine = engine(1.0, 0.0);
    let stages = vec![stage(closed(3), Some(10), None), stage(closed(2), Some(7), None)];
    let mut plan = plan(engine.addr(), stages);
    plan.warmup = 5;
    let told = play(plan, 2);
    let (warm, counted): (Vec<Record>, Vec<Record>) =
        told.records.into_iter().partition(|record| record.warmup);
    assert_eq!(numbers(&warm), (0..5).collect::<Vec<_>>());
    let last_warm = warm.iter().map(|record| record.finished).max().unwrap();
    assert!(counted.iter().all(|record| record.phases.started >= last_warm));
    for (index, count) in [(0, 10), (1, 7)] {
        let of_stage: Vec<Record> = counted.iter().filter(|record| record.stage == index).cloned().collect();
        assert_eq!(numbers(&of_stage), (0..count).collect::<Vec<_>>());
    }
    assert_eq!(told.news, ["warm-up", "records", "stage 0", "records", "stage 1", "records"]);
    assert_eq!(told.windows.iter().map(|window| window.stage).collect::<Vec<_>>(), [0, 1]);
    assert!(told.windows[0].end <= Some(told.windows[1].start));
}

#[test]
fn a_server_that_is_not_there_refuses_every_request() {
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for http in [HttpVersion::H1, HttpVersion::H2] {
        let mut plan = plan(addr, vec![stage(closed(4), Some(200), None)]);
        plan.endpoints[0].http = http;
        let told = play(plan, 2);
        assert_eq!(numbers(&told.records), (0..200).collect::<Vec<_>>());
        for record in &told.records {
            assert_eq!(record.failure().unwrap().class, ErrorClass::ConnectRefused);
            assert!(record.connection.http == 0 && record.phases.sent.is_none());
        }
    }
}
