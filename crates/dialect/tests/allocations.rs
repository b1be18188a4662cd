//! The hot path allocates nothing per event once its memory has grown.

#![allow(clippy::unwrap_used)]

use ttft_dialect::{Dialect, Options, Transcript};
use ttft_model::{Nanos, Stamp};

/// Events read to let buffers grow, then events that are counted.
const WARM: u64 = 64;
const COUNTED: u64 = 4_000;

/// Allocations over the counted events. `reads` gives the reads that one event comes in.
fn allocations(dialect: &str, content_type: &str, reads: &[&[u8]]) -> u64 {
    let mut transcript = Transcript::new(Dialect::builtin(dialect).unwrap(), Options::default());
    transcript.on_head(200, Some(content_type), None);
    let mut number = 0;
    let mut feed = |transcript: &mut Transcript, events: u64| {
        for _ in 0..events {
            for read in reads {
                number += 1;
                transcript.on_body(read, number, Stamp::user(Nanos(number as i64)));
            }
        }
    };
    feed(&mut transcript, WARM);
    let counted = allocation_counter::measure(|| feed(&mut transcript, COUNTED)).count_total;
    assert_eq!(transcript.answer().events.len() as u64, WARM + COUNTED);
    counted
}

/// The three arrays of the event log double as they grow; beyond that there must be nothing.
fn check(dialect: &str, content_type: &str, reads: &[&str]) {
    let doublings = ((WARM + COUNTED) as f64 / WARM as f64).log2().ceil() as u64;
    let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
    let found = allocations(dialect, content_type, &reads);
    assert!(found > 0, "the growth of the log itself must be seen, else nothing is counted");
    assert!(found <= 3 * (doublings + 1), "{found} allocations in {COUNTED} events of {dialect}");
}

#[test]
fn nothing_per_event() {
    let sse = "text/event-stream";
    let chat = r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a \"b\""},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
    check("openai-chat", sse, &[&format!("data: {chat}\n\n")]);
    check("openai-chat", sse, &[&format!(": ping\n\nevent: message\r\ndata: {chat}\r\n\r\n")]);
    let (head, tail) = chat.split_at(77);
    check("openai-chat", sse, &[&format!("data: {head}"), tail, "\n", "\n"]);
    let both = r#"data: {"choices":[{"index":1,"delta":{"reasoning":"a","reasoning_content":"a"}}]}"#;
    check("openai-chat", sse, &[both, "\n\n"]);
    let text = "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"logprobs\":{\"tokens\":[\"a\"]}}]}\n\n";
    check("openai-completions", sse, &[text]);
    let delta =
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n\n";
    check("anthropic-messages", sse, &[delta]);
    check("ollama-chat", "application/x-ndjson", &["{\"message\":{\"content\":\"a\"},\"done\":false}\n"]);
}
