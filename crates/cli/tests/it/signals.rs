//! Ctrl-C, requests to terminate, and kill -9 in the middle of a run.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::home::{Done, Home, finish, signal, wait_for};
use crate::raw_server;
use crate::sim::Sim;

/// Answers of about 100 ms, without end.
const LONG_RUN: &str = "-c 4 -d 10m --warmup 2 --max-tokens 40 --ignore-eos --out out";

fn start(home: &Home, line: &str) -> Child {
    home.command().args(line.split_whitespace()).spawn().unwrap()
}

/// Requests of which the server has sent the end.
fn answered(home: &Home) -> u64 {
    let truth = std::fs::read_to_string(home.path("truth.jsonl")).unwrap_or_default();
    truth.lines().count() as u64
}

fn wait_until_answered(home: &Home, n: u64) -> u64 {
    wait_for("answers", || Some(answered(home)).filter(|seen| *seen >= n))
}

/// Rows of a summary, warm-up included.
fn rows(summary: &Value) -> u64 {
    let stages = summary["stages"].as_array().unwrap();
    stages
        .iter()
        .map(|s| s["requests"]["sent"].as_u64().unwrap() + s["requests"]["warmup"].as_u64().unwrap())
        .sum()
}

#[track_caller]
fn is_kept(home: &Home, done: &Done) {
    let facts: Value = serde_json::from_str(&home.read("out/run.json")).unwrap();
    assert_eq!(facts["interrupted"], true);
    assert!(
        facts["ended_ns"].is_i64() && facts["stopped_by"].as_str().unwrap().contains("signal"),
        "{facts}"
    );
    let summary = home.summary("out");
    assert_eq!(summary["run"]["interrupted"], true);
    assert!(done.out.contains("stopped before its end") && done.out.contains("TTFT"), "{done}");
    assert!(done.err.contains("ttft report out"), "{done}");
    assert_eq!(home.ttft("report out --json").expect(0).json(), summary);
}

#[test]
fn the_first_signal_lets_requests_end_and_keeps_everything() {
    for name in ["INT", "TERM"] {
        let home = Home::new();
        let sim = Sim::start(&home, "--truth truth.jsonl");
        let run = start(&home, &format!("run {} {LONG_RUN}", sim.url));
        wait_until_answered(&home, 10);
        signal(run.id(), name);
        let done = finish(run).expect(130);
        is_kept(&home, &done);
        assert!(done.err.contains("press Ctrl-C again"), "{done}");
        let summary = home.summary("out");
        assert_eq!(summary["stages"][0]["requests"]["sent"], summary["stages"][0]["requests"]["ok"]);
        assert_eq!(rows(&summary), wait_until_answered(&home, rows(&summary)), "every answer has its row");
    }
}

#[test]
fn the_second_signal_gives_up_at_once() {
    let home = Home::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    // Three answers, and silence for all who come later.
    let url = raw_server::serve(move |request| {
        if request.is_post() && counter.fetch_add(1, Ordering::SeqCst) >= 3 {
            loop {
                std::thread::park();
            }
        }
        raw_server::events(&[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, "[DONE]"])
    });
    let mut run = start(&home, &format!("run {url} --model m -c 4 -d 10m --drain 10m --warmup 0 --out out"));
    wait_for("requests", || (asked.load(Ordering::SeqCst) == 7).then_some(()));

    // The second signal goes out only when the first one is known to have been taken.
    let mut err = BufReader::new(run.stderr.take().unwrap());
    let mut said = String::new();
    signal(run.id(), "INT");
    while !said.contains("press Ctrl-C again") {
        assert_ne!(err.read_line(&mut said).unwrap(), 0, "{said}");
    }
    signal(run.id(), "INT");
    let mut done = finish(run).expect(130);
    err.read_to_string(&mut said).unwrap();
    done.err = said;
    is_kept(&home, &done);
    assert!(done.err.contains("giving up"), "{done}");
    let requests = &home.stage("out")["requests"];
    assert_eq!(requests["outcomes"], serde_json::json!({ "cancelled": 4, "ok": 3 }));
}

#[test]
fn a_signal_in_the_warm_up_ends_the_run_too() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let run = start(&home, &format!("run {} -c 1 -n 5 --warmup 100000 --out out", sim.url));
    wait_until_answered(&home, 3);
    signal(run.id(), "INT");
    let done = finish(run).expect(130);
    assert!(done.out.contains("no stage was begun"), "{done}");
    assert_eq!(home.summary("out")["stages"], Value::Array(Vec::new()));
}

#[test]
fn kill_9_leaves_what_was_written() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let run = start(&home, &format!("run {} {LONG_RUN}", sim.url));
    let before = wait_until_answered(&home, 12);
    // A run under way can be read as well; what had been answered is on disk soon.
    let read = || home.ttft("report out --json").expect(0).json();
    wait_for("the first rows", || Some(rows(&read())).filter(|rows| *rows >= before));
    signal(run.id(), "KILL");
    let killed = finish(run);
    assert_eq!(killed.code, None, "{killed}");

    let report = home.ttft("report out").expect(0);
    assert!(report.out.contains("requests ok") && report.out.contains("TTFT"), "{report}");
    let summary = read();
    assert!(rows(&summary) >= before);
    assert_eq!(summary["run"]["duration_s"], Value::Null, "nobody saw its end");
    assert_eq!(summary["stages"][0]["requests"]["failed"], 0);
}

#[test]
fn a_torn_end_of_the_rows_is_passed_over() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    home.ttft(&format!("run {} -c 2 -n 20 --warmup 0 --max-tokens 2 --out out", sim.url)).expect(0);
    let rows = std::fs::read(home.path("out/requests.arrow")).unwrap();
    std::fs::write(home.path("out/requests.arrow"), &rows[..rows.len() - 100]).unwrap();
    let report = home.ttft("report out").expect(0);
    assert!(report.err.contains("unfinished batch"), "{report}");
    std::fs::write(home.path("out/requests.arrow"), b"nothing of ours").unwrap();
    let report = home.ttft("report out").expect(2);
    assert!(report.err.contains("requests.arrow is not a file of ours"), "{report}");
}
