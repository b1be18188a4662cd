//! A key goes to the server and nowhere else.

use std::path::Path;

use serde_json::json;

use crate::home::{Done, Home, finish};
use crate::raw_server::{Asked, answer, events, json as json_answer, serve};

const SECRET: &str = "sk-sEcReT-0123456789";

fn holds_secret(path: &Path) -> bool {
    if path.is_dir() {
        return std::fs::read_dir(path).unwrap().any(|entry| holds_secret(&entry.unwrap().path()));
    }
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

#[track_caller]
fn is_clean(done: &Done, folder: Option<&Path>) {
    assert!(!done.out.contains(SECRET) && !done.err.contains(SECRET), "{done}");
    if let Some(folder) = folder {
        assert!(folder.exists() && !holds_secret(folder), "{done}");
    }
}

/// A server that repeats the key wherever a server can say anything.
fn parrot(asked: &Asked) -> String {
    let key = asked.header("authorization").unwrap_or("none").to_owned();
    if !asked.is_post() {
        return json_answer("200 OK", &json!({ "data": [{ "id": "m" }] }));
    }
    let body = json!({ "error": { "message": format!("bad key {key}"), "code": key } }).to_string();
    answer("401 Unauthorized", &format!("server: {key}\r\ncontent-type: application/json\r\n"), &body)
}

/// The same, in a stream that is fine otherwise.
fn polite_parrot(asked: &Asked) -> String {
    let key = asked.header("authorization").unwrap_or("none");
    let text = json!({ "model": key, "id": key, "choices": [{ "delta": { "content": key }, "finish_reason": key }] });
    events(&[&text.to_string(), "[DONE]"])
}

#[test]
fn a_key_is_sent_and_kept_out_of_everything() {
    for (answer, code) in [(parrot as fn(&Asked) -> String, 3), (polite_parrot, 0)] {
        let home = Home::new();
        let url = serve(move |asked| {
            if asked.is_post() {
                assert_eq!(asked.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
            }
            answer(asked)
        });
        let keyed = |line: &str| {
            let mut command = home.command();
            command.env("OPENAI_API_KEY", SECRET).args(line.split_whitespace());
            finish(command.spawn().unwrap()).expect(code)
        };
        for json in ["", "--json"] {
            let out = format!("out{json}");
            let run = keyed(&format!("run {url} --model m -n 4 -c 1 --out {out} {json}"));
            is_clean(&run, Some(&home.path(&out)));
            is_clean(&home.ttft(&format!("report {out} {json}")), None);
            let check = keyed(&format!("check {url} --model m {json} --save saved.jsonl"));
            is_clean(&check, Some(&home.path("saved.jsonl")));
        }
    }
}

#[test]
fn so_is_one_in_a_file_a_header_a_url_or_a_body() {
    let home = Home::new();
    let url = serve(polite_parrot);
    std::fs::write(home.path("key"), format!("{SECRET}\n")).unwrap();
    let with_user = url.replace("http://", &format!("http://user:{SECRET}@"));
    let bearer = format!("Authorization: Bearer {SECRET}");
    let body = json!({ "api_key": SECRET }).to_string();
    let ways: [(String, Vec<&str>); 5] = [
        (format!("{url} --api-key-file {}", "key"), vec![]),
        (url.clone(), vec!["--header", &bearer]),
        (url.clone(), vec!["--body-json", &body]),
        (with_user, vec![]),
        (format!("{url}/v1/chat/completions?api_key={SECRET}"), vec![]),
    ];
    for (i, (line, more)) in ways.iter().enumerate() {
        let run = home.ttft_with(&format!("run {line} --model m -n 2 -c 1 --out {i}"), more).expect(0);
        is_clean(&run, Some(&home.path(&i.to_string())));
        is_clean(&home.ttft_with(&format!("check {line} --model m"), more).expect(0), None);
    }
}

#[test]
fn a_plan_without_its_secrets_asks_for_them() {
    let home = Home::new();
    let url = serve(|asked| match asked.header("x-api-key") {
        Some(SECRET) => polite_parrot(asked),
        other => panic!("{other:?}"),
    });
    let header = format!("x-api-key: {SECRET}");
    let more = ["--header", header.as_str()];
    home.ttft_with(&format!("run {url} --model m -n 2 -c 1 --out out"), &more).expect(0);
    assert!(home.read("out/plan.toml").contains("<redacted>"));
    let again = home.ttft_with("run --plan out/plan.toml --out again", &more).expect(0);
    is_clean(&again, Some(&home.path("again")));
}

#[test]
fn slips_do_not_show_it() {
    let home = Home::new();
    let slips: [&[&str]; 6] = [
        &["run", "--header", &format!("Authorization Bearer {SECRET}")],
        &["run", "--api-key-env", SECRET],
        &["run", &format!("http://host:port/?api_key={SECRET}")],
        &["run", &format!("http://me:{SECRET}@host:port")],
        &["run", &format!("--api-key={SECRET}")],
        &["run", "--header", &format!("x-api-key: {SECRET}\u{7f}")],
    ];
    for args in slips {
        is_clean(&home.ttft_with("", args).expect(2), None);
    }
    std::fs::write(home.path("key"), format!("{SECRET}\nand more")).unwrap();
    is_clean(&home.ttft("run http://127.0.0.1:1 --model m --api-key-file key").expect(2), None);
}
