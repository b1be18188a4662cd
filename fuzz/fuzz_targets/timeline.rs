//! Recordings of all forms, and dialect files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ttft_dialect::{DecodeOptions, Dialect, decode_bytes};

fuzz_target!(|recording: &[u8]| {
    for file in ["a.jsonl", "a.sse", "a.json", "a"] {
        let _ = decode_bytes(file, recording.to_vec(), &DecodeOptions::default());
    }
    if let Ok(text) = std::str::from_utf8(recording) {
        let _ = Dialect::parse("a.toml", text);
    }
});
