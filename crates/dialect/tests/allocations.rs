//! The hot path allocates nothing per event once its memory has grown.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ttft_dialect::{Dialect, Options, Transcript};
use ttft_model::{Nanos, Stamp};

/// Events read to let buffers grow, then events that are counted.
const WARM: u64 = 64;
const COUNTED: u64 = 4_000;

/// Allocations over the counted events. `reads` gives the reads that one event comes in.
fn allocations<'a>(
    dialect: &Arc<Dialect>,
    content_type: &str,
    mut reads: impl FnMut(u64) -> Vec<&'a [u8]>,
) -> u64 {
    let mut transcript = Transcript::new(dialect.clone(), Options::default());
    transcript.on_head(200, Some(content_type), None);
    let events: Vec<_> = (0..WARM + COUNTED).map(&mut reads).collect();
    let mut number = 0;
    let mut feed = |transcript: &mut Transcript, events: &[Vec<&[u8]>]| {
        for read in events.iter().flatten() {
            number += 1;
            transcript.on_body(read, number, Stamp::user(Nanos(number as i64)));
        }
    };
    let (warm, counted) = events.split_at(WARM as usize);
    feed(&mut transcript, warm);
    let counted = allocation_counter::measure(|| feed(&mut transcript, counted)).count_total;
    assert_eq!(transcript.answer().events.len() as u64, WARM + COUNTED, "{}", dialect.name());
    counted
}

/// The three arrays of the event log double as they grow, and so may `more` buffers; beyond that there must be
/// nothing.
fn check_of<'a>(
    dialect: &Arc<Dialect>,
    content_type: &str,
    more: u64,
    reads: impl FnMut(u64) -> Vec<&'a [u8]>,
) {
    let doublings = ((WARM + COUNTED) as f64 / WARM as f64).log2().ceil() as u64;
    let found = allocations(dialect, content_type, reads);
    assert!(found > 0, "the growth of the log itself must be seen, else nothing is counted");
    let most = (3 + more) * (doublings + 1);
    assert!(found <= most, "{found} allocations in {COUNTED} events of {}", dialect.name());
}

fn check(dialect: &str, content_type: &str, reads: &[&str]) {
    let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
    check_of(&Dialect::builtin(dialect).unwrap(), content_type, 0, |_| reads.clone());
}

const SSE: &str = "text/event-stream";

#[test]
fn nothing_per_event() {
    let chat = r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a \"b\""},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
    check("openai-chat", SSE, &[&format!("data: {chat}\n\n")]);
    check("openai-chat", SSE, &[&format!(": ping\n\nevent: message\r\ndata: {chat}\r\n\r\n")]);
    let (head, tail) = chat.split_at(77);
    check("openai-chat", SSE, &[&format!("data: {head}"), tail, "\n", "\n"]);
    let both = r#"data: {"choices":[{"index":1,"delta":{"reasoning":"a","reasoning_content":"a"}}]}"#;
    check("openai-chat", SSE, &[both, "\n\n"]);
    let text = "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"logprobs\":{\"tokens\":[\"a\"]}}]}\n\n";
    check("openai-completions", SSE, &[text]);
    let delta =
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n\n";
    check("anthropic-messages", SSE, &[delta]);
}

#[test]
fn nothing_per_event_in_other_framings() {
    let line = "{\"message\":{\"content\":\"a\"},\"done\":false}\n";
    check("ollama-chat", "application/x-ndjson", &[line]);
    check("ollama-chat", "application/x-ndjson", &[&line[..20], &line[20..]]);

    let nul = include_str!("../../../dialects/ollama-chat/dialect.toml").replace("\"ndjson\"", "\"nul\"");
    let nul = Arc::new(Dialect::parse("nul", &nul).unwrap());
    check_of(&nul, "", 0, |_| vec![&line.as_bytes()[..20], &line.as_bytes()[20..], b"\0"]);

    let part = r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":3,"totalTokenCount":4}}"#;
    let array = Dialect::builtin("gemini-json").unwrap();
    let (head, tail) = (&part.as_bytes()[..50], &part.as_bytes()[50..]);
    let open = |n| if n == 0 { &b"["[..] } else { b",\n" };
    check_of(&array, "application/json", 0, |n| vec![open(n), part.as_bytes()]);
    check_of(&array, "application/json", 0, |n| vec![open(n), head, tail]);
}

/// A binary frame of that event.
fn frame(name: &str, payload: &[u8]) -> Vec<u8> {
    let mut headers = vec![11];
    headers.extend_from_slice(b":event-type");
    headers.extend_from_slice(&[7, 0, name.len() as u8]);
    headers.extend_from_slice(name.as_bytes());
    let total = (16 + headers.len() + payload.len()) as u32;
    let mut frame = [total.to_be_bytes(), (headers.len() as u32).to_be_bytes()].concat();
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[test]
fn nothing_per_binary_frame() {
    let converse =
        frame("contentBlockDelta", br#"{"contentBlockIndex":0,"delta":{"text":"a"},"p":"abcdef"}"#);
    let dialect = Dialect::builtin("bedrock-converse").unwrap();
    let aws = "application/vnd.amazon.eventstream";
    check_of(&dialect, aws, 0, |_| vec![&converse]);
    check_of(&dialect, aws, 0, |_| vec![&converse[..30], &converse[30..]]);

    // {"type":"content_block_delta","delta":{"text":"a"}}
    let inner = "eyJ0eXBlIjoiY29udGVudF9ibG9ja19kZWx0YSIsImRlbHRhIjp7InRleHQiOiJhIn19";
    let invoke = frame("chunk", format!("{{\"bytes\":\"{inner}\",\"p\":\"abc\"}}").as_bytes());
    check_of(&Dialect::builtin("bedrock-invoke").unwrap(), aws, 0, |_| vec![&invoke]);
}

#[test]
fn nothing_per_event_that_repeats_the_text() {
    let dialect = Dialect::builtin("sglang-generate").unwrap();
    let event = |text: &str, n: u64| {
        format!("data: {{\"text\":\"{text}\",\"meta_info\":{{\"completion_tokens\":{n}}}}}\n\n").into_bytes()
    };
    let repeated: Vec<_> = (0..WARM + COUNTED).map(|n| event(&"ab".repeat(n as usize + 1), n)).collect();
    check_of(&dialect, SSE, 1, |n| vec![&repeated[n as usize]]);
    let increments: Vec<_> = (0..WARM + COUNTED).map(|n| event(&format!("{n:07}"), n)).collect();
    check_of(&dialect, SSE, 0, |n| vec![&increments[n as usize]]);
}
