//! Lines of JSON, under their own name and under that of a document.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    ttft_fuzz::check("ollama-chat", "application/x-ndjson", body);
    ttft_fuzz::check("ollama-chat", "application/json", body);
});
