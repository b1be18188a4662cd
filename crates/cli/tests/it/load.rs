//! How much is sent, when, and over which connections.

use serde_json::Value;

use crate::home::Home;
use crate::sim::Sim;

fn names(summary: &Value) -> Vec<&str> {
    summary["stages"].as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap()).collect()
}

fn sent(summary: &Value) -> Vec<u64> {
    let stages = summary["stages"].as_array().unwrap();
    stages.iter().map(|stage| stage["requests"]["sent"].as_u64().unwrap()).collect()
}

/// Requests that the server saw, by its own record.
fn seen(home: &Home) -> usize {
    home.read("truth.jsonl").lines().filter(|line| line.starts_with('{')).count()
}

#[test]
fn a_list_makes_a_stage_of_each() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    home.ttft(&format!("run {} -c 1,8 -n 16 --warmup 3 --max-tokens 4 --out closed", sim.url)).expect(0);
    let summary = home.summary("closed");
    assert_eq!((names(&summary), sent(&summary)), (vec!["c1", "c8"], vec![16, 16]));
    home.ttft(&format!("run {} --rate 40,200.5 -n 10 --warmup 3 --max-tokens 4 --out open", sim.url))
        .expect(0);
    let summary = home.summary("open");
    assert_eq!((names(&summary), sent(&summary)), (vec!["r40", "r200.5"], vec![10, 10]));
    assert_eq!(seen(&home), (3 + 16 + 16) + (3 + 10 + 10), "and one warm-up a run");
}

#[test]
fn an_open_loop_sends_exactly_as_many_as_asked() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    for arrival in ["constant", "poisson", "gamma:0.5"] {
        let flags = format!("--rate 200 -n 50 --arrival {arrival} --warmup 0 --max-tokens 2");
        home.ttft(&format!("run {} {flags} --out {arrival}", sim.url)).expect(0);
        let stage = home.stage(arrival);
        assert_eq!(stage["requests"]["sent"], 50, "{arrival}");
        assert_eq!(stage["requests"]["warmup"], 0);
        assert_eq!(stage["load"]["kind"], "open");
        assert_eq!(stage["client"]["send_lag_ms"]["n"], 50);
    }
    assert_eq!(seen(&home), 150);
}

#[test]
fn arrivals_over_the_limit_wait() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    for limit in [1, 3] {
        let flags = format!("--rate 1000 -n 20 --max-in-flight {limit} --warmup 0 --max-tokens 2");
        home.ttft(&format!("run {} {flags} --out {limit}", sim.url)).expect(0);
        let stage = home.stage(&limit.to_string());
        assert_eq!(stage["requests"]["ok"], 20);
        assert_eq!(stage["client"]["max_in_flight"], limit);
        // 20 answers of over 20 ms each, so many at a time: the last ones waited long.
        let lag = stage["client"]["send_lag_ms"]["max"].as_f64().unwrap();
        assert!(lag > f64::from(20 / limit - 2) * 20.0 - 20.0, "{lag} at {limit}");
        let ttft = &stage["latency_ms"];
        assert!(ttft["ttft_scheduled"]["max"].as_f64() > ttft["ttft"]["max"].as_f64());
    }
}

#[test]
fn a_duration_ends_a_stage_and_the_drain_ends_its_requests() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    home.ttft(&format!("run {} -c 2 -d 500ms --warmup 0 --max-tokens 4 --out out", sim.url)).expect(0);
    let stage = home.stage("out");
    assert!(stage["requests"]["sent"].as_u64().unwrap() >= 2, "{stage}");
    assert_eq!(stage["requests"]["sent"], stage["requests"]["ok"]);
    assert!(stage["windows"]["whole"]["duration_s"].as_f64().unwrap() >= 0.5, "{}", stage["windows"]);

    // 5,000 tokens take 10 s.
    let flags = "-c 2 -d 200ms --drain 100ms --warmup 0 --max-tokens 5000 --ignore-eos --out cut";
    let done = home.ttft(&format!("run {} {flags}", sim.url)).expect(3);
    let requests = &home.stage("cut")["requests"];
    assert_eq!(requests["outcomes"], serde_json::json!({ "cancelled": 2 }));
    assert_eq!(requests["failed"], 0, "the server did nothing wrong");
    assert!(done.out.contains("cut off by the end of the run"), "{done}");
}

#[test]
fn a_ramp_starts_users_one_after_another() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    home.ttft(&format!("run {} -c 4 -n 12 --ramp-up 200ms --warmup 0 --max-tokens 4 --out out", sim.url))
        .expect(0);
    let stage = home.stage("out");
    assert_eq!(stage["requests"]["ok"], 12);
    assert_eq!(stage["load"]["ramp_up"], "200ms");
}

#[test]
fn connections_are_used_as_asked() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let reused_and_made = |how: &str| {
        let flags = format!("-c 2 -n 10 --warmup 0 --max-tokens 2 --connections {how} --out {how}");
        home.ttft(&format!("run {} {flags}", sim.url)).expect(0);
        let stage = home.stage(how);
        let made = stage["latency_ms"]["tcp_time"]["n"].as_u64();
        (stage["stream"]["reused"].as_u64().unwrap(), made.unwrap_or(0))
    };
    assert_eq!(reused_and_made("new"), (0, 10));
    assert_eq!(reused_and_made("per-user"), (8, 2));
    // The two were opened ahead of the stage, so that no handshake is in its figures.
    assert_eq!(reused_and_made("reuse"), (10, 0));
}
