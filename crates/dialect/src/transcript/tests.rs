//! Streams with oddities, each with what must come of it.

use std::io::Write;

use proptest::prelude::*;
use ttft_model::{Answer, Channel, ErrorClass, Failure, Nanos, Outcome, Stamp};

mod bad_input;
mod framings;

use super::{End, Options, Texts, Transcript};
use crate::Dialect;

const SSE: &str = "text/event-stream; charset=utf-8";

/// A transcript with a head; each read is one millisecond after the one before, the first at 1 ms.
fn read(dialect: &str, status: u16, content_type: &str, reads: &[&[u8]], end: End) -> (Answer, Texts) {
    let mut transcript = Transcript::new(Dialect::builtin(dialect).unwrap(), Options { keep_text: true });
    transcript.on_head(status, Some(content_type), None);
    for (number, bytes) in (1..).zip(reads) {
        transcript.on_body(bytes, number, Stamp::user(Nanos::from_millis(number as i64)));
    }
    transcript.finish_with_texts(end, Stamp::user(Nanos::from_millis(1000)))
}

fn chat(reads: &[&str]) -> (Answer, Texts) {
    let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
    read("openai-chat", 200, SSE, &reads, End::Clean)
}

/// Events of chat, each with these fields in its one choice's delta.
fn deltas(deltas: &[&str]) -> String {
    let event = |delta: &&str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{delta}}}}}]}}\n\n");
    deltas.iter().map(event).collect()
}

const HI: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn outcome(answer: &Answer) -> (Outcome, Option<ErrorClass>) {
    (answer.outcome.unwrap(), answer.failure.as_ref().map(|failure| failure.class))
}

const OK: (Outcome, Option<ErrorClass>) = (Outcome::Ok, None);

fn in_stream(code: &str, message: &str) -> Option<Failure> {
    let code = (!code.is_empty()).then(|| code.to_owned());
    let failure = Failure { class: ErrorClass::InStreamError, code, message: message.to_owned() };
    (!message.is_empty()).then_some(failure)
}

#[test]
fn every_channel_counts_and_nothing_else() {
    for (delta, channel) in [
        (r#""content":" ""#, Some(Channel::Text)),
        (r#""reasoning":"a""#, Some(Channel::Reasoning)),
        (r#""reasoning_content":"a""#, Some(Channel::Reasoning)),
        (r#""refusal":"a""#, Some(Channel::Refusal)),
        (r#""tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]"#, Some(Channel::Tool)),
        (r#""tool_calls":[{"index":0,"function":{"arguments":"{"}}]"#, Some(Channel::Tool)),
        (r#""audio":{"data":"AAAA"}"#, Some(Channel::Audio)),
        (r#""audio":{"transcript":"a"}"#, Some(Channel::Audio)),
        (r#""content":[{"type":"text","text":"a"}]"#, Some(Channel::Text)),
        (
            r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]"#,
            Some(Channel::Reasoning),
        ),
        (r#""reasoning":"a","content":"b""#, Some(Channel::Text)),
        (r#""content":"""#, None),
        (r#""content":null"#, None),
        (r#""content":[]"#, None),
        (r#""role":"assistant""#, None),
        (r#""audio":{"id":"x","expires_at":1}"#, None),
        (r#""tool_calls":[{"index":0,"id":"x","function":{"name":"","arguments":""}}]"#, None),
    ] {
        let (answer, _) = chat(&[&deltas(&[delta])]);
        assert_eq!(answer.first_token.map(|_| answer.events.channel(0)), channel, "{delta}");
        let is_answer = channel.is_some_and(|channel| channel != Channel::Reasoning);
        assert_eq!(answer.first_answer.is_some(), is_answer, "{delta}");
        assert_eq!(answer.facts.malformed_events, 0, "{delta}");
    }
}

#[test]
fn the_same_reasoning_under_two_names_counts_once() {
    let both = r#""reasoning":"We","reasoning_content":"We""#;
    let (answer, texts) = chat(&[&deltas(&[both]), HI, STOP, DONE]);
    assert_eq!((texts.reasoning.as_str(), texts.text.as_str()), ("We", "Hi"));
    assert_eq!(answer.events.len(), 2);
}

#[test]
fn ends() {
    assert_eq!(outcome(&chat(&[HI, STOP, DONE]).0), OK);
    assert_eq!(outcome(&chat(&[HI, DONE]).0), OK, "terminator without finish");
    let (answer, _) = chat(&[HI, STOP]);
    assert_eq!(outcome(&answer), OK, "finish without terminator");
    assert_eq!((answer.ended, answer.facts.terminator, answer.facts.finish), (None, false, true));
    assert_eq!(outcome(&chat(&[HI]).0), (Outcome::Truncated, Some(ErrorClass::Truncated)));
    assert_eq!(outcome(&chat(&[]).0), (Outcome::Truncated, Some(ErrorClass::Truncated)));
    assert_eq!(outcome(&chat(&[STOP, DONE]).0), (Outcome::NoOutput, Some(ErrorClass::NoOutput)));

    for tail in ["data: [DONE]\n", "data: [DONE]", "data:[DONE]"] {
        let (answer, _) = chat(&[HI, tail]);
        assert_eq!(outcome(&answer), OK, "{tail:?}");
        assert!(answer.facts.unfinished_event && answer.facts.terminator, "{tail:?}");
    }
    let reads = [HI.as_bytes(), STOP.as_bytes()];
    let (answer, _) = read("openai-chat", 200, SSE, &reads, End::Reset);
    assert_eq!(outcome(&answer), OK, "a reset behind the finish");
    let (answer, _) = read("openai-chat", 200, SSE, &reads[..1], End::Reset);
    assert_eq!(outcome(&answer), (Outcome::Truncated, Some(ErrorClass::Truncated)));
    let (answer, _) = read("openai-chat", 200, SSE, &reads[..1], End::TimedOut(ErrorClass::TimeoutIdle));
    assert_eq!(outcome(&answer), (Outcome::Timeout, Some(ErrorClass::TimeoutIdle)));
    let (answer, _) = read("openai-chat", 200, SSE, &reads[..1], End::Cancelled);
    assert_eq!(outcome(&answer), (Outcome::Cancelled, None));
    let answer = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options::default())
        .finish(End::Reset, Stamp::user(Nanos(1)));
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::Reset)), "before any head");
    let tls = Failure::new(ErrorClass::Tls, "bad certificate");
    let (answer, _) = read("openai-chat", 200, SSE, &[], End::Failed(tls.clone()));
    assert_eq!((answer.outcome, answer.failure), (Some(Outcome::Error), Some(tls)));
}

#[test]
fn nothing_counts_behind_the_terminator() {
    let mut transcript = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options::default());
    transcript.on_head(200, Some(SSE), None);
    transcript.on_body(format!("{HI}{STOP}").as_bytes(), 1, Stamp::user(Nanos(1)));
    assert!(transcript.has_output() && !transcript.is_complete());
    transcript.on_body(DONE.as_bytes(), 2, Stamp::user(Nanos(2)));
    assert!(transcript.is_complete());
    transcript.on_body(format!("{HI}: late\n\n").as_bytes(), 3, Stamp::user(Nanos(3)));
    let answer = transcript.finish(End::TimedOut(ErrorClass::TimeoutIdle), Stamp::user(Nanos(9)));
    assert_eq!(outcome(&answer), OK);
    assert_eq!((answer.events.len(), answer.facts.after_end), (1, 1));
    assert_eq!(answer.ended, Some(Stamp::user(Nanos(2))));
}

#[test]
fn errors_in_the_stream() {
    for (event, failure) in [
        (r#"data: {"error":{"message":"m","type":"t","code":503}}"#, in_stream("503", "m")),
        (r#"data: {"error":{"message":"m","type":"t","code":null}}"#, in_stream("t", "m")),
        (r#"data: {"error":{"type":"t","code":"c","message":"say \"x\""}}"#, in_stream("c", "say \"x\"")),
        (r#"data: {"error":"bare"}"#, in_stream("", "bare")),
        (r#"data: {"error":{"reason":1}}"#, in_stream("", r#"{"reason":1}"#)),
        (r#"data: {"error":{"detail":"m","status_code":7}}"#, in_stream("7", "m")),
        (r#"data: {"errors":[{"message":"m","code":7}],"success":false}"#, in_stream("7", "m")),
        (r#"data: {"object":"error","message":"m","code":400}"#, in_stream("400", "m")),
        (r#"data: {"base_resp":{"status_code":1004,"status_msg":"m"}}"#, in_stream("1004", "m")),
        (
            r#"data: {"id":"x","error":{"code":"server_error","message":"m"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
            in_stream("server_error", "m"),
        ),
        (r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#, in_stream("", "error")),
        (r#"error: {"code":500,"message":"m"}"#, in_stream("500", "m")),
        ("event: error\ndata: {\"message\":\"m\"}", in_stream("", "m")),
        ("event: error\ndata: it broke\ndata: badly", in_stream("", "it broke")),
        (r#"data: {"error":null}"#, None),
        (r#"data: {"error":{}}"#, None),
        (r#"data: {"base_resp":{"status_code":0,"status_msg":"success"}}"#, None),
        ("data: : OPENROUTER PROCESSING", None),
        (r#"data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#, None),
        (r#"data: {"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{}}]}"#, None),
    ] {
        let (answer, _) = chat(&[HI, event, "\n\n", DONE]);
        let wanted = if failure.is_some() { Outcome::Error } else { Outcome::Ok };
        assert_eq!((answer.outcome, answer.failure), (Some(wanted), failure), "{event}");
        assert_eq!(answer.events.len(), 1, "{event}");
    }
}

#[test]
fn errors_where_nothing_is_read_any_more() {
    for end in [
        "data: {\"error\":{\"code\":5,\"message\":\"m\"}}",
        "data: {\"error\":{\"code\":5,\"message\":\"m\"}}\n",
        "event: error\ndata: {\"code\":5,\"message\":\"m\"}\n",
        "error: {\"code\":5,\"message\":\"m\"}",
        "error: {\"code\":5,\"message\":\"m\"}\n",
    ] {
        let (answer, _) = chat(&[HI, STOP, end]);
        assert_eq!(answer.failure, in_stream("5", "m"), "cut off: {end}");
        let (answer, _) = chat(&[HI, STOP, DONE, end, "\n\n"]);
        assert_eq!(answer.failure, in_stream("5", "m"), "behind the terminator: {end}");
    }
    let bare = "{\"error\":{\"code\":5,\"message\":\"m\"}}";
    for reads in [
        [HI, bare, "\n", DONE],
        [HI, STOP, DONE, bare],
        [HI, STOP, bare, "\n"],
        [": c\n\n", bare, "\n\n", ""],
    ] {
        assert_eq!(chat(&reads).0.failure, in_stream("5", "m"), "{reads:?}");
    }
    let late =
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"completion_tokens\":9}}\n\n";
    let (answer, texts) = chat(&[HI, STOP, DONE, late]);
    assert_eq!((outcome(&answer), answer.events.len(), texts.text.as_str()), (OK, 1, "Hi"));
    assert_eq!((answer.usage.output, answer.facts.after_end), (Some(9), 1));
}

#[test]
fn a_whole_answer_as_one_event() {
    let whole = "data: {\"choices\":[{\"message\":{\"content\":\"hi you\"},\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":9}}\n\n";
    let (answer, texts) = chat(&[whole, DONE]);
    assert_eq!((outcome(&answer), answer.facts.streamed, answer.first_token), (OK, false, None));
    assert_eq!((texts.text.as_str(), answer.usage.output), ("hi you", Some(9)));
    let (answer, texts) = chat(&[HI, whole, DONE]);
    assert_eq!((answer.facts.streamed, texts.text.as_str()), (true, "Hi"), "it repeats what came");
}

#[test]
fn data_that_is_not_json() {
    let backtrace = "data: Tool choice was required\ndata:    0: core::panic\ndata:    1: main\n\n";
    let (answer, _) = chat(&[backtrace, DONE]);
    assert_eq!(answer.failure, in_stream("", "Tool choice was required"));
    assert_eq!(answer.facts.malformed_events, 1);

    let (answer, _) = chat(&[HI, "data: hm\n\n", STOP, DONE]);
    assert_eq!((outcome(&answer), answer.facts.malformed_events), (OK, 1), "it finished all the same");
    let broken = "data: {\"role\":\"adata: {\"id\":1}\n\n";
    let (answer, _) = chat(&[HI, broken, HI, STOP, DONE]);
    assert_eq!((outcome(&answer), answer.events.len(), answer.facts.malformed_events), (OK, 2, 1));
    let (answer, _) = chat(&[broken]);
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::Malformed)));
    let (answer, _) = chat(&["data: {\"content\":\"another dialect\"}\n\n"]);
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::Malformed)));
    let (answer, _) = chat(&[HI, "data:\n\n", STOP, DONE]);
    assert_eq!((answer.facts.comments, answer.facts.malformed_events), (1, 0), "nothing is a ping");
}

#[test]
fn two_values_in_one_block() {
    let two = r#"{"choices":[{"delta":{"content":"a"}}]}{"choices":[{"delta":{"content":"b"}}]}"#;
    let (answer, texts) = chat(&[&format!("data: {two}\n\n"), STOP, DONE]);
    assert_eq!((texts.text.as_str(), answer.events.len(), answer.facts.malformed_events), ("ab", 2, 0));
    let injected = "data: {\"choices\":[{\"del\ndata: {\"error\":{\"message\":\"m\"}}\n\n";
    let (answer, _) = chat(&[HI, injected]);
    assert_eq!((answer.failure, answer.facts.malformed_events), (in_stream("", "m"), 1));
}

#[test]
fn usage_wherever_it_is() {
    for (event, input, output) in [
        (r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#, Some(7), Some(3)),
        (
            r#"{"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#,
            Some(7),
            Some(3),
        ),
        (
            r#"{"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":3,"queue_time":0.5}}}"#,
            Some(7),
            Some(3),
        ),
        (r#"{"choices":[],"timings":{"predicted_n":3}}"#, None, Some(3)),
        (r#"{"choices":[],"usage":null}"#, None, None),
        (r#"{"choices":[],"usage":{"completion_tokens":null}}"#, None, None),
        (r#"{"usage":{"prompt_tokens":-7,"completion_tokens":18446744073709551615}}"#, None, None),
    ] {
        let (answer, _) = chat(&[HI, STOP, &format!("data: {event}\n\n"), DONE]);
        assert_eq!((answer.usage.input, answer.usage.output), (input, output), "{event}");
        assert_eq!((answer.events.len(), answer.events.tokens[0]), (1, 0), "{event}");
        assert_eq!(answer.last_token, Some(Stamp::user(Nanos::from_millis(1))), "{event}");
    }
    let details = r#"data: {"usage":{"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":4},"prompt_tokens_details":{"cached_tokens":2}}}"#;
    let (answer, _) = chat(&[HI, details, "\n\n", DONE]);
    assert_eq!((answer.usage.reasoning, answer.usage.cached), (Some(4), Some(2)));
}

#[test]
fn running_usage_is_differenced() {
    let event = |text: &str, n: u64| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}],\"usage\":{{\"completion_tokens\":{n}}}}}\n\n"
        )
    };
    let (answer, _) =
        chat(&[&event("", 0), &event("a", 1), &event("", 2), &event("b c", 4), &event("d", 5), DONE]);
    assert_eq!((answer.events.tokens, answer.usage.output), (vec![1, 3, 1], Some(5)));
    let (answer, _) = chat(&[HI, HI, &event("c", 3), DONE]);
    assert_eq!(answer.events.tokens, [0, 0, 0], "a count at the end is no running count");
}

#[test]
fn what_the_server_says_of_its_times() {
    let vllm = r#"data: {"choices":[],"metrics":{"time_to_first_token_ms":20,"queue_time_ms":5,"generation_time_ms":9.5}}"#;
    let (answer, _) = chat(&[HI, vllm, "\n\n", DONE]);
    let timings = answer.timings;
    assert_eq!((timings.queue_ms, timings.prefill_ms, timings.decode_ms), (Some(5.0), Some(20.0), Some(9.5)));
    assert_eq!(timings.ttft_ms, Some(25.0), "from arrival");
    let groq = r#"data: {"x_groq":{"usage":{"queue_time":0.25,"prompt_time":0.5,"total_time":1.5}}}"#;
    let (answer, _) = chat(&[HI, groq, "\n\n", DONE]);
    assert_eq!((answer.timings.queue_ms, answer.timings.total_ms), (Some(250.0), Some(1500.0)));
}

#[test]
fn a_closing_object_with_the_whole_text_is_no_token() {
    let whole = r#"data: {"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"content":"Hi"}}],"usage":{"completion_tokens":1},"base_resp":{"status_code":0}}"#;
    let (answer, texts) = chat(&[HI, whole, "\n\n"]);
    assert_eq!((outcome(&answer), answer.events.len(), texts.text.as_str()), (OK, 1, "Hi"));
    assert_eq!(answer.usage.output, Some(1));
}

#[test]
fn tokens_that_cannot_be_seen() {
    let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n";
    let (answer, _) = chat(&[STOP, usage, DONE]);
    assert_eq!((outcome(&answer), answer.first_token), (OK, None));
}

#[test]
fn several_choices() {
    let of = |choice: u32| {
        format!("data: {{\"choices\":[{{\"index\":{choice},\"delta\":{{\"content\":\"x\"}}}}]}}\n\n")
    };
    let finish = |choice: u32| {
        format!("data: {{\"choices\":[{{\"index\":{choice},\"finish_reason\":\"stop\"}}]}}\n\n")
    };
    let (answer, texts) = chat(&[&of(1), &of(0), &of(1), &finish(1), &finish(0)]);
    let ms = |n| Some(Nanos::from_millis(n));
    assert_eq!((answer.choice_first_token.clone(), texts.text.as_str()), (vec![ms(2), ms(1)], "x"));
    assert_eq!(outcome(&answer), OK);
    assert!(chat(&[&of(0)]).0.choice_first_token.is_empty(), "one choice is not several");
    let (answer, _) = chat(&[&of(1), &of(0), &finish(1)]);
    assert_eq!(outcome(&answer).0, Outcome::Truncated, "choice 0 never finished");
    assert_eq!(chat(&[&of(4_000_000_000)]).0.choice_first_token.len(), 64, "a hostile index costs nothing");
}

#[test]
fn output_that_shares_reads() {
    let flags = |answer: &Answer| {
        let facts = answer.facts;
        (facts.first_token_coalesced, facts.all_in_one_read, facts.coalesced_reads)
    };
    let two = format!("{HI}{HI}");
    assert_eq!(flags(&chat(&[HI, HI, STOP, DONE]).0), (false, false, 0));
    assert_eq!(
        flags(&chat(&[&format!("{HI}{STOP}{DONE}")]).0),
        (false, true, 0),
        "bookkeeping does not matter"
    );
    assert_eq!(flags(&chat(&[&two, STOP, DONE]).0), (true, true, 1));
    let (answer, _) = chat(&[HI, &two, &format!("{two}{HI}"), DONE]);
    assert_eq!(flags(&answer), (false, false, 2));
    let coalesced: Vec<_> = (0..answer.events.len()).map(|i| answer.events.is_coalesced(i)).collect();
    assert_eq!(coalesced, [false, false, true, false, true, true]);
    assert_eq!(answer.facts.reads, 4);
}

#[test]
fn documents() {
    let check = |content_type: &str, body: &str, end: End, wanted: (Outcome, Option<ErrorClass>)| {
        let (answer, _) = read("openai-chat", 200, content_type, &[body.as_bytes()], end);
        assert_eq!(outcome(&answer), wanted, "{body}");
        assert_eq!((answer.first_token, answer.facts.streamed), (None, false), "{body}");
        answer
    };
    let whole = r#"{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}}"#;
    let json = "application/json";
    for (content_type, body) in
        [(json, whole.to_owned()), (SSE, whole.to_owned()), (json, format!("\n\n \n{whole}"))]
    {
        let answer = check(content_type, &body, End::Clean, OK);
        assert_eq!((answer.usage.output, answer.finish_reason.as_deref()), (Some(2), Some("stop")));
        assert_eq!(answer.ended, Some(Stamp::user(Nanos::from_millis(1))));
    }
    let in_body = (Outcome::Error, Some(ErrorClass::InBodyError));
    let answer = check(json, r#"{"error":{"message":"m","code":429}}"#, End::Clean, in_body);
    assert_eq!(answer.failure.unwrap().message, "m");
    check(SSE, r#"{"error":"bare"}"#, End::Clean, in_body);
    let malformed = (Outcome::Error, Some(ErrorClass::Malformed));
    check(json, r#"{"hello":1}"#, End::Clean, malformed);
    check(json, &whole[..30], End::Clean, malformed);
    check(json, &whole[..30], End::Reset, (Outcome::Truncated, Some(ErrorClass::Truncated)));
    let not_streamed = (Outcome::Error, Some(ErrorClass::NotStreamed));
    let answer = check("text/html", "<html><title>Sign in</title>", End::Clean, not_streamed);
    assert_eq!(answer.failure.unwrap().message, "Sign in");
    check("text/plain", "upstream is down", End::Clean, not_streamed);
    check("text/plain", "down", End::Clean, not_streamed);
}

#[test]
fn a_stream_under_another_name() {
    let body = format!("{HI}{STOP}{DONE}");
    for content_type in ["text/plain", "application/octet-stream", "application/json", ""] {
        for size in [1, 3, 200] {
            let reads: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            let (answer, texts) = read("openai-chat", 200, content_type, &reads, End::Clean);
            assert_eq!((outcome(&answer), texts.text.as_str()), (OK, "Hi"), "{content_type} by {size}");
            assert!(answer.facts.streamed);
        }
    }
}

#[test]
fn error_statuses() {
    for (status, class) in [
        (401, ErrorClass::HttpAuth),
        (403, ErrorClass::HttpAuth),
        (404, ErrorClass::HttpNotFound),
        (429, ErrorClass::HttpRateLimited),
        (503, ErrorClass::HttpOverloaded),
        (529, ErrorClass::HttpOverloaded),
        (400, ErrorClass::HttpError),
        (302, ErrorClass::HttpError),
        (502, ErrorClass::HttpError),
    ] {
        let body = br#"{"error":{"message":"m","code":7}}"#;
        let (answer, _) = read("openai-chat", status, SSE, &[body], End::Clean);
        let failure = Failure { class, code: Some("7".to_owned()), message: "m".to_owned() };
        assert_eq!((answer.outcome, answer.failure), (Some(Outcome::Error), Some(failure)), "{status}");
    }
    let (answer, _) = read("openai-chat", 500, "text/plain", &[], End::Reset);
    assert_eq!(answer.failure.unwrap().message, "HTTP status 500 without a body");
}

#[test]
fn compressed_streams() {
    let body = format!("{HI}{STOP}{DONE}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(body.as_bytes()).unwrap();
    let compressed = gzip.finish().unwrap();
    let decode = |encoding: &str, bytes: &[u8]| {
        let mut transcript = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options::default());
        transcript.on_head(200, Some(SSE), Some(encoding));
        transcript.on_body(bytes, 1, Stamp::user(Nanos(1)));
        let stop = transcript.is_complete();
        (transcript.finish(End::Clean, Stamp::user(Nanos(2))), stop)
    };
    let (answer, _) = decode("GZIP", &compressed);
    assert_eq!((outcome(&answer), answer.facts.compressed, answer.events.len()), (OK, true, 1));
    let (answer, stop) = decode("br", &compressed);
    assert_eq!((outcome(&answer), stop), ((Outcome::Error, Some(ErrorClass::Malformed)), true));
    assert!(answer.failure.unwrap().message.contains("`br`"));
    let (answer, _) = decode("gzip", b"not compressed at all");
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::Malformed)));
}

#[test]
fn an_event_without_end_is_refused() {
    let mut transcript = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options::default());
    transcript.on_head(200, Some(SSE), None);
    let piece = vec![b'x'; 1 << 20];
    transcript.on_body(b"data: ", 0, Stamp::user(Nanos(1)));
    for read in 0..20 {
        transcript.on_body(&piece, read, Stamp::user(Nanos(1)));
    }
    assert!(transcript.is_complete(), "there is no use in reading on");
    let answer = transcript.finish(End::Cancelled, Stamp::user(Nanos(2)));
    assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::Malformed)));
}

/// Pieces that streams are made of, good and bad.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(HI.to_owned()),
        Just(STOP.to_owned()),
        Just(DONE.to_owned()),
        Just(": ping\r\n\r\n".to_owned()),
        Just("event: error\ndata: {\"message\":\"m\"}\n\n".to_owned()),
        Just("error: {\"message\":\"m\"}\r\r".to_owned()),
        Just("data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n".to_owned()),
        Just(
            "data: {\"choices\":[{\"index\":1,\"delta\":{\"reasoning\":\"\u{4f60}\\n\"}}]}\r\n\r\n"
                .to_owned()
        ),
        Just("data: {\"cut\":\ndata: 1}\n\n".to_owned()),
        Just("data: no json\n\n".to_owned()),
        "[a-z:{}\\[\\]\" \r\n]{0,12}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn any_split_gives_the_same(body in stream(), cuts in proptest::collection::vec(0_usize..600, 0..8)) {
        // All pieces carry the number of one read, so that nothing but the split differs.
        let decode = |pieces: &[&[u8]]| {
            let mut transcript = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options { keep_text: true });
            transcript.on_head(200, Some(SSE), None);
            for piece in pieces {
                transcript.on_body(piece, 1, Stamp::user(Nanos(1)));
            }
            transcript.finish_with_texts(End::Clean, Stamp::user(Nanos(2)))
        };
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([body.len()]) {
            pieces.push(&body[from..cut]);
            from = cut;
        }
        let single: Vec<_> = body.chunks(1).collect();
        let whole = decode(&[&body]);
        prop_assert_eq!(&decode(&pieces), &whole);
        prop_assert_eq!(&decode(&single), &whole);
    }

    #[test]
    fn random_bytes_never_panic(
        reads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..6),
        encoding in prop_oneof![Just("identity"), Just("gzip"), Just("deflate"), Just("br")],
        dialect in prop_oneof![Just("openai-chat"), Just("ollama-chat"), Just("anthropic-messages")],
        status in prop_oneof![Just(200_u16), Just(500)],
        content_type in prop_oneof![Just(SSE), Just("application/json"), Just("text/plain")],
    ) {
        let mut transcript = Transcript::new(Dialect::builtin(dialect).unwrap(), Options { keep_text: true });
        transcript.on_head(status, Some(content_type), Some(encoding));
        for (number, bytes) in (0..).zip(&reads) {
            transcript.on_body(bytes, number, Stamp::user(Nanos(number as i64)));
        }
        let answer = transcript.finish(End::Clean, Stamp::user(Nanos(99)));
        prop_assert!(answer.outcome.is_some());
    }
}

#[test]
fn the_first_sentence_is_of_visible_text_alone() {
    let event = |channel: &str, text: &str| deltas(&[&format!("\"{channel}\":\"{text}\"")]);
    let reads = [
        event("reasoning", "Well. "),
        event("content", "The sky"),
        event("content", " is blue."),
        event("content", " It is."),
        format!("{STOP}{DONE}"),
    ];
    let (answer, _) = chat(&reads.each_ref().map(String::as_str));
    assert_eq!(answer.first_sentence, Some(Nanos::from_millis(3)));
    let (without, _) = chat(&[&event("content", "No end"), &format!("{STOP}{DONE}")]);
    assert_eq!((outcome(&without), without.first_sentence), (OK, None));
}
