//! Nanoseconds per event of the hot path: whole events of an `openai-chat` stream, text not kept.

#![allow(clippy::print_stdout)]

use std::hint::black_box;

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

/// The fastest round, so that what else the machine does is left out.
fn measure(name: &str, reads: &[Vec<u8>], events: usize) {
    let dialect = Dialect::builtin("openai-chat").expect("it is carried");
    let mut best = i64::MAX;
    for _ in 0..ROUNDS {
        let mut transcript = Transcript::new(dialect.clone(), Options::default());
        transcript.on_head(200, Some("text/event-stream"), None);
        let start = mono_now();
        for (number, read) in (0..).zip(reads) {
            transcript.on_body(black_box(read), number, Stamp::user(Nanos(number as i64)));
        }
        let took = mono_now() - start;
        let answer = black_box(transcript.finish(End::Clean, Stamp::user(Nanos::ZERO)));
        assert_eq!(answer.events.len(), events);
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

fn main() {
    let plain = event("");
    let one_a_read: Vec<_> = (0..EVENTS).map(|_| plain.clone().into_bytes()).collect();
    let sixteen_a_read: Vec<_> = (0..EVENTS / 16).map(|_| plain.repeat(16).into_bytes()).collect();
    let cut: Vec<_> = plain.repeat(EVENTS).into_bytes().chunks(147).map(<[u8]>::to_vec).collect();
    let usage = event(",\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,\"total_tokens\":120}");
    let running: Vec<_> = (0..EVENTS).map(|_| usage.clone().into_bytes()).collect();
    measure("one event a read", &one_a_read, EVENTS);
    measure("sixteen events a read", &sixteen_a_read, EVENTS / 16 * 16);
    measure("events cut over reads", &cut, EVENTS);
    measure("usage on every event", &running, EVENTS);
}
