//! Any dialect with any head: the first bytes choose them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ttft_dialect::{Dialect, End, Options, Transcript};
use ttft_model::{Nanos, Stamp};

const TYPES: [Option<&str>; 6] = [
    None,
    Some("text/event-stream"),
    Some("application/json"),
    Some("application/x-ndjson"),
    Some("application/vnd.amazon.eventstream"),
    Some("text/html"),
];
const ENCODINGS: [Option<&str>; 4] = [None, Some("gzip"), Some("deflate"), Some("br")];
const STATUSES: [u16; 4] = [200, 204, 429, 503];

fuzz_target!(|input: &[u8]| {
    let Some((&[dialect, kind, encoding, size], body)) = input.split_first_chunk() else { return };
    let pick = |n: u8, of: usize| usize::from(n) % of;
    let all = Dialect::all();
    let keep_text = encoding & 0x80 == 0;
    let mut transcript = Transcript::new(all[pick(dialect, all.len())].clone(), Options { keep_text });
    let status = STATUSES[usize::from(encoding >> 5) & 3];
    transcript.on_head(status, TYPES[pick(kind, TYPES.len())], ENCODINGS[usize::from(encoding) & 3]);
    for (number, piece) in (1..).zip(body.chunks(usize::from(size) + 1)) {
        transcript.on_body(piece, number, Stamp::user(Nanos(number as i64)));
        if transcript.is_complete() {
            break;
        }
    }
    let _ = transcript.looks_like();
    let answer = transcript.finish(End::Clean, Stamp::user(Nanos(i64::MAX)));
    assert!(answer.outcome.is_some());
    assert!(answer.first_token.is_some() == !answer.events.is_empty());
});
