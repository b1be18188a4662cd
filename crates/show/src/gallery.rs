//! What users see, as snapshots: made-up runs folded by `judge` and shown.

mod made_up;

use insta::assert_snapshot;
use made_up::{Answer, Made, fail, run};
use ttft_judge::check::{self, CheckContext};
use ttft_judge::{Finding, Level, Summary};
use ttft_model::{Arrival, ErrorClass, Failure, Load, Nanos, Outcome, Record, Stamp};

use crate::{Style, summary_text, waterfall_text};

const WIDE: Style = Style { color: false, width: 100 };
const NARROW: Style = Style { color: false, width: 80 };

fn users(concurrency: u32) -> Load {
    Load::closed(concurrency)
}

/// Lines that fit, but for a URL that is longer than a line.
#[track_caller]
fn fits(text: &str, style: Style) {
    for line in text.lines().filter(|line| !line.contains("http://")) {
        assert!(line.chars().count() <= style.width, "{} wide: {line}", line.chars().count());
    }
}

fn both(summary: &Summary) -> String {
    let (wide, narrow) = (summary_text(summary, &WIDE), summary_text(summary, &NARROW));
    fits(&wide, WIDE);
    fits(&narrow, NARROW);
    format!("{wide}\n{}\n{narrow}", "=".repeat(80))
}

#[test]
fn one_stage() {
    let made = Made { load: users(8), answer: Answer::default(), requests: 400, ..Made::default() };
    assert_snapshot!(both(&run(&[made], &["ttft_p95<2s", "tpot<30ms", "error_rate<1%"])));
}

#[test]
fn sweep_with_a_rising_tail() {
    let stages: Vec<Made> =
        [(1, 0.05, 40), (4, 0.08, 160), (16, 0.15, 640), (32, 0.6, 1280), (64, 1.1, 1280)]
            .into_iter()
            .map(|(level, spread, requests)| Made {
                name: format!("c={level}"),
                load: users(level),
                answer: Answer { ttft_ms: 180.0 + f64::from(level), spread, ..Answer::default() },
                requests,
                ..Made::default()
            })
            .collect();
    assert_snapshot!(both(&run(&stages, &["ttft_p95<1s"])));
}

#[test]
fn failures() {
    let mut made = Made { load: users(8), requests: 120, ..Made::default() };
    made.failed = (0..14)
        .map(|i| match i % 7 {
            0 => fail(i, ErrorClass::Reset, None, "connection reset by peer"),
            1..5 => {
                fail(i, ErrorClass::HttpOverloaded, Some(503), "queue \u{1b}[31mis full\u{202e}\nretry later")
            }
            _ => fail(i, ErrorClass::HttpOverloaded, Some(503), "no capacity"),
        })
        .collect();
    assert_snapshot!(both(&run(&[made], &["ttft_p95<2s", "error_rate<1%"])));
}

#[test]
fn a_sweep_with_something_to_say() {
    let good = Made { name: "short".to_owned(), load: users(2), requests: 60, ..Made::default() };
    let answer = Answer { read_lag_ms: 9.0, ..Answer::default() };
    let mut bad = Made { name: "long".to_owned(), load: users(16), answer, requests: 12, ..Made::default() };
    bad.failed = (0..3).map(|i| fail(i, ErrorClass::TimeoutFirstToken, None, "")).collect();
    assert_snapshot!(both(&run(&[good, bad], &["ttft_p95<2s", "error_rate<1%"])));
}

#[test]
fn an_invalid_client() {
    let answer = Answer { read_lag_ms: 12.0, first_coalesced: true, ..Answer::default() };
    let load = Load::open(40.0, Arrival::Poisson);
    let made = Made { load, answer, requests: 200, send_lag_ms: 45, cpu_percent: 99.0, ..Made::default() };
    assert_snapshot!(both(&run(&[made], &[])));
}

#[test]
fn an_endpoint_that_buffers_and_counts_nothing() {
    let answer = Answer { one_read: true, counted: false, reasoning_ms: 150, ..Answer::default() };
    let made = Made { load: users(2), answer, requests: 12, ..Made::default() };
    let mut summary = run(&[made], &[]);
    summary.run.interrupted = true;
    summary.run.stopped_by = Some("Ctrl-C".to_owned());
    summary.contamination.push(
        Finding::new(Level::Warn, "the server restarted during the run")
            .because("process_start_time_seconds went from 1,700 to 1,760")
            .remedy("run again, and look at why it restarted"),
    );
    assert_snapshot!(both(&summary));
}

#[test]
fn a_sweep_with_a_server_beside_it() {
    let stages = [(1, 180.0, 40, 172.0, 0.0), (16, 190.0, 320, 181.0, 2.0), (64, 900.0, 1280, 640.0, 470.0)];
    let mut made = Vec::new();
    let mut told = Vec::new();
    for (i, (level, ttft_ms, requests, server_ms, queue_ms)) in stages.into_iter().enumerate() {
        let answer = Answer { ttft_ms, spread: 0.05, ..Answer::default() };
        let name = format!("c={level}");
        made.push(Made { name, load: users(level), answer, requests, ..Made::default() });
        told.push(made_up::engine(i as u32, f64::from(requests), server_ms, queue_ms));
    }
    assert_snapshot!(both(&made_up::run_with(&made, &[], &told)));
}

#[test]
fn nothing_was_ok() {
    let mut made = Made { load: users(2), requests: 0, ..Made::default() };
    made.failed = (0..20).map(|i| fail(i, ErrorClass::ConnectRefused, None, "connection refused")).collect();
    assert_snapshot!(both(&run(&[made], &["ttft_p95<2s"])));
}

#[test]
fn no_stage() {
    assert!(summary_text(&run(&[], &[]), &WIDE).contains("no stage was begun"));
}

#[test]
fn colour_changes_no_letter() {
    let made = Made { load: users(8), requests: 40, ..Made::default() };
    let summary = run(&[made], &["ttft_p95<2s"]);
    let coloured = summary_text(&summary, &Style { color: true, ..WIDE });
    assert!(coloured.contains("\u{1b}["));
    assert_eq!(strip(&coloured), summary_text(&summary, &WIDE));
}

fn strip(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap().to_owned();
    parts.for_each(|part| out.push_str(part.split_once('m').unwrap().1));
    out
}

fn checked() -> (Record, CheckContext) {
    let kernel = |us: i64| Some(Stamp { kernel: Some(Nanos(us * 1000)), user: Nanos(us * 1000 + 38_000) });
    let mut r = Answer::default().record(0, 240.0);
    r.connection.reused = false;
    (r.connection.http, r.connection.tls, r.status) = (1, true, Some(200));
    r.phases.dns_done = Some(Nanos(1_200_000));
    r.phases.tcp_done = Some(Nanos(11_500_000));
    r.phases.tls_done = Some(Nanos(34_000_000));
    r.phases.connected = r.phases.tls_done;
    (r.phases.sent_first, r.phases.sent) = (Some(Nanos(34_030_000)), Some(Nanos(34_050_000)));
    r.phases.headers = kernel(58_000);
    r.answer.first_event = kernel(61_000);
    r.answer.finish_reason = Some("length".to_owned());
    let context = CheckContext {
        server: Some("uvicorn\u{1b}[2J".to_owned()),
        second_reused: Some(true),
        key_sent: true,
        model: Some("m".to_owned()),
        models: Some(vec!["m".to_owned()]),
        usage_asked: true,
        ..CheckContext::default()
    };
    (r, context)
}

#[test]
fn waterfall() {
    let (record, context) = checked();
    let findings = check::findings(&record, &context);
    let (wide, narrow) =
        (waterfall_text(&record, &findings, &WIDE), waterfall_text(&record, &findings, &NARROW));
    fits(&wide, WIDE);
    fits(&narrow, NARROW);
    assert_snapshot!(format!("{wide}\n{}\n{narrow}", "=".repeat(80)));
}

#[test]
fn waterfall_of_a_failure() {
    let (mut record, context) = checked();
    record.answer = ttft_model::Answer {
        outcome: Some(Outcome::Error),
        failure: Some(Failure::new(ErrorClass::HttpAuth, "invalid api key")),
        ..ttft_model::Answer::default()
    };
    record.status = Some(401);
    record.finished = Nanos(58_300_000);
    let findings = check::findings(&record, &context);
    assert_snapshot!(waterfall_text(&record, &findings, &WIDE));
}
