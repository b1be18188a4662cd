//! The worked example of `docs/dialects.md` works.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ttft_dialect::{Dialect, End, Options, Prompt, RequestSpec, Transcript};
use ttft_model::{ErrorClass, Nanos, Outcome, Stamp};

const DOCS: &str = include_str!("../../../docs/dialects.md");

/// The first block of that kind.
fn block(kind: &str) -> &'static str {
    let start = DOCS.find(&format!("```{kind}\n")).unwrap() + kind.len() + 4;
    &DOCS[start..start + DOCS[start..].find("```").unwrap()]
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
