//! The log of the truth.

use std::io::Write;

use serde_json::Value;
use ttft_sim::{Faults, Sim, SimOptions};

use crate::client::{CHAT, ask, chat, connect, post, read, timed};

fn lines(options: SimOptions, talk: impl FnOnce(&Sim)) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.jsonl");
    let sim = Sim::start(SimOptions { truth: Some(path.clone()), ..options }).unwrap();
    talk(&sim);
    sim.stop().unwrap();
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_instant_is_there_and_in_order() {
    let lines = lines(timed(30.0, 5.0), |sim| {
        let mut socket = connect(sim);
        let mut spare = Vec::new();
        for id in ["one", "two"] {
            let request = post("/v1/chat/completions", &format!("x-request-id: {id}\r\n"), CHAT);
            socket.write_all(request.as_bytes()).unwrap();
            assert!(read(&mut socket, &mut spare).whole);
        }
        ask(sim, "/v1/completions", "x-request-id: bad\r\n", "{}");
    });
    assert_eq!(lines.len(), 3);
    for (line, id) in lines.iter().zip(["one", "two"]) {
        let at = |name: &str| line[name].as_i64().unwrap_or_else(|| panic!("{name} in {line}"));
        assert_eq!((&line["request_id"], &line["outcome"]), (&id.into(), &"ok".into()));
        assert_eq!((&line["prompt_tokens"], &line["output_tokens"]), (&8.into(), &5.into()));
        assert_eq!(line["path"], "/v1/chat/completions");
        assert_eq!(line["connection"], 1);
        let writes: Vec<i64> =
            line["write_ns"].as_array().unwrap().iter().map(|t| t.as_i64().unwrap()).collect();
        assert_eq!(writes.len(), 5);
        assert!(writes.is_sorted());
        assert_eq!((at("first_write_ns"), at("last_write_ns")), (writes[0], writes[4]));
        assert!(at("arrival_ns") <= at("arrival_user_ns"));
        assert!(at("arrival_user_ns") <= at("queued_ns"));
        assert_eq!(at("scheduled_ns"), at("arrival_ns"));
        // Tokens are never early, however late a machine may be.
        assert!(writes[0] - at("arrival_ns") >= 30_000_000);
        assert!(writes[4] - at("arrival_ns") >= 50_000_000);
        assert!(at("end_ns") >= writes[4]);
    }
    // The end is noted after the last write, when the client may already have answered it.
    assert!(lines[1]["arrival_ns"].as_i64() > lines[0]["last_write_ns"].as_i64());
    assert_eq!((&lines[2]["outcome"], &lines[2]["write_ns"]), (&"refused".into(), &serde_json::json!([])));
    assert!(lines[2]["first_write_ns"].is_null());
}

#[test]
fn ends_are_named() {
    let faults = Faults::parse(["cut=2"]).unwrap();
    let cut = lines(SimOptions { faults, ..timed(0.0, 0.0) }, |sim| drop(chat(sim)));
    assert_eq!((&cut[0]["outcome"], &cut[0]["output_tokens"]), (&"cut".into(), &2.into()));
    let left = lines(timed(1e6, 0.0), |sim| {
        let mut socket = connect(sim);
        socket.write_all(post("/v1/chat/completions", "", CHAT).as_bytes()).unwrap();
        // The head shows that the request is under way.
        std::io::Read::read_exact(&mut socket, &mut [0; 4]).unwrap();
    });
    assert_eq!((&left[0]["outcome"], &left[0]["output_tokens"]), (&"aborted".into(), &0.into()));
    assert!(left[0]["first_write_ns"].is_null());
}
