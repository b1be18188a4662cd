//! The worked example of `docs/dialects.md` works.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ttft_dialect::{Dialect, End, Options, Prompt, RequestSpec, Transcript, test_samples};
use ttft_model::{ErrorClass, Nanos, Outcome, Stamp};

const DOCS: &str = include_str!("../../../docs/dialects.md");

/// The first block of that kind.
fn block(kind: &str) -> &'static str {
    blocks(kind)[0]
}

/// All blocks of that kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    DOCS.split(&format!("```{kind}\n")).skip(1).map(|rest| &rest[..rest.find("```").unwrap()]).collect()
}

fn read(dialect: &Arc<Dialect>, body: &str) -> (ttft_model::Answer, ttft_dialect::Texts) {
    let mut transcript = Transcript::new(dialect.clone(), Options { keep_text: true });
    transcript.on_head(200, Some("text/event-stream"), None);
    transcript.on_body(body.as_bytes(), 1, Stamp::user(Nanos(1)));
    transcript.finish_with_texts(End::Clean, Stamp::user(Nanos(2)))
}

#[test]
fn the_worked_example() {
    let dialect = Arc::new(Dialect::parse("docs/dialects.md", block("toml")).unwrap());
    let (answer, texts) = read(&dialect, block("text"));
    assert_eq!((answer.outcome, answer.failure), (Some(Outcome::Ok), None));
    assert_eq!((texts.text.as_str(), texts.reasoning.as_str()), ("Hi there", "Hm"));
    assert_eq!((answer.usage.input, answer.usage.output), (Some(7), Some(3)));
    assert_eq!(
        (answer.finish_reason.as_deref(), answer.response_id.as_deref()),
        (Some("length"), Some("r-1"))
    );
    assert_eq!(answer.timings.queue_ms, Some(250.0));

    let (answer, _) = read(&dialect, "data: {\"kind\":\"fault\",\"no\":12,\"text\":\"out of memory\"}\n\n");
    let failure = answer.failure.unwrap();
    assert_eq!(failure.class, ErrorClass::InStreamError);
    assert_eq!((failure.code.as_deref(), failure.message.as_str()), (Some("12"), "out of memory"));

    let spec = RequestSpec {
        model: "large".to_owned(),
        prompt: Prompt::Text("Hello".to_owned()),
        max_tokens: None,
        ignore_eos: false,
        stream: true,
        extra: None,
    };
    let body = String::from_utf8(dialect.request_body(&spec)).unwrap();
    assert_eq!(body, r#"{"input":"Hello","limit":256,"live":true}"#);
    assert_eq!(dialect.path("large"), "/v3/models/large/stream");
    assert!(dialect.headers(Some("k")).contains(&("x-acme-key".to_owned(), "k".to_owned())));
}

#[test]
fn its_sample_holds() {
    let folder = tempfile::tempdir().unwrap();
    let samples = folder.path().join("samples");
    std::fs::create_dir(&samples).unwrap();
    std::fs::write(folder.path().join("dialect.toml"), block("toml")).unwrap();
    std::fs::write(samples.join("hello.sse"), block("text")).unwrap();
    std::fs::write(samples.join("hello.expect.json"), block("json")).unwrap();
    let (dialect, samples) = test_samples(folder.path()).unwrap();
    assert_eq!((dialect.name(), samples.len()), ("acme", 1));
    assert_eq!(samples[0].problems, [""; 0]);
}

#[test]
fn the_example_of_a_dialect_with_a_difference() {
    let dialect = Arc::new(Dialect::parse("docs/dialects.md", blocks("toml")[1]).unwrap());
    let body = "data: {\"choices\":[{\"delta\":{\"musing\":\"Hm\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n";
    let (answer, texts) = read(&dialect, body);
    assert_eq!(
        (answer.outcome, texts.text.as_str(), texts.reasoning.as_str()),
        (Some(Outcome::Ok), "Hi", "Hm")
    );
    assert_eq!(dialect.path("m"), "/acme/m/chat");
    let headers = dialect.headers(Some("k"));
    assert!(headers.contains(&("x-acme-key".to_owned(), "k".to_owned())), "{headers:?}");
    assert!(!headers.iter().any(|(name, _)| name == "authorization"), "{headers:?}");
}

#[test]
fn the_example_of_images_and_tools() {
    let text = format!("name = \"a\"\ntitle = \"A\"\nextends = \"openai-chat\"\n{}", blocks("toml")[2]);
    let dialect = Dialect::parse("docs/dialects.md", &text).unwrap();
    let spec = RequestSpec {
        model: "m".to_owned(),
        prompt: Prompt::Messages(serde_json::json!([{ "role": "user", "content": [
            { "type": "text", "text": "What?" },
            { "type": "image_url", "image_url": { "url": "data:image/jpg;base64,AAAA" } },
        ] }])),
        max_tokens: None,
        ignore_eos: false,
        stream: true,
        extra: Some(serde_json::json!({ "tools": [
            { "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } },
        ] })),
    };
    dialect.check(&spec).unwrap();
    assert_eq!(
        String::from_utf8(dialect.request_body(&spec)).unwrap(),
        r#"{"functions":[{"name":"f","schema":{"type":"object"}}],"messages":[{"holds":[{"text":"What?"},{"picture":{"bytes":"AAAA","kind":"jpeg"}}],"who":"user"}],"model":"m"}"#
    );
}
