//! Each misbehaviour, as a client sees it.

use std::io::{Read, Write};

use ttft_sim::{Faults, Sim, SimOptions};

use crate::client::{CHAT, ask, chat, connect, get, post, read, timed, with_faults};

fn contents(response: &crate::client::Response) -> Vec<String> {
    let text = |e: &serde_json::Value| e["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    response.events().iter().filter_map(text).filter(|t| !t.is_empty()).collect()
}

#[test]
fn streams_that_break_off() {
    let response = chat(&with_faults(&["cut=3"]));
    assert_eq!((response.words(), response.whole, response.reset), (3, false, false));
    let response = chat(&with_faults(&["cut=0"]));
    assert_eq!((response.status(), response.body.len(), response.whole), (200, 0, false));
    let response = chat(&with_faults(&["reset=2"]));
    assert_eq!((response.whole, response.reset), (false, true));
    let response = chat(&with_faults(&["error-event=2"]));
    assert!(response.whole);
    assert_eq!(response.words(), 2);
    assert_eq!(response.events().last().unwrap()["error"]["code"], 500);
    assert_eq!(response.data().last().unwrap(), "[DONE]");
}

#[test]
fn streams_that_lack_something() {
    let response = chat(&with_faults(&["no-usage"]));
    assert!(response.events().iter().all(|e| e.get("usage").is_none()));
    let response = chat(&with_faults(&["no-done"]));
    assert!(response.whole && response.data().iter().all(|d| d != "[DONE]"));
    let response = chat(&with_faults(&["no-finish"]));
    assert!(response.events().iter().all(|e| e["choices"][0]["finish_reason"].is_null()));
    assert_eq!(response.words(), 5);
}

#[test]
fn refusals() {
    for code in [401, 404, 429, 500, 503] {
        let response = chat(&with_faults(&[&format!("status={code}")]));
        assert_eq!(response.status(), code);
        assert!(!response.json()["error"].is_null());
        assert_eq!(response.header("retry-after").is_some(), matches!(code, 429 | 503));
    }
    let response = chat(&with_faults(&["html"]));
    assert_eq!((response.status(), response.header("content-type")), (502, Some("text/html")));
    let response = chat(&with_faults(&["json-error"]));
    assert_eq!((response.status(), &response.json()["error"]["code"]), (200, &500.into()));
    let response = chat(&with_faults(&["plain"]));
    assert_eq!(response.json()["object"], "chat.completion");
}

#[test]
fn other_shapes_of_events() {
    let events = chat(&with_faults(&["reasoning=2"])).events();
    let has = |name: &str| {
        events
            .iter()
            .filter(|e| e["choices"][0]["delta"][name].as_str().is_some_and(|t| !t.is_empty()))
            .count()
    };
    assert_eq!((has("reasoning_content"), has("content")), (2, 3));
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);

    let response = chat(&with_faults(&["tokens-per-event=2"]));
    let words: Vec<usize> = contents(&response).iter().map(|t| t.split_whitespace().count()).collect();
    assert_eq!(words, [2, 2, 1]);

    let response = chat(&with_faults(&["crlf"]));
    assert!(response.text().contains("\r\n\r\n") && !response.text().contains("}\n"));
    assert_eq!(response.words(), 5);

    let response = chat(&with_faults(&["event-size=3000000"]));
    assert_eq!(response.data()[2].len() + "data: ".len(), 3_000_000);
    assert!(response.whole);

    let response = chat(&with_faults(&["gzip"]));
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&response.body[..]).read_to_string(&mut plain).unwrap();
    assert!(plain.ends_with("data: [DONE]\n\n"));
    assert_eq!(plain.matches("data: ").count(), 8);
}

#[test]
fn early_and_late_parts() {
    // Times are far apart here, so that what must come first comes first on any machine.
    let late = |faults: &[&str]| {
        let faults = Faults::parse(faults.iter().copied()).unwrap();
        Sim::start(SimOptions { faults, ..timed(600.0, 0.0) }).unwrap()
    };
    let first_read = |sim: &Sim| {
        let mut socket = connect(sim);
        socket.write_all(post("/v1/chat/completions", "", CHAT).as_bytes()).unwrap();
        let mut buffer = [0; 4096];
        let count = socket.read(&mut buffer).unwrap();
        (String::from_utf8_lossy(&buffer[..count]).into_owned(), socket)
    };
    let (first, _) = first_read(&late(&[]));
    assert!(first.ends_with("\r\n\r\n") && !first.contains("data:"), "only the head: {first}");
    let (first, _) = first_read(&late(&["headers-with-first-token"]));
    assert!(first.contains("\"content\":\" "), "head and token together: {first}");
    let sim = late(&["role-early"]);
    let (first, mut socket) = first_read(&sim);
    assert!(first.contains("\"role\"") && !first.contains("\"content\":\" "), "head and role: {first}");
    let mut rest = first.into_bytes();
    let response = read(&mut socket, &mut rest);
    assert_eq!(response.text().matches("\"role\"").count(), 1);
    let sim = late(&["comments=100"]);
    let response = chat(&sim);
    assert!(response.text().starts_with(": keep-alive\n\n: keep-alive\n\n"), "{}", response.text());
    let sim =
        Sim::start(SimOptions { faults: Faults::parse(["slow-headers=300"]).unwrap(), ..timed(0.0, 0.0) })
            .unwrap();
    let (first, _) = first_read(&sim);
    assert!(first.contains("\"content\":\" "), "what came due meanwhile comes with it: {first}");
}

#[test]
fn writes_are_joined_split_and_held() {
    let sim = with_faults(&["coalesce=3"]);
    assert_eq!(chat(&sim).words(), 5);
    let sim = with_faults(&["utf8-split"]);
    let mut socket = connect(&sim);
    socket.write_all(post("/v1/chat/completions", "", CHAT).as_bytes()).unwrap();
    let response = read(&mut socket, &mut Vec::new());
    assert!(response.text().contains("東京") && response.text().contains('ü'));
    let sim = with_faults(&["stall=2:50"]);
    let response = chat(&sim);
    assert!(response.whole && response.words() == 5);
}

#[test]
fn connections_that_end_by_surprise() {
    let sim = with_faults(&["close-after"]);
    let mut socket = connect(&sim);
    socket.write_all(post("/v1/chat/completions", "", CHAT).as_bytes()).unwrap();
    let mut spare = Vec::new();
    let response = read(&mut socket, &mut spare);
    assert!(response.whole && response.header("connection").is_none());
    assert!(read(&mut socket, &mut spare).head.is_empty(), "closed");

    let sim = with_faults(&["close-idle=20"]);
    let mut socket = connect(&sim);
    socket.write_all(post("/v1/chat/completions", "", CHAT).as_bytes()).unwrap();
    assert!(read(&mut socket, &mut spare).whole);
    assert!(read(&mut socket, &mut spare).head.is_empty(), "closed when idle");

    let sim = with_faults(&["never-end"]);
    let mut socket = connect(&sim);
    socket.write_all(post("/v1/chat/completions", "", CHAT).as_bytes()).unwrap();
    let mut text = String::new();
    while !text.contains("\"finish_reason\":\"length\"") {
        let mut buffer = [0; 4096];
        let count = socket.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    assert!(!text.contains("[DONE]"));
    assert_eq!(get(&sim, "/health").status(), 200);
    assert_eq!(sim.stop().unwrap().aborted, 1);
}

#[test]
fn a_request_asks_for_its_own_fault() {
    let sim = with_faults(&[]);
    let ask_for = |fault: &str| ask(&sim, "/v1/chat/completions", &format!("x-sim-fault: {fault}\r\n"), CHAT);
    assert_eq!(ask_for("status=503").status(), 503);
    assert_eq!(ask_for("cut=1").words(), 1);
    assert_eq!(ask_for("nope").json()["error"]["param"], "x-sim-fault");
    assert_eq!(chat(&sim).words(), 5);
}

#[test]
fn a_share_of_the_requests_is_hit() {
    let sim = with_faults(&["status=500@0.5"]);
    let hit = (0..100).filter(|_| chat(&sim).status() == 500).count();
    assert!((30..70).contains(&hit), "{hit}");
    assert_eq!(sim.stop().unwrap().refused, hit as u64);
}
