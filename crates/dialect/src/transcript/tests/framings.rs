//! How a body is told to be a stream or a document, and where a stream ends, in framings other than SSE.

use super::*;

fn text_of(dialect: &str, content_type: &str, reads: &[&str]) -> (Answer, String) {
    let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
    let (answer, texts) = read(dialect, 200, content_type, &reads, End::Clean);
    (answer, texts.text)
}

const A: &str = "{\"message\":{\"content\":\"a\"},\"done\":false}\n";
const B: &str = "{\"message\":{\"content\":\"b\"},\"done\":true,\"eval_count\":2}\n";

#[test]
fn lines_that_are_called_json() {
    let json = "application/json";
    let ms = |n| Some(Stamp::user(Nanos::from_millis(n)));
    let (answer, text) = text_of("ollama-chat", json, &[A, B]);
    assert_eq!((outcome(&answer), text.as_str(), answer.facts.streamed), (OK, "ab", true));
    assert_eq!((answer.first_token, answer.last_token), (ms(1), ms(2)), "each came when it came");
    let (answer, text) = text_of("ollama-chat", json, &[&A[..9], &A[9..], "\n", &format!("{A}{B}")]);
    assert_eq!((text.as_str(), answer.first_token, answer.events.len()), ("aab", ms(2), 3));

    let (answer, _) = text_of("ollama-chat", json, &[A]);
    assert_eq!(outcome(&answer).0, Outcome::Truncated, "the first line says that more should come");
    assert_eq!(answer.first_token, ms(1));
    let (answer, text) = text_of("ollama-chat", json, &[B]);
    assert_eq!((outcome(&answer), text.as_str(), answer.facts.streamed), (OK, "b", false), "a document");
    assert_eq!(answer.first_token, None);
    let pretty = "{\n  \"message\": {\"content\": \"a\"},\n  \"done\": true\n}\n";
    let (answer, text) = text_of("ollama-chat", json, &[pretty]);
    assert_eq!((outcome(&answer), text.as_str(), answer.facts.streamed), (OK, "a", false), "a document");
    let (answer, _) = text_of("ollama-chat", json, &["{\"error\":\"no such model\"}"]);
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::InBodyError)));
    let (answer, _) = text_of("ollama-chat", "text/html", &["<html><title>Sign in</title>"]);
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::NotStreamed)));
    let (answer, _) = text_of("ollama-chat", "", &["<html><title>Sign in</title>"]);
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::NotStreamed)));
}

#[test]
fn an_array_is_a_stream_and_an_object_a_document() {
    let part = |text: &str, finish: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}{finish}}}]}}"#)
    };
    let stop = r#","finishReason":"STOP""#;
    let stream = format!("[{}\n,\n{}]", part("a", ""), part("b", stop));
    for content_type in ["application/json", "text/plain", ""] {
        let (answer, text) = text_of("gemini-json", content_type, &[&stream]);
        assert_eq!(
            (outcome(&answer), text.as_str(), answer.facts.streamed),
            (OK, "ab", true),
            "{content_type}"
        );
        let (answer, text) = text_of("gemini-json", content_type, &[&part("a", stop)]);
        assert_eq!(
            (outcome(&answer), text.as_str(), answer.facts.streamed),
            (OK, "a", false),
            "{content_type}"
        );
    }
    let (answer, _) = text_of("gemini-json", "application/json", &[&stream[..stream.len() - 20]]);
    assert_eq!(outcome(&answer), (Outcome::Truncated, Some(ErrorClass::Truncated)));
    assert!(answer.facts.unfinished_event);
    let (answer, _) = text_of("gemini-json", "application/json", &["[]"]);
    assert_eq!(outcome(&answer), (Outcome::Truncated, Some(ErrorClass::Truncated)), "no event at all");
}

/// Gateways write errors without saying that they are.
#[test]
fn words_of_an_error() {
    let in_body = (Outcome::Error, Some(ErrorClass::InBodyError));
    for (body, code) in [
        (r#"{"detail":"m"}"#, None),
        (r#"{"code":401,"msg":"m"}"#, Some("401")),
        (r#"{"error_code":17,"error_msg":"m"}"#, Some("17")),
        (r#"{"message":"m","type":"t"}"#, Some("t")),
    ] {
        let (answer, _) = text_of("openai-chat", "application/json", &[body]);
        assert_eq!(outcome(&answer), in_body, "{body}");
        let failure = answer.failure.unwrap();
        assert_eq!((failure.code.as_deref(), failure.message.as_str()), (code, "m"), "{body}");
    }
    let event = "data: {\"code\":429,\"message\":\"m\"}\n\n";
    for reads in [&[event][..], &[HI, event], &[HI, event, DONE]] {
        assert_eq!(chat(reads).0.failure, in_stream("429", "m"), "{reads:?}");
    }
    assert_eq!(outcome(&chat(&[HI, event, STOP, DONE]).0), OK, "it finished all the same");
}

#[test]
fn a_second_value_behind_a_document_counts_too() {
    let whole = r#"{"choices":[{"message":{"content":"Hi"}}]}"#;
    let (answer, _) = text_of("openai-chat", "application/json", &[whole, r#"{"error":{"message":"m"}}"#]);
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::InBodyError)));
    let (answer, _) = text_of("openai-chat", "application/json", &[whole, " oops"]);
    assert_eq!((outcome(&answer), answer.facts.malformed_events), (OK, 1));
}

#[test]
fn the_end_of_the_body_may_be_the_end() {
    let event = "data: {\"text_output\":\"a\"}\n\n".as_bytes();
    let (answer, _) = read("triton-generate", 200, SSE, &[event], End::Clean);
    assert_eq!((outcome(&answer), answer.ended), (OK, Some(Stamp::user(Nanos::from_millis(1000)))));
    let (answer, _) = read("triton-generate", 200, SSE, &[event], End::Reset);
    assert_eq!((outcome(&answer), answer.ended), ((Outcome::Truncated, Some(ErrorClass::Truncated)), None));
    let (answer, _) = read("triton-generate", 200, SSE, &[], End::Clean);
    assert_eq!(outcome(&answer), (Outcome::Truncated, Some(ErrorClass::Truncated)));
    let (answer, _) = read("triton-generate", 200, SSE, &[b"data: {\"text_output\":\"\"}\n\n"], End::Clean);
    assert_eq!(outcome(&answer).0, Outcome::NoOutput);
}

#[test]
fn a_terminator_without_its_blank_line_ends_an_open_stream() {
    let complete = |bytes: &str| {
        let mut transcript = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options::default());
        transcript.on_head(200, Some(SSE), None);
        transcript.on_body(format!("{HI}{STOP}").as_bytes(), 1, Stamp::user(Nanos(1)));
        transcript.on_body(bytes.as_bytes(), 2, Stamp::user(Nanos(2)));
        let complete = transcript.is_complete();
        let answer = transcript.finish(End::Clean, Stamp::user(Nanos(3)));
        assert_eq!((outcome(&answer), answer.facts.terminator), (OK, complete), "{bytes:?}");
        complete
    };
    for tail in ["data: [DONE]\n\n", "data: [DONE]\n", "data:[DONE]", "data: [DONE]\r", "data: [DONE]\r\n"] {
        assert!(complete(tail), "{tail:?}");
    }
    for tail in ["", "data: [DON", "data: {\"x\":\"[DONE]\"}", ": [DONE]\n"] {
        assert!(!complete(tail), "{tail:?}");
    }
}

#[test]
fn what_an_answer_looks_like() {
    let looks = |body: &str, keep_text: bool| {
        let mut transcript = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options { keep_text });
        transcript.on_head(200, Some(SSE), None);
        for piece in body.as_bytes().chunks(7) {
            transcript.on_body(piece, 1, Stamp::user(Nanos(1)));
        }
        transcript.looks_like().map(|dialect| dialect.name().to_owned())
    };
    let anthropic = "event: message_start\ndata: {\"type\": \"message_start\", \"message\": {}}\n\n";
    assert_eq!(looks(anthropic, true).as_deref(), Some("anthropic-messages"));
    assert_eq!(looks(anthropic, false), None);
    assert_eq!(looks("data: {\"hello\":1}\n\n", true), None);
}

#[test]
fn choices_that_count_for_themselves() {
    let event = |index: u64, text: &str, tokens: u64| {
        format!(
            "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"{text}\"}}}}],\"usage\":{{\"completion_tokens\":{tokens}}}}}\n\n"
        )
    };
    let reads = [event(0, "a", 1), event(1, "b", 1), event(1, "c", 3), event(0, "d", 2), DONE.to_owned()];
    let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
    let (answer, texts) = chat(&reads);
    assert_eq!((answer.events.tokens, answer.usage.output), (vec![1, 1, 2, 1], Some(5)));
    assert_eq!(texts.events, ["a", "b", "c", "d"]);
}

#[test]
fn parts_of_a_count() {
    let event = |usage: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"a\"}}]}},\"finishReason\":\"STOP\"}}],\"usageMetadata\":{{{usage}}}}}\n\n"
        )
    };
    for (usage, output, reasoning) in [
        (r#""promptTokenCount":5,"candidatesTokenCount":3,"totalTokenCount":8"#, Some(3), None),
        (r#""promptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":4"#, Some(7), Some(4)),
        (r#""totalTokenCount":12,"promptTokenCount":5,"thoughtsTokenCount":7"#, Some(7), Some(7)),
        (r#""promptTokenCount":5,"totalTokenCount":5"#, None, None),
        (r#""totalTokenCount":5"#, None, None),
    ] {
        let (answer, _) = text_of("gemini-sse", SSE, &[&event(usage)]);
        assert_eq!((answer.usage.output, answer.usage.reasoning), (output, reasoning), "{usage}");
    }
}
