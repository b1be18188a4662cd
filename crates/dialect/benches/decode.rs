//! Nanoseconds per event of the hot path, text not kept: whole events of `openai-chat` in several shapes, and one
//! event a read of every other dialect. With words, as in `cargo bench -p ttft-dialect -- usage ollama`, only what has
//! one of them in its name.

#![allow(clippy::print_stdout)]

use std::hint::black_box;

use base64::Engine;
use ttft_dialect::{Dialect, End, Options, Transcript};
use ttft_kernel::mono_now;
use ttft_model::{Nanos, Stamp};

const EVENTS: usize = 10_000;
const ROUNDS: usize = 40;

fn event(extra: &str) -> String {
    let mut event = format!(
        "data: {{\"id\":\"chatcmpl-9d5e7a3c1b\",\"object\":\"chat.completion.chunk\",\"created\":1796043994,\"model\":\
         \"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" token\"}},\"logprobs\":null,\
         \"finish_reason\":null}}]{extra}}}"
    );
    event.push_str("\n\n");
    event
}

/// A binary frame with such headers as Bedrock sends.
fn frame(name: &str, payload: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in
        [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")]
    {
        headers.push(name.len() as u8);
        headers.extend_from_slice(name.as_bytes());
        headers.extend_from_slice(&[7, 0, value.len() as u8]);
        headers.extend_from_slice(value.as_bytes());
    }
    let total = (16 + headers.len() + payload.len()) as u32;
    let mut frame = [total.to_be_bytes(), (headers.len() as u32).to_be_bytes()].concat();
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// The fastest round, so that what else the machine does is left out.
fn measure(name: &str, dialect: &str, content_type: &str, reads: &[Vec<u8>], events: usize) {
    let wanted: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
        return;
    }
    let dialect = Dialect::builtin(dialect).expect("it is carried");
    let mut best = i64::MAX;
    for _ in 0..ROUNDS {
        let mut transcript = Transcript::new(dialect.clone(), Options::default());
        transcript.on_head(200, Some(content_type), None);
        let start = mono_now();
        for (number, read) in (0..).zip(reads) {
            transcript.on_body(black_box(read), number, Stamp::user(Nanos(number as i64)));
        }
        let took = mono_now() - start;
        let answer = black_box(transcript.finish(End::Clean, Stamp::user(Nanos::ZERO)));
        assert_eq!(answer.events.len(), events, "{name}");
        best = best.min(took.0);
    }
    let bytes: usize = reads.iter().map(Vec::len).sum();
    println!(
        "{name}: {:.0} ns an event of {} bytes, {:.2} GB/s",
        best as f64 / events as f64,
        bytes / events,
        bytes as f64 / best as f64
    );
}

const SSE: &str = "text/event-stream";

fn main() {
    let plain = event("");
    let one_a_read: Vec<_> = (0..EVENTS).map(|_| plain.clone().into_bytes()).collect();
    let sixteen_a_read: Vec<_> = (0..EVENTS / 16).map(|_| plain.repeat(16).into_bytes()).collect();
    let cut: Vec<_> = plain.repeat(EVENTS).into_bytes().chunks(147).map(<[u8]>::to_vec).collect();
    let usage = event(",\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,\"total_tokens\":120}");
    let running: Vec<_> = (0..EVENTS).map(|_| usage.clone().into_bytes()).collect();
    measure("one event a read", "openai-chat", SSE, &one_a_read, EVENTS);
    measure("sixteen events a read", "openai-chat", SSE, &sixteen_a_read, EVENTS / 16 * 16);
    measure("events cut over reads", "openai-chat", SSE, &cut, EVENTS);
    measure("usage on every event", "openai-chat", SSE, &running, EVENTS);
    others();
}

/// One event a read of other dialects.
fn others() {
    let same = |dialect: &str, content_type: &str, event: &[u8]| {
        let reads: Vec<_> = (0..EVENTS).map(|_| event.to_vec()).collect();
        measure(dialect, dialect, content_type, &reads, EVENTS);
    };
    let data = |json: &str| format!("data: {json}\n\n").into_bytes();
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}"#;
    let named = |name: &str, json: &str| format!("event: {name}\ndata: {json}\n\n").into_bytes();
    same("anthropic-messages", SSE, &named("content_block_delta", delta));
    same(
        "openai-responses",
        SSE,
        &named(
            "response.output_text.delta",
            r#"{"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":" token","logprobs":[]}"#,
        ),
    );
    same(
        "cohere-v2-chat",
        SSE,
        &named(
            "content-delta",
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" token"}}}}"#,
        ),
    );
    let part = r#"{"candidates":[{"content":{"parts":[{"text":" token"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":3,"totalTokenCount":11},"modelVersion":"g","responseId":"r"}"#;
    same("gemini-sse", SSE, format!("data: {part}\r\n\r\n").as_bytes());
    let elements: Vec<_> =
        (0..EVENTS).map(|n| format!("{}{part}\n", if n == 0 { "[" } else { "," }).into_bytes()).collect();
    measure("gemini-json", "gemini-json", "application/json", &elements, EVENTS);
    same(
        "ollama-chat",
        "application/x-ndjson",
        b"{\"model\":\"qwen3:8b\",\"created_at\":\"2026-11-30T16:00:00.123456789Z\",\"message\":{\"role\":\"assistant\",\"content\":\" token\"},\"done\":false}\n",
    );
    same(
        "tgi-generate",
        SSE,
        &data(
            r#"{"index":2,"token":{"id":7,"text":" token","logprob":-0.25,"special":false},"generated_text":null,"details":null}"#,
        ),
    );
    same(
        "llamacpp-completion",
        SSE,
        &data(
            r#"{"index":0,"content":" token","tokens":[7],"stop":false,"id_slot":-1,"tokens_predicted":2,"tokens_evaluated":5}"#,
        ),
    );
    same(
        "hunyuan-native",
        SSE,
        &data(
            r#"{"Note":"AI","Choices":[{"FinishReason":"","Delta":{"Role":"assistant","Content":" token"},"Index":0}],"Created":1796043994,"Id":"hy","Usage":{"PromptTokens":3,"CompletionTokens":2,"TotalTokens":5}}"#,
        ),
    );
    let counted: Vec<_> = (0..EVENTS)
        .map(|n| {
            data(&format!(
                r#"{{"output":{{"choices":[{{"message":{{"content":" token {n:05}","role":"assistant"}},"finish_reason":"null"}}]}},"usage":{{"total_tokens":23,"input_tokens":20,"output_tokens":3}},"request_id":"r"}}"#
            ))
        })
        .collect();
    measure("dashscope-native, increments", "dashscope-native", SSE, &counted, EVENTS);
    same("azure-openai-chat", SSE, event("").as_bytes());
    same("mistral-chat", SSE, event("").as_bytes());
    same(
        "openai-completions",
        SSE,
        &data(
            r#"{"id":"cmpl-9d5e7a3c1b","object":"text_completion","created":1796043994,"model":"m","choices":[{"index":0,"text":" token","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}"#,
        ),
    );
    same(
        "ollama-generate",
        "application/x-ndjson",
        b"{\"model\":\"qwen3:8b\",\"created_at\":\"2026-11-30T16:00:00.123456789Z\",\"response\":\" token\",\"done\":false}\n",
    );
    let texts: Vec<_> = (0..EVENTS)
        .map(|n| {
            data(&format!(
                r#"{{"model_name":"ensemble","model_version":"1","sequence_end":false,"sequence_id":0,"sequence_start":false,"text_output":" token {n:05}"}}"#
            ))
        })
        .collect();
    measure("triton-generate", "triton-generate", SSE, &texts, EVENTS);
    same(
        "qianfan-v1",
        SSE,
        &data(
            r#"{"id":"as-bcmt5ct4iy","object":"chat.completion","created":1680167072,"sentence_id":1,"is_end":false,"is_truncated":false,"result":" token","need_clear_history":false,"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}"#,
        ),
    );
    // Each event repeats the text so far.
    let repeats: Vec<_> = (1..=200)
        .map(|n| {
            let text = " token".repeat(n);
            data(&format!(
                r#"{{"text":"{text}","output_ids":[1],"meta_info":{{"id":"s","finish_reason":null,"prompt_tokens":9,"completion_tokens":{n},"cached_tokens":1}}}}"#
            ))
        })
        .collect();
    measure("sglang-generate, 200 repeats", "sglang-generate", SSE, &repeats, repeats.len());
    let picture = data(
        r#"{"output":{"choices":[{"message":{"content":[{"text":" token"}],"role":"assistant"},"finish_reason":"null"}]},"usage":{"input_tokens":1243,"output_tokens":2},"request_id":"r"}"#,
    );
    let pictures: Vec<_> = (0..EVENTS)
        .map(|n| String::from_utf8_lossy(&picture).replace(" token", &format!(" token {n:05}")).into_bytes())
        .collect();
    measure("dashscope-multimodal", "dashscope-multimodal", SSE, &pictures, EVENTS);
    let aws = "application/vnd.amazon.eventstream";
    let converse = r#"{"contentBlockIndex":0,"delta":{"text":" token"},"p":"abcdefghijklmnop"}"#;
    same("bedrock-converse", aws, &frame("contentBlockDelta", converse.as_bytes()));
    let inner = base64::prelude::BASE64_STANDARD.encode(delta);
    let chunk = format!("{{\"bytes\":\"{inner}\",\"p\":\"abcdefghijklmnop\"}}");
    same("bedrock-invoke", aws, &frame("chunk", chunk.as_bytes()));
}
