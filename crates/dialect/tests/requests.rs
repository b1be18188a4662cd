//! What each dialect sends: path, headers and body, for one prompt and for a conversation.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use serde_json::{Value, json};
use ttft_dialect::{Dialect, Prompt, RequestSpec};

#[test]
fn requests() {
    let conversation = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "text", "text": "Hello" }] },
        { "role": "assistant", "content": "Hi." },
        { "role": "user", "content": "{prompt}" },
    ]);
    let mut report = String::new();
    for name in Dialect::names() {
        let dialect = Dialect::builtin(name).unwrap();
        writeln!(report, "{name}: {}", dialect.path("org/model:1")).unwrap();
        for (name, value) in dialect.headers(Some("KEY")) {
            writeln!(report, "  {name}: {value}").unwrap();
        }
        for prompt in [Prompt::Text("Why?".to_owned()), Prompt::Messages(conversation.clone())] {
            let spec = RequestSpec {
                model: "org/model:1".to_owned(),
                prompt,
                max_tokens: Some(16),
                ignore_eos: false,
                stream: true,
                extra: None,
            };
            let filled = dialect.template(&spec).fill("Why?");
            let body: Value = serde_json::from_slice(&filled).unwrap();
            writeln!(report, "  {body}").unwrap();
        }
    }
    insta::assert_snapshot!(report);
}
