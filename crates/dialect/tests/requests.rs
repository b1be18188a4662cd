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

const PIXEL: &str = "data:image/png;base64,iVBORw0KGgo=";

fn spec(prompt: Value, extra: Option<Value>) -> RequestSpec {
    RequestSpec {
        model: "m".to_owned(),
        prompt: Prompt::Messages(prompt),
        max_tokens: None,
        ignore_eos: false,
        stream: true,
        extra,
    }
}

fn image(url: &str) -> Value {
    json!([{ "role": "user", "content": [
        { "type": "text", "text": "{prompt}" },
        { "type": "image_url", "image_url": { "url": url } },
    ] }])
}

/// The body that a dialect makes, or why it makes none.
fn made(dialect: &Dialect, spec: &RequestSpec) -> String {
    match dialect.check(spec) {
        Ok(()) => String::from_utf8(dialect.template(spec).fill("Why?")).unwrap(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn images_tools_and_their_results() {
    let conversation = json!([
        { "role": "user", "content": "Weather?" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{\"at\":\"Rome\"}" } },
            { "id": "c2", "type": "function", "function": { "name": "feel", "arguments": "{}" } },
        ] },
        { "role": "tool", "tool_call_id": "c1", "content": "sunny" },
        { "role": "tool", "tool_call_id": "c2", "content": "warm" },
        { "role": "assistant", "content": "Fine." },
    ]);
    let tools = json!({
        "tools": [{ "type": "function", "function": {
            "name": "look", "description": "Looks.", "parameters": { "type": "object", "properties": {} },
        } }],
        "tool_choice": "auto",
    });
    let question = json!([{ "role": "user", "content": "{prompt}" }]);
    let mut report = String::new();
    for name in Dialect::names() {
        let dialect = Dialect::builtin(name).unwrap();
        writeln!(report, "{name}").unwrap();
        let cases = [
            ("data", spec(image(PIXEL), None)),
            ("url", spec(image("https://x.test/a.JPG?b"), None)),
            ("tools", spec(question.clone(), Some(tools.clone()))),
            ("calls", spec(conversation.clone(), None)),
        ];
        for (case, spec) in cases {
            writeln!(report, "  {case}: {}", made(&dialect, &spec)).unwrap();
        }
    }
    insta::assert_snapshot!(report);
}

#[test]
fn nothing_is_dropped_in_silence() {
    let check = |dialect: &str, prompt: Value, extra: Option<Value>| {
        let error = Dialect::builtin(dialect).unwrap().check(&spec(prompt, extra)).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(check("qianfan-v1", image(PIXEL), None), "the dialect qianfan-v1 cannot send images");
    assert_eq!(
        check("ollama-chat", image("http://x.test/a.png"), None),
        "the dialect ollama-chat cannot send images by http URL (give them as data: URLs)"
    );
    assert!(check("gemini-sse", image("file:///etc/passwd"), None).contains("neither an http URL nor"));
    let audio = json!([{ "role": "user", "content": [{ "type": "input_audio", "input_audio": {} }] }]);
    assert!(check("ollama-generate", audio.clone(), None).contains("parts of the type `input_audio`"));
    assert_eq!(check("openai-chat", audio, None), "");
    let seen =
        json!([{ "role": "system", "content": [{ "type": "image_url", "image_url": { "url": PIXEL } }] }]);
    assert!(check("gemini-json", seen, None).contains("cannot send images"));
    let question = json!([{ "role": "user", "content": "Hi" }]);
    assert!(
        check("bedrock-converse", question.clone(), Some(json!({ "tool_choice": "none" })))
            .contains("the tool choice `none`")
    );

    // What is in the vendor's own shape already is sent as it is.
    let own = json!({ "tools": [{ "name": "look", "input_schema": {} }], "tool_choice": { "type": "any" } });
    let anthropic = Dialect::builtin("anthropic-messages").unwrap();
    let body: Value =
        serde_json::from_slice(&anthropic.request_body(&spec(question, Some(own.clone())))).unwrap();
    assert_eq!((&body["tools"], &body["tool_choice"]), (&own["tools"], &own["tool_choice"]));
    let block =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA" } });
    let native = json!([{ "role": "user", "content": [block, { "type": "text", "text": "Hi", "cache_control": {} }] }]);
    let body: Value = serde_json::from_slice(&anthropic.request_body(&spec(native.clone(), None))).unwrap();
    assert_eq!(body["messages"], native);
}
