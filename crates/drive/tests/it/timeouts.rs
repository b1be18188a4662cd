//! Requests that take too long, each in its way.

use std::net::SocketAddr;
use std::time::Duration;

use ttft_model::{ErrorClass, Outcome, Record, Timeouts};

use crate::run::{closed, ms, plan, play, stage};
use crate::scripted::{HEAD, ROLE, TOKEN, event, hang, say, serve};

/// Three requests of one user under these limits; each must time out by `class`.
fn timed_out(addr: SocketAddr, limits: Timeouts, class: ErrorClass) -> Vec<Record> {
    let mut plan = plan(addr, vec![stage(closed(1), Some(3), None)]);
    plan.timeouts = limits;
    let told = play(plan, 1);
    assert_eq!(told.records.len(), 3);
    for record in &told.records {
        assert_eq!(record.outcome(), Outcome::Timeout, "{record:?}");
        let failure = record.failure().unwrap();
        assert_eq!(failure.class, class, "{record:?}");
        let limit = match class {
            ErrorClass::TimeoutFirstToken => limits.first_token,
            ErrorClass::TimeoutIdle => limits.idle,
            _ => limits.total,
        };
        assert!(failure.message.contains(&limit.to_string()), "{failure:?}");
        assert!(record.finished - record.phases.started >= limit.0, "given up too early: {record:?}");
        assert!(record.phases.sent.is_some() && record.connection.http == 1);
    }
    told.records
}

fn limits(first_token: i64, idle: i64, total: i64) -> Timeouts {
    Timeouts { connect: ms(20_000), first_token: ms(first_token), idle: ms(idle), total: ms(total) }
}

const LONG: i64 = 40_000;

#[test]
fn no_answer_at_all() {
    let addr = serve(hang);
    let records = timed_out(addr, limits(60, LONG, LONG), ErrorClass::TimeoutFirstToken);
    assert!(records.iter().all(|record| record.status.is_none() && record.phases.headers.is_none()));
}

#[test]
fn a_head_and_a_role_are_no_token() {
    let addr = serve(|socket| {
        say(socket, &[HEAD, &event(ROLE)].concat())?;
        hang(socket)
    });
    let records = timed_out(addr, limits(80, LONG, LONG), ErrorClass::TimeoutFirstToken);
    assert!(records.iter().all(|record| record.answer.first_token.is_none()));
}

#[test]
fn comments_do_not_put_off_the_first_token() {
    let addr = serve(|socket| {
        say(socket, HEAD)?;
        while say(socket, "8\r\n: wait\n\n\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        hang(socket)
    });
    timed_out(addr, limits(80, LONG, LONG), ErrorClass::TimeoutFirstToken);
}

#[test]
fn a_stream_that_stands_still() {
    let addr = serve(|socket| {
        say(socket, &[HEAD, &event(TOKEN)].concat())?;
        hang(socket)
    });
    // The limit of the first token has passed long before; it must not matter any more.
    let records = timed_out(addr, limits(20_000, 70, LONG), ErrorClass::TimeoutIdle);
    for record in records {
        assert!(record.answer.first_token.is_some() && record.status == Some(200), "{record:?}");
        let idle = record.finished - record.answer.last_token.unwrap().user;
        assert!(idle >= ms(70).0, "{idle:?}");
    }
}

#[test]
fn a_stream_that_never_ends() {
    let addr = serve(|socket| {
        say(socket, HEAD)?;
        while say(socket, &event(TOKEN)).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        hang(socket)
    });
    let records = timed_out(addr, limits(20_000, 20_000, 150), ErrorClass::TimeoutTotal);
    assert!(records.iter().all(|record| record.answer.events.len() > 1));
}

#[test]
fn a_flood_that_never_ends() {
    // There is always more to read: the limits must be looked at all the same.
    let addr = serve(|socket| {
        say(socket, HEAD)?;
        let flood = event(TOKEN).repeat(1_000);
        while say(socket, &flood).is_ok() {}
        hang(socket)
    });
    let records = timed_out(addr, limits(20_000, 20_000, 100), ErrorClass::TimeoutTotal);
    for record in records {
        let over = record.finished - record.phases.started;
        assert!(over < ms(10_000).0, "noticed {over:?} after the start");
    }
}

#[test]
fn the_total_counts_before_the_first_token_too() {
    let records = timed_out(serve(hang), limits(20_000, 20_000, 60), ErrorClass::TimeoutTotal);
    assert!(records.iter().all(|record| record.answer.first_token.is_none()));
}
