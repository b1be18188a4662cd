//! Input that is broken, hostile or beyond all measure, in every framing.

use std::sync::Arc;

use super::*;
use crate::framing::encode;

/// A way to write events, and a dialect that reads them.
struct Way {
    dialect: Arc<Dialect>,
    content_type: &'static str,
    /// An event with that JSON in it; the second argument is its number.
    event: fn(&str, usize) -> Vec<u8>,
}

const NUL: &str = r#"name = "nul"
title = "Values with NUL bytes"
[request]
path = "/x"
body = '{}'
[stream]
framing = "nul"
finish_ends = true
[[rule]]
at = "/delta/text"
is = "text"
[[rule]]
at = "/stopReason"
is = "finish"
"#;

/// All framings, each with a dialect for which [`hi`] is a text and [`stop`] the end.
fn ways() -> Vec<Way> {
    let with = |framing: &str, name: &str| {
        let text = NUL.replace("\"nul\"", &format!("\"{framing}\"")).replacen(framing, name, 1);
        Arc::new(Dialect::parse(name, &text).unwrap())
    };
    let way = |dialect, content_type, event| Way { dialect, content_type, event };
    vec![
        way(with("sse", "sse"), SSE, |json, _| format!("data: {json}\n\n").into_bytes()),
        way(with("ndjson", "ndjson"), "application/x-ndjson", |json, _| format!("{json}\n").into_bytes()),
        way(with("nul", "nul"), "", |json, _| format!("{json}\0").into_bytes()),
        way(with("json-array", "json-array"), "application/json", |json, n| {
            format!("{}{json}\n", if n == 0 { "[" } else { "," }).into_bytes()
        }),
        way(with("aws-eventstream", "aws-eventstream"), "application/vnd.amazon.eventstream", |json, _| {
            encode::event("x", json.as_bytes())
        }),
    ]
}

impl Way {
    fn stream(&self, events: &[&str]) -> Vec<u8> {
        events.iter().enumerate().flat_map(|(n, json)| (self.event)(json, n)).collect()
    }

    fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new(self.dialect.clone(), Options { keep_text: true });
        transcript.on_head(200, Some(self.content_type), None);
        transcript
    }

    fn read(&self, events: &[&str]) -> (Answer, Texts) {
        let mut transcript = self.transcript();
        transcript.on_body(&self.stream(events), 1, Stamp::user(Nanos(1)));
        transcript.finish_with_texts(End::Clean, Stamp::user(Nanos(2)))
    }
}

fn hi() -> &'static str {
    r#"{"delta":{"text":"Hi"}}"#
}

fn stop() -> &'static str {
    r#"{"stopReason":"end_turn"}"#
}

#[test]
fn an_event_that_is_not_json_is_counted_and_passed() {
    for way in ways() {
        for wrong in ["{\"delta\":{\"text\":}}", "{\"delta\" \"x\"}", "{{}}"] {
            let (answer, texts) = way.read(&[hi(), wrong, hi(), stop()]);
            let name = way.dialect.name();
            assert_eq!((outcome(&answer), texts.text.as_str()), (OK, "HiHi"), "{name}: {wrong}");
            assert_eq!(answer.facts.malformed_events, 1, "{name}: {wrong}");
        }
    }
}

#[test]
fn two_values_in_one_event() {
    for way in ways() {
        let (answer, texts) = way.read(&[&format!("{}{}", hi(), hi()), stop()]);
        assert_eq!((outcome(&answer), texts.text.as_str()), (OK, "HiHi"), "{}", way.dialect.name());
        assert_eq!(answer.facts.malformed_events, 0, "{}", way.dialect.name());
    }
}

#[test]
fn bytes_that_are_no_text() {
    for way in ways() {
        let mut body = way.stream(&[hi()]);
        let wrong = encode_with(&way, b"{\"delta\":{\"text\":\"a\xFF\xC3\"}}");
        body.extend_from_slice(&wrong);
        body.extend((way.event)(stop(), 2));
        let mut transcript = way.transcript();
        transcript.on_body(&body, 1, Stamp::user(Nanos(1)));
        let (answer, texts) = transcript.finish_with_texts(End::Clean, Stamp::user(Nanos(2)));
        let name = way.dialect.name();
        assert_eq!((outcome(&answer), answer.events.len()), (OK, 2), "{name}");
        assert_eq!(texts.text, "Hia\u{FFFD}\u{FFFD}", "{name}");
    }
}

/// An event of bytes that are no text.
fn encode_with(way: &Way, data: &[u8]) -> Vec<u8> {
    if way.dialect.name() == "aws-eventstream" {
        return encode::event("x", data);
    }
    let around = (way.event)("\u{1}", 1);
    let place = around.iter().position(|b| *b == 1).unwrap();
    [&around[..place], data, &around[place + 1..]].concat()
}

#[test]
fn an_event_of_more_than_16_mib_ends_it() {
    let long = format!("{{\"delta\":{{\"text\":\"{}\"}}}}", "x".repeat(17 << 20));
    for way in ways() {
        let body = way.stream(&[hi(), &long, hi(), stop()]);
        for size in [64 << 10, body.len()] {
            let mut transcript = way.transcript();
            for (read, piece) in (0..).zip(body.chunks(size)) {
                transcript.on_body(piece, read, Stamp::user(Nanos(1)));
            }
            let name = way.dialect.name();
            assert!(transcript.is_complete(), "{name}: there is no use in reading on");
            let answer = transcript.finish(End::Cancelled, Stamp::user(Nanos(2)));
            assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::Malformed)), "{name}");
            assert_eq!(answer.failure.unwrap().message, "an event is longer than 16 MiB", "{name}");
            assert_eq!(answer.events.len(), 1, "{name}");
        }
    }
}

#[test]
fn nested_ten_thousand_deep() {
    for (open, close) in [("[", "]"), ("{\"delta\":", "}")] {
        let deep = format!("{{\"x\":{}1{}}}", open.repeat(10_000), close.repeat(10_000));
        let never_closed = format!("{{\"x\":{}", open.repeat(10_000));
        for way in ways() {
            let name = way.dialect.name();
            let (answer, _) = way.read(&[&deep, hi(), stop()]);
            assert_eq!((outcome(&answer), answer.facts.malformed_events), (OK, 0), "{name}");
            let (answer, _) = way.read(&[hi(), &never_closed]);
            assert!(answer.outcome.is_some(), "{name}");
        }
    }
}

/// Read to its end from each of its beginnings, this would take days.
#[test]
fn many_beginnings_in_one_event() {
    let mut body = b"data: [\n".to_vec();
    for _ in 0..200_000 {
        body.extend_from_slice(b"data: {\"choices\":\n");
    }
    body.push(b'\n');
    body.extend_from_slice(format!("{HI}{STOP}{DONE}").as_bytes());
    let (answer, _) = read("openai-chat", 200, SSE, &[&body], End::Clean);
    assert_eq!((outcome(&answer), answer.facts.malformed_events, answer.events.len()), (OK, 1, 1));
}

#[test]
fn a_gzip_bomb_is_given_up() {
    for plain in [format!("data: {}\n\n", "x".repeat(1000)), HI.repeat(20)] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let piece = plain.repeat(1 + (1 << 20) / plain.len());
        for _ in 0..40 {
            gzip.write_all(piece.as_bytes()).unwrap();
        }
        let bomb = gzip.finish().unwrap();
        let mut transcript = Transcript::new(Dialect::builtin("openai-chat").unwrap(), Options::default());
        transcript.on_head(200, Some(SSE), Some("gzip"));
        for piece in bomb.chunks(16 << 10) {
            transcript.on_body(piece, 1, Stamp::user(Nanos(1)));
            if transcript.is_complete() {
                break;
            }
        }
        assert!(transcript.is_complete());
        let answer = transcript.finish(End::Cancelled, Stamp::user(Nanos(2)));
        let message = answer.failure.unwrap().message;
        assert_eq!(message, "the compressed body holds more than any answer does");
    }
}

#[test]
fn frames_whose_bytes_or_lengths_are_wrong() {
    let read = |body: &[u8]| {
        read("bedrock-converse", 200, "application/vnd.amazon.eventstream", &[body], End::Clean)
    };
    let good = [
        encode::event("contentBlockDelta", hi().as_bytes()),
        encode::event("messageStop", stop().as_bytes()),
    ]
    .concat();
    assert_eq!(outcome(&read(&good).0), OK);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let (answer, _) = read(&bad);
        assert_eq!(outcome(&answer), (Outcome::Error, Some(ErrorClass::Malformed)), "byte {at}");
    }
    for at in 0..good.len() {
        let (answer, _) = read(&good[..at]);
        assert_eq!(answer.outcome, Some(Outcome::Truncated), "cut at {at}");
    }
}

#[test]
fn exceptions_of_the_framing() {
    let headers = [(":message-type", "exception"), (":exception-type", "throttlingException")];
    let check = |payload: &[u8], message: &str| {
        let body = encode::frame(&headers, payload);
        let (answer, _) = read("bedrock-converse", 200, "", &[&body], End::Clean);
        assert_eq!(answer.failure, in_stream("throttlingException", message));
        assert_eq!(answer.facts.events, 1);
    };
    check(br#"{"message":"slow down"}"#, "slow down");
    check(br#"{"Message":"slow down"}"#, "slow down");
    check(br#"{"other":1}"#, r#"{"other":1}"#);
    check(b"slow down\nplease", "slow down");
}

#[test]
fn base64_that_is_none() {
    let event = |payload: &str| encode::event("chunk", payload.as_bytes());
    let body = [event(r#"{"bytes":"!!!!"}"#), event(r#"{"bytes":"AAAA"}"#), event(r#"{"p":"abc"}"#)].concat();
    let (answer, _) = read("bedrock-invoke", 200, "application/vnd.amazon.eventstream", &[&body], End::Clean);
    assert_eq!((answer.facts.events, answer.facts.malformed_events), (3, 1));
    assert_eq!(answer.outcome, Some(Outcome::Error));
}
