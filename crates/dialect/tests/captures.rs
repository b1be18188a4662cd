//! What real servers sent: the reading of each capture in one line.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ttft_dialect::{DecodeOptions, decode_answers};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn captures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/captures");
    let mut found = Vec::new();
    files(&root, &mut found);
    found.sort();
    let mut report = String::new();
    for file in found {
        let answers = decode_answers(&file, &DecodeOptions::default()).unwrap();
        assert!(!answers.is_empty(), "{}", file.display());
        for answer in answers {
            let count = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
            writeln!(
                report,
                "{} {}: {} {}, in {} out {}, {} events with output of {} and {} comments, {} chars, finish {}, {:?}{}{}",
                file.strip_prefix(&root).unwrap().display(),
                answer.dialect,
                answer.http_status.map_or("-".to_owned(), |status| status.to_string()),
                answer.outcome,
                count(answer.input_tokens),
                count(answer.output_tokens),
                answer.content_events,
                answer.events,
                answer.comments,
                answer.text.chars().count(),
                answer.finish_reason.as_deref().unwrap_or("-"),
                answer.flags,
                answer.error_class.map_or(String::new(), |class| {
                    let code = answer.error_code.as_deref().unwrap_or("-");
                    format!("\n    {class} {code}: {:?}", answer.error_message.as_deref().unwrap_or("-"))
                }),
                if answer.server_timings_ms == ttft_dialect::TimingsMs::default() {
                    String::new()
                } else {
                    format!("\n    {}", serde_json::to_string(&answer.server_timings_ms).unwrap())
                },
            )
            .unwrap();
        }
    }
    insta::assert_snapshot!(report);
}
