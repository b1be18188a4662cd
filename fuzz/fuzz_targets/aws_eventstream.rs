//! Binary frames, with JSON in them and with base64.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    ttft_fuzz::check("bedrock-converse", "application/vnd.amazon.eventstream", body);
    ttft_fuzz::check("bedrock-invoke", "application/vnd.amazon.eventstream", body);
});
