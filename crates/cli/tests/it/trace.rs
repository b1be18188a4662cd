//! `ttft trace`: one request across client, scraped levels and logs.

use std::fmt::Write as _;

use serde_json::Value;

use crate::home::Home;
use crate::sim::Sim;

const HOUR_MS: f64 = 3_600_000.0;

/// A run of a few requests, and each of them as `--slowest` lists it.
fn traced_run(home: &Home) -> Vec<Value> {
    let sim = Sim::start(home, "");
    home.ttft(&format!("run {} -c 2 -n 10 --warmup 2 --max-tokens 8 --out out", sim.url)).expect(0);
    home.ttft("trace out --slowest 100 --json").expect(0).json().as_array().unwrap().clone()
}

/// The wall clock of a request's start, in nanoseconds.
fn started(home: &Home, row: &Value) -> i64 {
    let facts: Value = serde_json::from_str(&home.read("out/run.json")).unwrap();
    facts["zero_unix_ns"].as_i64().unwrap() + (row["started_s"].as_f64().unwrap() * 1e9) as i64
}

fn id(row: &Value) -> &str {
    row["request_id"].as_str().unwrap()
}

#[test]
fn the_slowest_are_listed_and_one_is_shown() {
    let home = Home::new();
    let rows = traced_run(&home);
    assert_eq!(rows.len(), 10, "the warm-up is not counted");
    let ttfts: Vec<f64> = rows.iter().map(|row| row["ttft_ms"].as_f64().unwrap()).collect();
    assert!(ttfts.is_sorted_by(|a, b| a >= b), "{ttfts:?}");
    assert_eq!(home.ttft("trace out --slowest 3 --json").expect(0).json().as_array().unwrap(), &rows[..3]);

    let whole = home.ttft(&format!("trace out {} --json", id(&rows[0]))).expect(0).json();
    assert_eq!(whole["ttft_ms"], rows[0]["ttft_ms"]);
    assert_eq!((&whole["outcome"], &whole["http_status"]), (&"ok".into(), &200.into()));
    let phases = whole["phases"].as_array().unwrap();
    assert!(phases.iter().any(|phase| phase["name"] == "to first token"), "{whole}");
    let levels = whole["levels"].as_array().unwrap();
    assert!(levels.iter().any(|level| level["values"]["running"].is_number()), "{whole}");
    // Its trace and its answer name it as well, in capitals and without hyphens too.
    for other in [
        whole["trace_id"].as_str().unwrap().to_owned(),
        whole["response_id"].as_str().unwrap().to_owned(),
        id(&rows[0]).replace('-', "").to_uppercase(),
    ] {
        let again = home.ttft(&format!("trace out {other} --json")).expect(0).json();
        assert_eq!(again["request_id"], whole["request_id"]);
    }
    let text = home.ttft(&format!("trace out {}", id(&rows[0]))).expect(0).out;
    for part in [id(&rows[0]), "TTFT", "to first token", "/metrics", "running"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_id_that_fits_none_or_several_is_an_error() {
    let home = Home::new();
    let rows = traced_run(&home);
    // All ids of a run begin with its time.
    let several = home.ttft(&format!("trace out {}", &id(&rows[0])[..4])).expect(2);
    assert!(several.err.contains("requests have ids that begin with"), "{several}");
    let none = home.ttft("trace out ffffffff").expect(2);
    assert!(none.err.contains("no request of this run") && none.err.contains("--slowest"), "{none}");
    home.ttft("trace out").expect(2);
    home.ttft("trace nowhere ffff").expect(2);
}

/// `2026-11-30T16:20:05.123` of an instant.
fn date(unix_ns: i64) -> String {
    let name = ttft_store::folder_name(unix_ns, "x");
    let (date, clock) = name.strip_suffix("Z-x").unwrap().split_once('T').unwrap();
    format!("{date}T{}.{:03}", clock.replace('-', ":"), unix_ns.rem_euclid(1_000_000_000) / 1_000_000)
}

/// `30/Nov/2026:16:20:05 +0000` of an instant.
fn nginx_date(unix_ns: i64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let date = date(unix_ns);
    let month: usize = date[5..7].parse().unwrap();
    format!("{}/{}/{}:{} +0000", &date[8..10], MONTHS[month - 1], &date[..4], &date[11..19])
}

#[test]
fn logs_of_nginx_envoy_and_vllm_are_joined_by_the_id() {
    let home = Home::new();
    let rows = traced_run(&home);
    let (mut nginx, mut envoy, mut vllm) = (String::new(), String::new(), String::new());
    for row in &rows {
        let (id, at) = (id(row), started(&home, row));
        let _ =
            writeln!(nginx, "127.0.0.1 [{}] \"POST /v1/chat/completions\" 200 {id} 0.049", nginx_date(at));
        // Envoy in another zone, two hours ahead.
        let ahead = date(at + 2 * 3_600_000_000_000);
        let _ =
            writeln!(envoy, "[{ahead}] \"POST /v1 HTTP/1.1\" 200 - 0 99 49 47 \"{id}\" \"10.0.0.9:8000\"");
        let at = at + 5_000_000;
        let _ = writeln!(
            vllm,
            "INFO {} [logger.py:39] Received request chatcmpl-{id}: prompt",
            &date(at)[5..19].replace('T', " ")
        );
        let _ = writeln!(
            vllm,
            "INFO {} [async_llm.py:1] Added request chatcmpl-{id}.",
            &date(at)[5..19].replace('T', " ")
        );
    }
    home.write("nginx.log", &nginx);
    home.write("envoy.log", &envoy);
    home.write("vllm.log", &vllm);
    let logs = "--log nginx.log --log envoy.log --log vllm.log";
    let whole = home.ttft(&format!("trace out {} {logs} --json", id(&rows[4]))).expect(0).json();
    let log = |at: usize| &whole["logs"][at];
    let lines = |at: usize| log(at)["lines"].as_array().unwrap().len();
    assert_eq!((lines(0), lines(1), lines(2)), (1, 1, 2), "{whole}");
    assert_eq!(log(0)["clock"]["ahead_ms"], 0.0);
    assert_eq!(log(1)["clock"]["ahead_ms"], 2.0 * HOUR_MS);
    assert_eq!(log(1)["clock"]["of_lines"], 10);
    let at = log(1)["lines"][0]["at_ms"].as_f64().unwrap();
    assert!((-1.1..=0.1).contains(&at), "the clock is set right: {at}");
    assert_eq!(log(2)["clock"]["ahead_ms"], 0.0);

    let text = home.ttft(&format!("trace out {} {logs}", id(&rows[4]))).expect(0).out;
    assert!(text.contains("2 h 0 min 0.000 s ahead of ours, taken out below (10 of 10"), "{text}");
    assert!(text.contains("agrees with ours") && text.contains("Received request"), "{text}");
}

#[test]
fn a_pattern_takes_a_line_apart() {
    let home = Home::new();
    let rows = traced_run(&home);
    let mut log = String::new();
    for row in &rows {
        let ms = started(&home, row) / 1_000_000 + 3;
        let _ = writeln!(log, "end=99 start={}.{:03} req={} up=0.048", ms / 1000, ms % 1000, id(row));
    }
    home.write("gw.log", &log);
    let pattern = r"start=(?<time>\S+) req=(?<id>\S+) up=(?<upstream_s>\S+)";
    let line = format!("trace out {} --log gw.log --json", id(&rows[0]));
    let whole = home.ttft_with(&line, &["--pattern", pattern]).expect(0).json();
    let line = &whole["logs"][0]["lines"][0];
    assert_eq!(line["fields"], serde_json::json!({ "upstream_s": "0.048" }));
    let at = line["at_ms"].as_f64().unwrap();
    assert!((1.9..=3.1).contains(&at), "{at}");

    let bad =
        |pattern: &str| home.ttft_with("trace out ffff --log gw.log", &["--pattern", pattern]).expect(2).err;
    assert!(home.ttft_with("trace out 0", &["--pattern", pattern]).expect(2).err.contains("--log"));
    for pattern in ["(?<id>", "(?<time>x)"] {
        let line = format!("trace out {} --log gw.log", id(&rows[0]));
        let done = home.ttft_with(&line, &["--pattern", pattern]).expect(2);
        assert!(done.err.contains("--pattern"), "{done}");
    }
    assert!(bad(pattern).contains("no request of this run"));
}

#[test]
fn a_log_without_the_request_and_hostile_lines() {
    let home = Home::new();
    let rows = traced_run(&home);
    home.write("empty.log", "");
    home.write("evil.log", &format!("{} \u{1b}[2J\u{1b}]0;owned\u{7} no time\n", id(&rows[0])));
    let done = home.ttft(&format!("trace out {} --log empty.log --log evil.log", id(&rows[0]))).expect(0);
    assert!(done.out.contains("no line of this request") && done.out.contains("x-request-id"), "{done}");
    assert!(!done.out.contains('\u{1b}') && done.out.contains("no time"), "{done}");
    let missing = home.ttft(&format!("trace out {} --log nope.log", id(&rows[0]))).expect(2);
    assert!(missing.err.contains("cannot read nope.log"), "{missing}");
}

#[test]
fn another_header_carries_the_id() {
    let home = Home::new();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = seen.clone();
    let url = crate::raw_server::serve(move |asked| {
        let id = asked.header("x-amzn-trace-id").unwrap_or("none").to_owned();
        let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        let headers = format!("content-type: text/event-stream\r\nx-amzn-trace-id: {id}\r\n");
        if asked.is_post() {
            assert_eq!(asked.header("x-request-id"), None);
            kept.lock().unwrap().push(id);
        }
        crate::raw_server::answer("200 OK", &headers, body)
    });
    let flags = "--model m -c 1 -n 2 --warmup 0 --request-id-header X-Amzn-Trace-Id --out out";
    home.ttft(&format!("run {url} {flags}")).expect(0);
    let ids = seen.lock().unwrap().clone();
    let whole = home.ttft(&format!("trace out {} --json", ids[1])).expect(0).json();
    assert_eq!((&whole["id_echoed"], &whole["request_id_header"]), (&true.into(), &"x-amzn-trace-id".into()));
    assert_eq!(home.ttft("run sim:instant --request-id-header no\u{fc}").expect(2).out, "");
}
