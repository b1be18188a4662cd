//! Every fault of the simulated engine, and what a run says of it.

use serde_json::{Value, json};

use crate::home::{Done, Home};
use crate::sim::Sim;

const REQUESTS: u64 = 6;

/// A run against an engine with that fault; the first stage of its summary.
fn under(fault: &str, tokens: u64, flags: &str) -> (Done, Value) {
    let home = Home::new();
    let sim = Sim::start(&home, &format!("--fault {fault}"));
    let flags = format!("-c 2 -n {REQUESTS} --warmup 0 --max-tokens {tokens} --ignore-eos {flags}");
    let done = home.ttft(&format!("run {} {flags} --out out", sim.url));
    let stage = home.stage("out");
    assert_eq!(stage["requests"]["sent"], REQUESTS, "{fault}: {done}");
    (done, stage)
}

#[track_caller]
fn fails(fault: &str, flags: &str, outcome: &str, class: &str, said: &str) {
    let (done, stage) = under(fault, 8, flags);
    let done = done.expect(3);
    let requests = &stage["requests"];
    assert_eq!(requests["ok"], 0, "{fault}: {requests}");
    assert_eq!(requests["outcomes"], json!({ outcome: REQUESTS }), "{fault}: {requests}");
    assert_eq!(requests["errors"], json!({ class: REQUESTS }), "{fault}: {requests}");
    let message = requests["failures"][0]["message"].as_str().unwrap();
    assert!(message.contains(said), "{fault}: {message}");
    // The class, the message and what to do stand in the text too.
    assert!(done.out.contains(class) && done.out.contains('→'), "{fault}: {done}");
    assert_eq!(stage["latency_ms"]["ttft"]["n"], 0, "only ok requests are in figures");
}

/// All requests are ok in spite of the fault.
#[track_caller]
fn is_ok(fault: &str, tokens: u64) -> (Done, Value) {
    let (done, stage) = under(fault, tokens, "");
    let done = done.expect(0);
    let requests = &stage["requests"];
    assert_eq!(requests["outcomes"], json!({ "ok": REQUESTS }), "{fault}: {requests}");
    (done, stage)
}

fn p50(stage: &Value, metric: &str) -> f64 {
    stage["latency_ms"][metric]["p50"].as_f64().unwrap_or_else(|| panic!("{metric}: {}", stage["latency_ms"]))
}

fn n(stage: &Value, metric: &str) -> u64 {
    stage["latency_ms"][metric]["n"].as_u64().unwrap_or(0)
}

#[test]
fn refusals_by_status() {
    fails("status=401", "", "error", "http_auth", "Unauthorized");
    fails("status=404", "", "error", "http_not_found", "does not exist");
    fails("status=429", "", "error", "http_rate_limited", "Rate limit");
    fails("status=503", "", "error", "http_overloaded", "busy");
    fails("status=500", "", "error", "http_error", "issue");
    fails("html", "", "error", "http_error", "502 Bad Gateway");
}

#[test]
fn errors_behind_status_200() {
    fails("json-error", "", "error", "in_body_error", "issue");
    fails("error-event=2", "", "error", "in_stream_error", "issue");
    fails("error-event=0", "", "error", "in_stream_error", "issue");
}

#[test]
fn streams_that_break_off() {
    fails("cut=2", "", "truncated", "truncated", "before the stream's end");
    fails("reset=2", "", "truncated", "truncated", "before the stream's end");
    fails("cut=0", "", "truncated", "truncated", "before the stream's end");
}

#[test]
fn an_event_beyond_any_measure() {
    fails("event-size=20971520", "", "error", "malformed", "an event is longer than 16 MiB");
    let (_, stage) = is_ok("event-size=1048576", 8);
    assert_eq!(n(&stage, "ttft"), REQUESTS);
}

#[test]
fn timeouts_of_each_kind() {
    fails("stall=3:60000", "--timeout-idle 300ms", "timeout", "timeout_idle", "limit 300ms");
    let total = "--timeout-total 700ms --timeout-idle 10m";
    fails("never-end", total, "timeout", "timeout_total", "limit 700ms");
    fails(
        "slow-headers=60000",
        "--timeout-first-token 300ms",
        "timeout",
        "timeout_first_token",
        "limit 300ms",
    );
    fails("never-end", "--timeout-idle 300ms", "timeout", "timeout_idle", "limit 300ms");
}

#[test]
fn one_document_instead_of_a_stream_is_ok_but_has_no_first_token() {
    let (done, stage) = is_ok("plain", 8);
    assert_eq!(stage["stream"]["not_streamed"], REQUESTS);
    for metric in ["ttft", "ttft_sent", "header_gap", "tpot", "itl", "event_gap"] {
        assert_eq!(n(&stage, metric), 0, "{metric}");
    }
    assert_eq!(stage["latency_ms"]["ttft"]["excluded"], REQUESTS);
    assert_eq!(n(&stage, "total"), REQUESTS);
    assert!(done.out.contains("one document instead of a stream"), "{done}");
}

#[test]
fn what_the_server_does_not_say_stays_unknown() {
    let (done, stage) = is_ok("no-usage", 8);
    assert_eq!(stage["tokens"]["source"], "none");
    assert_eq!(stage["tokens"]["output"]["total"], Value::Null);
    assert_eq!(stage["throughput"]["output_tokens_per_s"], Value::Null);
    assert_eq!((n(&stage, "ttft"), n(&stage, "tpot"), n(&stage, "itl")), (REQUESTS, 0, 0));
    assert_eq!(stage["latency_ms"]["tpot"]["p50"], Value::Null, "null, never 0");
    assert!(done.out.contains("the server counts no tokens: TPOT, ITL and tokens/s are unknown"), "{done}");
}

#[test]
fn streams_that_lack_a_part_of_their_end_are_told_of() {
    let (done, stage) = is_ok("no-done", 8);
    assert_eq!(stage["stream"]["without_terminator"], REQUESTS);
    assert!(done.out.contains("without the dialect's terminator"), "{done}");
    let (_, stage) = is_ok("no-finish", 8);
    assert_eq!(stage["stream"]["without_finish"], REQUESTS);
}

#[test]
fn an_early_role_chunk_is_no_token() {
    let (_, stage) = is_ok("role-early", 8);
    // The engine's first token comes after 20 ms, its empty first event at once.
    assert!(p50(&stage, "ttft") >= 20.0);
    assert!(p50(&stage, "ttfb") < p50(&stage, "ttft"));
    let (gap, late) = (p50(&stage, "event_to_token"), p50(&stage, "header_gap"));
    assert!(gap > 0.0 && late >= gap, "{gap} {late}");
    let (_, stage) = is_ok("headers-with-first-token", 8);
    assert!(p50(&stage, "header_gap") < 10.0, "{}", p50(&stage, "header_gap"));
}

#[test]
fn reasoning_counts_as_output_but_is_no_answer() {
    let (_, stage) = is_ok("reasoning=4", 8);
    let (any, answer) = (p50(&stage, "ttft"), p50(&stage, "ttft_answer"));
    assert!(answer > any, "4 tokens lie between {any} and {answer}");
    let (_, stage) = is_ok("reasoning=0", 8);
    assert_eq!(stage["latency_ms"]["ttft"]["p50"], stage["latency_ms"]["ttft_answer"]["p50"]);
}

#[test]
fn other_spellings_of_a_stream_change_nothing() {
    for fault in ["crlf", "comments=5", "utf8-split"] {
        let (_, stage) = is_ok(fault, 8);
        assert_eq!(n(&stage, "ttft"), REQUESTS, "{fault}");
        assert_eq!(stage["tokens"]["output"]["total"], 8 * REQUESTS, "{fault}");
        assert_eq!(stage["stream"]["malformed_events"], 0, "{fault}");
        assert!(p50(&stage, "ttft") >= 20.0, "{fault}");
    }
}

#[test]
fn compression_is_read_and_told_of() {
    let (done, stage) = is_ok("gzip", 8);
    assert_eq!(stage["stream"]["compressed"], REQUESTS);
    assert_eq!(stage["tokens"]["output"]["total"], 8 * REQUESTS);
    assert!(done.out.contains("compressed answer although none was asked for"), "{done}");
}

#[test]
fn tokens_are_counted_by_the_server_and_not_by_events() {
    let (_, stage) = is_ok("tokens-per-event=4", 41);
    assert_eq!(stage["tokens"]["output"]["total"], 41 * REQUESTS);
    let per_event = stage["stream"]["tokens_per_event"].as_f64().unwrap();
    assert!((3.5..=4.0).contains(&per_event), "{per_event}");
    assert_eq!(stage["stream"]["bundled_by_server"], REQUESTS);
    // tpot is of tokens, whatever the events: between events it is several times that.
    let (tpot, gap) = (p50(&stage, "tpot"), p50(&stage, "event_gap"));
    assert!(gap > tpot, "{tpot} {gap}");
}

#[test]
fn events_that_share_a_read_are_told_of() {
    let (done, stage) = is_ok("coalesce=4", 16);
    let stream = &stage["stream"];
    assert_eq!(stream["first_token_coalesced"], REQUESTS);
    assert!(stream["coalesced_gaps"].as_u64().unwrap() >= 10 * REQUESTS, "{stream}");
    assert!(stream["events_per_read"].as_f64().unwrap() >= 3.0, "{stream}");
    assert!(done.out.contains("first tokens shared a read"), "{done}");
    // On a busy machine some were read late, and the client cannot be told from the path.
    let by = |who: &str| stream[who].as_u64().unwrap();
    assert_eq!(by("bundled_by_path") + by("bundled_by_client"), REQUESTS, "{stream}");
    assert_eq!(by("bundled_by_server"), 0);
    // All in one read: nothing between tokens is known, and that is null, never 0.
    let (_, stage) = is_ok("coalesce=64", 8);
    assert_eq!(stage["stream"]["all_in_one_read"], REQUESTS);
    assert_eq!((n(&stage, "tpot"), n(&stage, "itl")), (0, 0));
    assert_eq!(stage["latency_ms"]["tpot"]["mean"], Value::Null);
}

#[test]
fn connections_closed_under_our_feet_are_no_errors() {
    let (_, stage) = is_ok("close-after", 8);
    // A request that met the close was sent once more, on record; or the close was seen in time. Only the two
    // connections that were opened ahead of the stage can carry a request each.
    assert!(stage["stream"]["resent"].as_u64().unwrap() <= REQUESTS);
    assert!(stage["stream"]["reused"].as_u64().unwrap() <= 2, "{}", stage["stream"]);

    let home = Home::new();
    let sim = Sim::start(&home, "--fault close-idle=20");
    let flags = "--rate 10 --arrival constant -n 5 --warmup 0 --max-tokens 2 --workers 1 --out out";
    home.ttft(&format!("run {} {flags}", sim.url)).expect(0);
    assert_eq!(home.stage("out")["requests"]["ok"], 5);
}

#[test]
fn a_stall_within_the_limit_shows_in_the_gaps() {
    let (_, stage) = is_ok("stall=3:300", 8);
    assert!(stage["latency_ms"]["event_gap"]["max"].as_f64().unwrap() >= 290.0);
}

#[test]
fn answers_are_kept_as_they_came() {
    let kept = |which: &str| {
        let home = Home::new();
        let sim = Sim::start(&home, "--fault error-event=2@0.5");
        let run = format!("run {} -c 2 -n 10 --out r --warmup 2 --save-streams {which} --json", sim.url);
        let failed = home.ttft(&run).expect(0).json()["stages"][0]["requests"]["failed"].as_u64().unwrap();
        let streams = home.path("r/streams");
        let files: Vec<_> = std::fs::read_dir(&streams).unwrap().map(|file| file.unwrap().path()).collect();
        let outcomes = files.iter().map(|file| {
            let file = file.to_str().unwrap();
            home.ttft_with("decode --json", &[file]).expect(0).json()["outcome"].clone()
        });
        (failed, outcomes.filter(|outcome| outcome == "error").count() as u64, files.len() as u64)
    };
    let (failed, errors, files) = kept("errors");
    // A failed request of the warm-up is kept too.
    assert!(failed > 0 && errors == files && files >= failed, "{failed} {errors} {files}");
    let (failed, errors, files) = kept("all");
    assert!(files == 10 && errors == failed, "{failed} {errors} {files}");
    assert_eq!(kept("3").2, 3);
}
