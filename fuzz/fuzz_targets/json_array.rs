//! The objects of one JSON array.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    ttft_fuzz::check("gemini-json", "application/json", body);
});
