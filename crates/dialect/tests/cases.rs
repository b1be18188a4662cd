//! Streams that broke other tools: every value that has to come out, and none that must not.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde_json::Value;
use ttft_dialect::{DecodeOptions, Dialect, decode_file, decode_set};

fn folder(of: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(of);
    let mut found: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// What differs between what came out and what has to.
fn problems(decoded: &Value, expect: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, wanted) in expect["must"].as_object().unwrap() {
        let Some(found) = decoded.get(name) else {
            problems.push(format!("{name} is missing"));
            continue;
        };
        let tolerance = expect["tolerance"][name].as_f64().unwrap_or(1e-9);
        let same = match (found.as_f64(), wanted.as_f64()) {
            (Some(found), Some(wanted)) => (found - wanted).abs() <= tolerance,
            _ => found == wanted,
        };
        if !same {
            problems.push(format!("{name} is {found}, must be {wanted}"));
        }
    }
    for (name, forbidden) in expect["must_not"].as_object().into_iter().flatten() {
        let found = &decoded[name];
        for wrong in forbidden.as_array().unwrap() {
            let contains = found.as_str().zip(wrong.as_str()).is_some_and(|(text, part)| text.contains(part));
            let equal = found == wrong || (found.is_number() && found.as_f64() == wrong.as_f64());
            if equal || contains {
                problems.push(format!("{name} is {found}, must not be {wrong}"));
            }
        }
    }
    for flag in expect["should"]["flags"].as_array().into_iter().flatten() {
        if !decoded["flags"].as_array().unwrap().contains(flag) {
            problems.push(format!("flag {flag} is missing"));
        }
    }
    problems
}

fn check(recording: &Path, expect: &Path, dialect: Option<&str>) {
    let expect: Value = serde_json::from_slice(&std::fs::read(expect).unwrap()).unwrap();
    let told = expect["dialect"].as_str();
    for name in [dialect, None] {
        // The dialect is also told from the recording alone, so each is read both ways.
        let options = DecodeOptions { dialect: name.or(told).and_then(Dialect::builtin) };
        let options = if name.is_none() { DecodeOptions::default() } else { options };
        let decoded = serde_json::to_value(decode_file(recording, &options).unwrap()).unwrap();
        let problems = problems(&decoded, &expect);
        assert!(problems.is_empty(), "{}: {problems:#?}\n{decoded:#}", recording.display());
    }
}

#[test]
fn cases() {
    let cases = folder("testdata/cases");
    assert!(cases.len() >= 14);
    for case in cases {
        let expect: Value =
            serde_json::from_slice(&std::fs::read(case.join("expect.json")).unwrap()).unwrap();
        let dialect = expect["dialect"].as_str().unwrap().replace("azure-openai-chat", "openai-chat");
        check(&case.join("input.timeline.jsonl"), &case.join("expect.json"), Some(&dialect));
    }
}

#[test]
fn samples_of_the_dialects() {
    for name in Dialect::names() {
        let samples = folder(&format!("../../dialects/{name}/samples"));
        let expects = samples.iter().filter(|path| path.to_string_lossy().ends_with(".expect.json"));
        let mut count = 0;
        for expect in expects {
            let timeline = expect.to_string_lossy().replace(".expect.json", ".timeline.jsonl");
            check(Path::new(&timeline), expect, Some(name));
            count += 1;
        }
        assert!(count > 0, "{name} has no samples");
    }
}

#[test]
fn a_set() {
    let timelines: Vec<_> =
        folder("testdata/cases").into_iter().map(|case| case.join("input.timeline.jsonl")).collect();
    let set = decode_set(&timelines, &DecodeOptions::default()).unwrap();
    assert_eq!((set.requests, set.ok, set.failed), (14, 11, 3));
    let failed: Vec<_> = set.failed_class.iter().map(|(class, n)| format!("{class} {n}")).collect();
    assert_eq!(failed, ["in_body_error 1", "in_stream_error 1", "reset 1"]);
    assert_eq!(set.ttft_ms.n, 10, "the answer that was not streamed has no first token");
    assert_eq!((set.ttft_ms.min, set.ttft_ms.max), (Some(80.0), Some(16_500.0)));
    assert_eq!(set.streams.len(), 14);
}
