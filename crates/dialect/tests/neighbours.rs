//! Streams near to the cases: each is one line of `testdata/neighbours.jsonl`.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use serde_json::{Value, json};
use ttft_dialect::{DecodeOptions, Dialect, decode_bytes, differences};

const NEIGHBOURS: &str = include_str!("../testdata/neighbours.jsonl");

/// The recording of a case.
fn timeline(case: &Value) -> String {
    let reads = case["reads"].as_array().unwrap();
    let first = reads.first().map_or(5.0, |read| read[0].as_f64().unwrap());
    let last = reads.last().map_or(5.0, |read| read[0].as_f64().unwrap());
    let status = case["status"].as_u64().unwrap_or(200);
    let head =
        json!({ "at_ms": first.min(5.0), "event": "headers", "status": status, "headers": case["headers"] });
    let mut text = format!("{head}\n");
    for read in reads {
        let line = match &read[1] {
            Value::String(bytes) => json!({ "at_ms": read[0], "bytes": bytes }),
            bytes => json!({ "at_ms": read[0], "b64": bytes["b64"] }),
        };
        writeln!(text, "{line}").unwrap();
    }
    let end = case["end"].as_str().unwrap_or("eof");
    writeln!(text, "{}", json!({ "at_ms": last + 1.0, "event": end })).unwrap();
    text
}

#[test]
fn neighbours() {
    let mut report = String::new();
    let mut seen = 0;
    for line in NEIGHBOURS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let dialect = Dialect::builtin(case["dialect"].as_str().unwrap());
        assert!(dialect.is_some(), "{name}");
        let options = DecodeOptions { dialect, ..DecodeOptions::default() };
        let decoded = decode_bytes("x.timeline.jsonl", timeline(&case).into_bytes(), &options).unwrap();
        assert_eq!(decoded.len(), 1, "{name}");
        let problems = differences(&serde_json::to_value(&decoded[0]).unwrap(), &case);
        if !problems.is_empty() {
            writeln!(report, "{name}: {problems:?}").unwrap();
        }
        seen += 1;
    }
    assert!(report.is_empty() && seen > 200, "{seen} cases\n{report}");
}
