//! Server-sent events, as two dialects read them.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    ttft_fuzz::check("openai-chat", "text/event-stream", body);
    ttft_fuzz::check("anthropic-messages", "text/event-stream", body);
});
