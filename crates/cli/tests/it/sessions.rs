//! Conversations of several turns: the history with the answers that came, think time, and figures by turn.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::raw_server::{answer, events, serve};
use crate::sim::Sim;

/// A server that keeps the messages of what it is asked, and says how many it got.
fn listener(fails: impl Fn(&Value) -> bool + Send + Sync + 'static) -> (String, Arc<Mutex<Vec<Value>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let url = serve(move |asked| {
        if !asked.is_post() {
            return answer("404 Not Found", "", "");
        }
        let messages = serde_json::from_str::<Value>(&asked.body).unwrap()["messages"].clone();
        let bad = fails(&messages);
        let said = format!("answer to {}", messages.as_array().unwrap().len());
        kept.lock().unwrap().push(messages);
        if bad {
            return answer("500 Internal Server Error", "", "no");
        }
        let thought = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}).to_string();
        let text = json!({"choices": [{"index": 0, "delta": {"content": said}, "finish_reason": "stop"}]})
            .to_string();
        events(&[
            &thought,
            &text,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
            "[DONE]",
        ])
    });
    (url, seen)
}

const CHATS: &str = r#"[
    {"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "old"},
        {"from": "human", "value": "b"}, {"from": "gpt", "value": "old"}, {"from": "human", "value": "c"}]},
    {"conversations": [{"from": "human", "value": "d"}]},
    {"conversations": []}]"#;

#[test]
fn each_turn_holds_the_answers_that_came() {
    let home = Home::new();
    home.write("chats.json", CHATS);
    let (url, seen) = listener(|_| false);
    let flags = "--model m -c 1 -n 2 --warmup 0 --dataset chats.json --turns recorded --connections new --cache as-is";
    let done = home.ttft(&format!("run {url} {flags} --out out")).expect(0);
    let say = |role: &str, text: &str| json!({"role": role, "content": text});
    let (first, second) =
        ([say("system", "s"), say("user", "a")], [say("assistant", "answer to 2"), say("user", "b")]);
    let third = [say("assistant", "answer to 4"), say("user", "c")];
    let expect = [
        json!(first),
        json!([&first[..], &second[..]].concat()),
        json!([&first[..], &second[..], &third[..]].concat()),
        json!([say("user", "d")]),
    ];
    assert_eq!(*seen.lock().unwrap(), expect);
    let stage = home.stage("out");
    assert_eq!((&stage["requests"]["ok"], &stage["sessions"]["begun"]), (&json!(4), &json!(2)));
    let turns: Vec<_> =
        stage["sessions"]["turns"].as_array().unwrap().iter().map(|turn| turn["n"].clone()).collect();
    assert_eq!(turns, [json!(2), json!(1), json!(1)]);
    for part in ["2 conversations", "turn", "TTFT p50"] {
        assert!(done.out.contains(part), "{part}: {done}");
    }
}

#[test]
fn a_salt_stands_before_each_conversation() {
    let home = Home::new();
    home.write("chats.json", CHATS);
    let (url, seen) = listener(|_| false);
    let flags = "--model m -c 1 -n 3 --warmup 0 --dataset chats.json --turns 2 --connections new";
    home.ttft(&format!("run {url} {flags} --out out")).expect(0);
    let seen = seen.lock().unwrap();
    let begins: Vec<&str> = seen.iter().map(|messages| messages[0]["content"].as_str().unwrap()).collect();
    // Two turns, one, and the first conversation again.
    assert_eq!(begins.len(), 5);
    assert!(begins[0] == begins[1] && begins[3] == begins[4], "{begins:?}");
    assert!(begins[0].ends_with("] s") && begins[0] != begins[3] && begins[2].ends_with("] d"), "{begins:?}");
}

#[test]
fn a_turn_that_fails_ends_its_conversation() {
    let home = Home::new();
    home.write("chats.json", CHATS);
    let (url, seen) = listener(|messages| messages.as_array().unwrap().len() == 4);
    let flags = "--model m -c 1 -n 3 --warmup 0 --dataset chats.json --turns recorded --connections new";
    let done = home.ttft(&format!("run {url} {flags} --out out")).expect(0);
    assert_eq!(seen.lock().unwrap().len(), 5, "two turns, one, two");
    let sessions = home.stage("out")["sessions"].clone();
    assert_eq!((&sessions["begun"], &sessions["failed"]), (&json!(3), &json!(2)));
    assert!(done.out.contains("2 ended by a turn that failed"), "{done}");
}

#[test]
fn later_turns_find_the_earlier_ones_in_the_cache() {
    let home = Home::new();
    let flags = "-c 2 -n 6 --warmup 2 --prompt-tokens 320 --max-tokens 4 --ignore-eos --turns 3";
    home.ttft(&format!("run sim:default {flags} --out out")).expect(0);
    let stage = home.stage("out");
    let turns = stage["sessions"]["turns"].as_array().unwrap();
    assert_eq!((turns.len(), &stage["requests"]["sent"]), (3, &json!(18)));
    let share = |at: usize| turns[at]["cached_share"].as_f64().unwrap();
    assert!(share(0).abs() < 1e-9, "no conversation finds another one");
    assert!(share(1) > 0.3 && share(2) > share(1), "{turns:?}");
    let tokens = |at: usize| turns[at]["input_tokens"].as_f64().unwrap();
    assert!(tokens(1) > 630.0 && tokens(2) > 950.0, "{turns:?}");
}

#[test]
fn conversations_arrive_in_an_open_loop_and_think() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let flags =
        "--rate 40 -n 6 --arrival constant --warmup 0 --prompt-tokens 20 --turns 2 --turn-think 150ms";
    home.ttft(&format!("run {} {flags} --no-calibrate --out out", sim.url)).expect(0);
    let stage = home.stage("out");
    assert_eq!((&stage["requests"]["ok"], &stage["sessions"]["begun"]), (&json!(12), &json!(6)));
    assert_eq!(stage["sessions"]["turns"][1]["n"], 6);
    // A turn is due when its user has thought: the wait before it is nobody's lag.
    assert!(stage["client"]["send_lag_ms"]["p50"].as_f64().unwrap() < 140.0, "{}", stage["client"]);
    assert!(stage["windows"]["whole"]["duration_s"].as_f64().unwrap() > 0.27, "{}", stage["windows"]);
}

#[test]
fn what_goes_not_with_turns() {
    let home = Home::new();
    home.write("plain.txt", "one\ntwo\n");
    home.write("chats.json", CHATS);
    for (flags, part) in [
        ("--turns recorded", "recorded turns are those of a data set"),
        ("--turn-think 2s", "turns"),
        ("--turns 3 --dataset plain.txt", "holds no conversations of several turns"),
        ("--turns 0", "at least one turn"),
        ("--turns 2 --trace chats.json", "cannot be used with"),
    ] {
        let done = home.ttft(&format!("run sim:instant {flags} -n 1 --out out")).expect(2);
        assert!(done.err.contains(part), "{flags}: {done}");
    }
}
