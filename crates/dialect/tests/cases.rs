//! Streams that broke other tools: every value that has to come out, and none that must not.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde_json::Value;
use ttft_dialect::{DecodeOptions, Dialect, decode_set, test_sample, test_samples};

fn folder(of: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(of);
    let mut found: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn cases() {
    let cases = folder("testdata/cases");
    assert!(cases.len() >= 14);
    for case in cases {
        let (recording, expect) = (case.join("input.timeline.jsonl"), case.join("expect.json"));
        let text: Value = serde_json::from_slice(&std::fs::read(&expect).unwrap()).unwrap();
        let dialect = Dialect::builtin(text["dialect"].as_str().unwrap());
        assert!(dialect.is_some(), "{}", case.display());
        // The dialect is also told from the recording alone, so each is read both ways.
        for dialect in [dialect, None] {
            let problems =
                test_sample(&recording, &expect, &DecodeOptions { dialect, ..DecodeOptions::default() })
                    .unwrap();
            assert!(problems.is_empty(), "{}: {problems:#?}", case.display());
        }
    }
}

#[test]
fn samples_of_the_dialects() {
    let mut report = Vec::new();
    for name in Dialect::names() {
        let (dialect, samples) = test_samples(&root().join(name)).unwrap();
        assert_eq!(dialect.name(), name);
        assert!(samples.len() > 1, "{name} has too few samples");
        let failed = samples.into_iter().filter(|sample| !sample.problems.is_empty());
        report.extend(failed.map(|sample| format!("{name}: {}: {:#?}", sample.name, sample.problems)));
    }
    assert!(report.is_empty(), "{}", report.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dialects")
}

#[test]
fn a_set() {
    let timelines: Vec<_> =
        folder("testdata/cases").into_iter().map(|case| case.join("input.timeline.jsonl")).collect();
    let set = decode_set(&timelines, &DecodeOptions::default()).unwrap();
    assert_eq!((set.requests, set.ok, set.failed), (14, 11, 3));
    let failed: Vec<_> = set.failed_class.iter().map(|(class, n)| format!("{class} {n}")).collect();
    assert_eq!(failed, ["in_body_error 1", "in_stream_error 1", "truncated 1"]);
    assert_eq!(set.ttft_ms.n, 10, "the answer that was not streamed has no first token");
    assert_eq!((set.ttft_ms.min, set.ttft_ms.max), (Some(80.0), Some(16_500.0)));
    assert_eq!(set.streams.len(), 14);
}
