//! `ttft check`: what it finds, and how it ends.

use serde_json::Value;

use crate::home::Home;
use crate::raw_server::{events, serve};
use crate::sim::Sim;

/// Findings as `level what`, one a line.
fn findings(report: &Value) -> String {
    let found = report["findings"].as_array().unwrap().iter();
    let line = |f: &Value| format!("{} {}", f["level"].as_str().unwrap(), f["what"].as_str().unwrap());
    found.map(line).collect::<Vec<_>>().join("\n")
}

/// The report on an engine with those flags.
fn check(flags: &str, code: i32) -> Value {
    let home = Home::new();
    let sim = Sim::start(&home, flags);
    home.ttft(&format!("check {} --max-tokens 64 --ignore-eos --json", sim.url)).expect(code).json()
}

#[track_caller]
fn finds(flags: &str, code: i32, lines: &[&str]) -> Value {
    let report = check(flags, code);
    let found = findings(&report);
    for line in lines {
        assert!(found.contains(line), "{flags}: {line:?} in\n{found}");
    }
    report
}

#[test]
fn a_healthy_endpoint() {
    let report = finds(
        "",
        0,
        &[
            "ok answered as it should",
            "ok HTTP/1.1 without TLS",
            "ok the server calls itself ttft-sim",
            "ok the answer is a stream",
            "the response head comes",
            "ok the stream ends with a finish reason and its terminator",
            "ok the server counts tokens",
            "ok connections are kept",
            "ok x-request-id comes back",
            "stamped by the kernel",
        ],
    );
    assert!(!findings(&report).contains("bad "), "{report}");
    assert_eq!(report["outcome"], "ok");
    assert_eq!(report["error_class"], Value::Null);
    assert_eq!(report["http_status"], 200);
    assert_eq!(report["output_tokens"], 64);
    assert!(report["input_tokens"].as_u64().unwrap() > 400);
    assert!(report["ttft_ms"].as_f64().unwrap() >= 20.0);
    for key in ["ttft_sent_ms", "header_gap_ms", "e2e_ms", "tpot_ms"] {
        assert!(report[key].is_f64(), "{key}: {report}");
    }
    assert_eq!(report["request_id"].as_str().unwrap().len(), 36);
    assert!(!report["text"].as_str().unwrap().is_empty());
    let names: Vec<&str> =
        report["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"tcp") && names.contains(&"decode"), "{names:?}");
    for phase in report["phases"].as_array().unwrap() {
        assert!(phase["from_ms"].as_f64() <= phase["to_ms"].as_f64(), "{phase}");
    }
}

#[test]
fn the_text_shows_a_waterfall_and_says_what_to_do() {
    let home = Home::new();
    let sim = Sim::serve(&home, "--profile fixed --ttft-ms 300 --itl-ms 2 --fault role-early");
    let done = home.ttft(&format!("check {}", sim.url)).expect(0);
    for part in ["TTFT ", "wait for head", "█", "warn  the first event holds no output", "→ distrust tools"]
    {
        assert!(done.out.contains(part), "{part}: {done}");
    }
    let json = home.ttft(&format!("check {} --json", sim.url)).expect(0);
    assert!(json.err.contains("wait for head") && json.json()["ttft_ms"].is_f64(), "{json}");
}

#[test]
fn oddities_that_do_not_fail() {
    finds("--fault role-early", 0, &["the first event holds no output: it is no token"]);
    // On a machine that is busy right now it may be this side's doing, and is told as such.
    finds("--fault coalesce=8", 0, &[" in bundles"]);
    finds("--fault coalesce=100", 0, &[" at once"]);
    finds("--fault close-after", 0, &["warn connections are not kept"]);
    finds("--fault gzip", 0, &["warn the answer came compressed"]);
    finds("--fault no-usage", 0, &["warn the server does not count tokens"]);
    finds("--fault no-done", 0, &["note a finish reason came, but no terminator"]);
    finds("--fault reasoning=40", 0, &["note the model reasons before it answers"]);
    finds("--fault headers-with-first-token", 0, &["the response head comes together with the first token"]);
}

#[test]
fn no_stream_is_exit_code_3() {
    let report = finds("--fault plain", 3, &["bad the answer is one document, not a stream"]);
    assert_eq!((&report["outcome"], &report["ttft_ms"]), (&"ok".into(), &Value::Null));
    let report = finds("--fault status=401", 3, &["bad failed: the server refused the key (401, 403)"]);
    assert_eq!((&report["error_class"], &report["http_status"]), (&"http_auth".into(), &401.into()));
    assert_eq!(report["error_message"], "Unauthorized");
    finds("--fault json-error", 3, &["bad failed: HTTP 200 with an error as its body"]);
    finds("--fault error-event=2", 3, &["bad failed: the stream carried an error"]);
    let report = finds("--fault cut=3", 3, &["bad failed: "]);
    assert_eq!(report["outcome"], "truncated");
}

#[test]
fn a_port_that_refuses_is_json_too() {
    let home = Home::new();
    let done = home.ttft("check http://127.0.0.1:1 --json").expect(3);
    let report = done.json();
    assert_eq!(report["outcome"], "error");
    assert_eq!(report["error_class"], "connect_refused");
    assert_eq!(report["findings"][0]["level"], "bad");
    assert!(report["findings"][0]["remedy"].as_str().unwrap().contains("start the server"), "{report}");
}

#[test]
fn the_built_in_engine_by_default() {
    let home = Home::new();
    let done = home.ttft("check --prompt-tokens 20 --max-tokens 4").expect(0);
    assert!(done.out.contains("answered as it should"), "{done}");
}

#[test]
fn a_saved_answer_is_decoded_to_the_same() {
    for (flags, code) in [("", 0), ("--fault utf8-split", 0), ("--fault gzip", 0), ("--fault cut=3", 3)] {
        let home = Home::new();
        let sim = Sim::start(&home, flags);
        let check = format!("check {} --max-tokens 16 --ignore-eos --save stream.jsonl --json", sim.url);
        let done = home.ttft(&check).expect(code);
        assert!(done.err.contains("ttft decode stream.jsonl"), "{done}");
        let (live, again) = (done.json(), home.ttft("decode stream.jsonl --json").expect(0).json());
        for key in ["outcome", "text", "output_tokens", "input_tokens"] {
            assert_eq!(live[key], again[key], "{flags}: {key} in {again}");
        }
        let (sent, decoded) = (live["ttft_sent_ms"].as_f64(), again["ttft_ms"].as_f64());
        let apart = sent.zip(decoded).map_or(0.0, |(a, b)| (a - b).abs());
        assert!(sent.is_some() == decoded.is_some() && apart < 1e-3, "{flags}: {sent:?} {decoded:?}");
    }
    let home = Home::new();
    let none = home.ttft("check http://127.0.0.1:1 --save stream.jsonl").expect(3);
    assert!(none.err.contains("no answer came that could be saved"), "{none}");
}

#[test]
fn an_answer_in_another_dialect_is_recognised() {
    let url = serve(|_| {
        events(&[
            r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":5,"output_tokens":1}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"message_stop"}"#,
        ])
    });
    let home = Home::new();
    let report = home.ttft(&format!("check {url} --model m --json")).expect(3).json();
    let found = findings(&report);
    let wanted = "bad the answer looks like the dialect anthropic-messages, not openai-chat";
    assert!(found.contains(wanted), "{found}");
}
