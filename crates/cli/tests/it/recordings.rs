//! Recordings that are hostile or broken, through the built binary: each is answered, none takes it down.

use std::io::Write;

use serde_json::{Value, json};

use crate::home::Home;

const HI: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// What comes of a body that is read as that dialect.
fn decoded(home: &Home, dialect: &str, head: &str, body: &[u8]) -> Value {
    let mut bytes = format!("HTTP/1.1 200 OK\r\n{head}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    std::fs::write(home.path("answer.http"), bytes).unwrap();
    let done = home.ttft(&format!("decode --headers --json --dialect {dialect} answer.http")).expect(0);
    serde_json::from_str(&done.out).unwrap()
}

#[track_caller]
fn check(home: &Home, body: &str, must: &Value) {
    let found = decoded(home, "openai-chat", "content-type: text/event-stream\r\n", body.as_bytes());
    for (name, wanted) in must.as_object().unwrap() {
        assert_eq!(&found[name], wanted, "{name} of {:?}", body.get(..200).unwrap_or(body));
    }
}

#[test]
fn events_that_are_no_json_or_too_much_of_it() {
    let home = Home::new();
    let ok =
        |text: &str, malformed: u32| json!({ "outcome": "ok", "text": text, "malformed_events": malformed });
    check(&home, &format!("{HI}data: not json\n\n{HI}{END}"), &ok("HiHi", 1));
    let two = HI.trim_end().replace('\n', "") + "\n" + HI;
    check(&home, &format!("{two}{END}"), &ok("HiHi", 0));
    let deep = format!("data: {}{}\n\n", "[".repeat(10_000), "]".repeat(10_000));
    check(&home, &format!("{HI}{deep}{HI}{END}"), &ok("HiHi", 0));
    let open = format!("data: {}\n\n", "{\"a\":".repeat(10_000));
    check(&home, &format!("{HI}{open}{HI}{END}"), &ok("HiHi", 1));
    let error = format!("data: {{\"error\":{}1{}}}\n\n", "[".repeat(10_000), "]".repeat(10_000));
    check(
        &home,
        &format!("{HI}{error}{END}"),
        &json!({ "outcome": "error", "error_class": "in_stream_error" }),
    );
    let long = format!("data: {}\n\n", "x".repeat(17 << 20));
    let gave_up = json!({ "outcome": "error", "error_class": "malformed", "content_events": 1 });
    check(&home, &format!("{HI}{long}{HI}{END}"), &gave_up);
}

#[test]
fn bytes_that_are_no_text() {
    let home = Home::new();
    let body = [HI.replace("Hi", "A").as_bytes(), b"\n", END.as_bytes()].concat();
    let at = body.iter().position(|byte| *byte == b'A').unwrap();
    let mut wild = body.clone();
    wild.splice(at..=at, [0xFF, 0xC0, 0x80]);
    let found = decoded(&home, "openai-chat", "content-type: text/event-stream\r\n", &wild);
    assert_eq!((&found["outcome"], &found["content_events"]), (&json!("ok"), &json!(1)));
    assert!(found["text"].as_str().unwrap().starts_with('\u{FFFD}'), "{found}");
}

#[test]
fn a_bomb_and_frames_that_lie() {
    let home = Home::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..64 {
        gzip.write_all(&vec![b'\n'; 1 << 20]).unwrap();
    }
    let head = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let found = decoded(&home, "openai-chat", head, &gzip.finish().unwrap());
    assert_eq!((&found["outcome"], &found["error_class"]), (&json!("error"), &json!("malformed")), "{found}");

    let head = "content-type: application/vnd.amazon.eventstream\r\n";
    for prelude in [[0x7fff_ffff_u32, 10], [40, 4_000], [0, 0], [u32::MAX, u32::MAX]] {
        let mut frame: Vec<u8> = prelude.iter().flat_map(|n| n.to_be_bytes()).collect();
        frame.extend_from_slice(&[0; 100]);
        let found = decoded(&home, "bedrock-converse", head, &frame);
        assert_eq!(found["error_class"], "malformed", "{prelude:?}: {found}");
    }
}

#[test]
fn cut_anywhere() {
    let home = Home::new();
    let body = format!(": c\n\n{HI}{}", END.replace("data: [DONE]", "data:[DONE]"));
    let files: Vec<String> = (0..=body.len())
        .map(|cut| {
            home.write(&format!("{cut}.sse"), &body[..cut]);
            format!("{cut}.sse")
        })
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let set: Value =
        serde_json::from_str(&home.ttft_with("decode --json --dialect openai-chat", &files).expect(0).out)
            .unwrap();
    let streams = set["streams"].as_array().unwrap();
    assert_eq!(streams.len(), body.len() + 1);
    for (cut, stream) in streams.iter().enumerate() {
        let told = body[..cut].contains("\"stop\"}]}\n\n");
        assert_eq!(stream["outcome"] == "ok", told, "cut at {cut}: {stream}");
    }
}
