//! What a server says never reaches the terminal as anything but text.

use serde_json::json;

use crate::home::{Done, Home};
use crate::raw_server::{Asked, answer, events, json as json_answer, serve};

/// Clears the screen, sets the window's title, turns the text around.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\r\u{8}\u{202e}evil";

#[track_caller]
fn is_tame(done: &Done) {
    for text in [&done.out, &done.err] {
        let wild = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(wild, None, "{done:?}");
    }
}

fn models(asked: &Asked) -> Option<String> {
    (!asked.is_post()).then(|| json_answer("200 OK", &json!({ "data": [{ "id": EVIL }, { "id": "b" }] })))
}

#[test]
fn in_errors_names_and_texts() {
    let error = json!({ "error": { "message": EVIL, "code": EVIL, "type": EVIL } });
    let delta = json!({ "id": EVIL, "model": EVIL,
        "choices": [{ "delta": { "content": EVIL }, "finish_reason": EVIL }] });
    let whole = json!({ "model": EVIL,
        "choices": [{ "message": { "content": EVIL }, "finish_reason": EVIL }], "usage": { "completion_tokens": 3 } });
    let html = format!("<html><title>{EVIL}</title></html>");
    let answers = [
        json_answer("500 Oops", &error),
        json_answer("200 OK", &error),
        json_answer("200 OK", &whole),
        answer("502 Bad", "content-type: text/html\r\n", &html),
        answer("200 OK", "content-type: text/plain\r\nserver: a\tb\r\n", EVIL),
        events(&[&error.to_string()]),
        events(&[&delta.to_string(), "[DONE]"]),
        events(&[EVIL]),
        "HTTP/1.1 200 \u{1b}[2J\r\nserver: \u{1b}[2J\r\n\r\n".to_owned(),
        format!("{EVIL}\r\n\r\n"),
    ];
    let home = Home::new();
    for (i, reply) in answers.into_iter().enumerate() {
        let url = serve(move |asked| models(asked).unwrap_or_else(|| reply.clone()));
        for json in ["", "--json"] {
            let out = format!("{i}{json}");
            is_tame(&home.ttft(&format!("run {url} -n 2 -c 1 --warmup 1 --out {out} {json}")));
            is_tame(&home.ttft(&format!("report {out} {json}")).expect(0));
            is_tame(&home.ttft(&format!("check {url} {json}")));
            is_tame(&home.ttft(&format!("check {url} --model other {json}")));
        }
    }
}

#[test]
fn in_arguments_and_files() {
    let home = Home::new();
    home.write("evil.jsonl", &format!("{{\"{EVIL}\": 1}}\n"));
    home.write("evil.toml", &format!("name = \"x\"\n\"{EVIL}\" = 1\n"));
    for args in [
        &["--slo", EVIL][..],
        &["--slo", &format!("ttft<{EVIL}")],
        &["--dialect", EVIL],
        &["--dataset", EVIL],
        &["--dataset", "evil.jsonl"],
        &["--plan", "evil.toml"],
        &["--header", EVIL],
        &["--header", &format!("{EVIL}: 1")],
        &["--body-json", EVIL],
        &[&format!("http://{EVIL}")],
    ] {
        is_tame(&home.ttft_with("run", args).expect(2));
    }
    is_tame(&home.ttft_with("report", &[EVIL]).expect(2));
    is_tame(&home.ttft_with("run sim:instant -n 2 -c 1 --max-tokens 2 --name", &[EVIL]).expect(0));
}
