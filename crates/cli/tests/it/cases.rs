//! Streams that broke other tools, and the samples of every dialect, through the built binary.

use std::path::{Path, PathBuf};

use serde_json::Value;
use ttft_dialect::differences;

use crate::home::{Done, Home};

/// The recordings of the crate that decodes them: there is one copy.
fn testdata(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialect/testdata").join(of)
}

fn cases() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(testdata("cases")).unwrap();
    let mut cases: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 14);
    cases
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap()
}

#[test]
fn every_case() {
    let home = Home::new();
    for case in cases() {
        let text = std::fs::read_to_string(case.join("expect.json")).unwrap();
        let expect: Value = serde_json::from_str(&text).unwrap();
        let recording = case.join("input.timeline.jsonl");
        let recording = recording.to_str().unwrap();
        let dialect = expect["dialect"].as_str().unwrap();
        for line in ["decode --json".to_owned(), format!("decode --json --dialect {dialect}")] {
            let done = home.ttft_with(&line, &[recording]).expect(0);
            let found = differences(&json(&done), &expect);
            assert!(found.is_empty(), "{line} {recording}: {found:#?}");
        }
    }
}

#[test]
fn all_of_them_as_a_set() {
    let home = Home::new();
    let files: Vec<_> = cases().iter().map(|case| case.join("input.timeline.jsonl")).collect();
    let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let set = json(&home.ttft_with("decode --json", &files).expect(0));
    assert_eq!((&set["requests"], &set["ok"], &set["failed"]), (&14.into(), &11.into(), &3.into()));
    let failed = serde_json::json!({ "in_body_error": 1, "in_stream_error": 1, "truncated": 1 });
    assert_eq!(set["failed_class"], failed);
    assert_eq!((&set["ttft_ms"]["n"], &set["ttft_ms"]["max"]), (&10.into(), &16_500.0.into()));
    assert_eq!(set["streams"].as_array().unwrap().len(), 14);

    let text = home.ttft_with("decode", &files).expect(0).out;
    assert!(text.contains("14, 11 ok") && text.contains("max 16500.0 ms"), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with("input.timeline.jsonl")).count(), 14, "{text}");
}

#[test]
fn the_events_of_one_stream_as_a_table() {
    let home = Home::new();
    let file = testdata("cases/009-several-tokens-per-event/input.timeline.jsonl");
    let text = home.ttft_with("decode", &[file.to_str().unwrap()]).expect(0).out;
    assert!(text.contains("    130.0  text            4  \" b c d e\""), "{text}");
    assert!(text.contains("itl a token 8.2 ms") && text.contains("finish    length"), "{text}");
}

const EVIL: &str = "\u{1b}]0;pwned\u{7}\u{202e}";

#[test]
fn hostile_text_of_a_recording_is_shown_as_text() {
    let home = Home::new();
    let event = |delta: Value, finish: Value| {
        serde_json::json!({ "id": EVIL, "model": EVIL,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    };
    let content = event(serde_json::json!({ "content": EVIL, "reasoning": EVIL }), Value::Null);
    let finish = event(serde_json::json!({}), EVIL.into());
    let error = serde_json::json!({ "error": { "message": EVIL, "code": EVIL } });
    home.write("a.sse", &format!("data: {content}\n\ndata: {finish}\n\ndata: [DONE]\n\n"));
    home.write("b.sse", &format!("data: {content}\n\ndata: {error}\n\n"));
    home.write("c.sse", &format!("data: {EVIL}\n\n"));
    for line in ["decode a.sse", "decode b.sse", "decode c.sse", "decode a.sse b.sse c.sse"] {
        for json in ["", " --json"] {
            let done = home.ttft(&format!("{line}{json}")).expect(0);
            for text in [&done.out, &done.err] {
                let wild = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
                assert_eq!(wild, None, "{line}{json}: {text:?}");
            }
        }
    }
}

#[test]
fn raw_bodies_with_a_head_and_without() {
    let home = Home::new();
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    home.write("body.sse", body);
    home.write("h1.http", &format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}"));
    home.write("h2.http", &format!("HTTP/2 200 \r\ncontent-type: text/event-stream\r\n\r\n{body}"));
    home.write("undone.http", &format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}"));
    home.write("refused.http", "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy");
    for line in ["body.sse", "h1.http", "h1.http --headers", "h2.http --headers", "undone.http --headers"] {
        let decoded = json(&home.ttft(&format!("decode {line} --json")).expect(0));
        assert_eq!((&decoded["outcome"], &decoded["text"]), (&"ok".into(), &"Hi".into()), "{line}");
        assert_eq!(decoded["ttft_ms"], Value::Null, "{line} has no instants");
    }
    let decoded = json(&home.ttft("decode refused.http --headers --json").expect(0));
    assert_eq!(decoded["error_class"], "http_overloaded");
    let refused = home.ttft("decode body.sse --headers").expect(2);
    assert!(refused.err.contains("does not begin with an HTTP head"), "{refused:?}");
}
