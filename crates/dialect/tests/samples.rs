//! The samples of every dialect, cut at every byte.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use serde_json::Value;
use ttft_dialect::{Dialect, End, Options, Texts, Transcript};
use ttft_model::{Answer, Nanos, Outcome, Stamp};

/// What a sample says: head, and the bytes of the body.
struct Sample {
    name: String,
    status: u16,
    content_type: String,
    body: Vec<u8>,
}

fn samples(dialect: &str) -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dialects").join(dialect).join("samples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let timelines = files.filter(|file| file.to_string_lossy().ends_with(".timeline.jsonl"));
    let mut samples: Vec<_> = timelines
        .map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let lines: Vec<_> = lines.collect();
            let body = lines.iter().flat_map(|line| match (line["bytes"].as_str(), line["b64"].as_str()) {
                (Some(text), _) => text.as_bytes().to_vec(),
                (_, Some(text)) => base64::prelude::BASE64_STANDARD.decode(text).unwrap(),
                _ => Vec::new(),
            });
            Sample {
                name: format!("{dialect}, {}", file.file_name().unwrap().to_string_lossy()),
                status: lines[0]["status"].as_u64().unwrap() as u16,
                content_type: lines[0]["headers"]["content-type"].as_str().unwrap().to_owned(),
                body: body.collect(),
            }
        })
        .collect();
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    samples
}

/// Reads a body whose pieces all came in one read, so that nothing but the cuts differs.
fn read(dialect: &Arc<Dialect>, sample: &Sample, pieces: &[&[u8]]) -> (Answer, Texts) {
    let mut transcript = Transcript::new(dialect.clone(), Options { keep_text: true });
    transcript.on_head(sample.status, Some(&sample.content_type), None);
    for piece in pieces {
        transcript.on_body(piece, 1, Stamp::user(Nanos(1)));
    }
    transcript.finish_with_texts(End::Clean, Stamp::user(Nanos(2)))
}

#[test]
fn any_cut_into_reads_gives_the_same() {
    for dialect in Dialect::all() {
        for sample in samples(dialect.name()) {
            let whole = read(dialect, &sample, &[&sample.body]);
            let single: Vec<&[u8]> = sample.body.chunks(1).collect();
            assert_eq!(read(dialect, &sample, &single), whole, "{}, byte by byte", sample.name);
            for cut in 0..sample.body.len() {
                let (head, tail) = sample.body.split_at(cut);
                assert_eq!(read(dialect, &sample, &[head, tail]), whole, "{}, cut at {cut}", sample.name);
            }
        }
    }
}

#[test]
fn what_is_cut_off_is_never_ok_before_its_end_is_told() {
    for dialect in Dialect::all() {
        for sample in samples(dialect.name()) {
            for cut in 0..sample.body.len() {
                let (answer, _) = read(dialect, &sample, &[&sample.body[..cut]]);
                let facts = answer.facts;
                // Where the end of the body is the end, nothing tells that it was cut.
                let told = facts.finish || facts.terminator || dialect.name() == "triton-generate";
                let ok = answer.outcome == Some(Outcome::Ok);
                assert!(answer.outcome.is_some() && (told || !ok), "{}, cut at {cut}", sample.name);
            }
        }
    }
}

#[test]
fn each_is_recognised() {
    // What they send is another dialect's, but for what some of their streams hold.
    let others = [
        ("mistral-chat", "openai-chat"),
        ("azure-openai-chat", "openai-chat"),
        ("dashscope-multimodal", "dashscope-native"),
    ];
    for dialect in Dialect::all() {
        for sample in samples(dialect.name()) {
            let found = Dialect::recognise(Some(&sample.content_type), &sample.body);
            let found = found.as_ref().map(|dialect| dialect.name());
            let is_error = found.is_none() && sample.body.len() < 300;
            let same = found == Some(dialect.name());
            let other = found.is_some_and(|found| others.contains(&(dialect.name(), found)));
            assert!(same || other || is_error, "{} looks like {found:?}", sample.name);
        }
    }
}
