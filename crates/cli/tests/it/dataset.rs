//! Data sets and traces: what they hold, and what a run makes of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::home::Home;
use crate::sim::Sim;

/// The cases of the crate that reads them: there is one copy.
fn cases() -> Vec<PathBuf> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plan/testdata/cases");
    std::fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn is_near(found: &Value, wanted: &Value, tolerance: f64) -> bool {
    match (found, wanted) {
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| is_near(f, w, tolerance))
        }
        _ => match (found.as_f64(), wanted.as_f64()) {
            (Some(found), Some(wanted)) => (found - wanted).abs() <= tolerance,
            _ => found == wanted,
        },
    }
}

#[test]
fn every_case() {
    let home = Home::new();
    assert!(!cases().is_empty());
    for case in cases() {
        let expect: Value =
            serde_json::from_slice(&std::fs::read(case.join("expect.json")).unwrap()).unwrap();
        let input = case.join("input.csv");
        let found = home.ttft_with("dataset --json", &[input.to_str().unwrap()]).expect(0).json();
        assert_eq!(found["format"], expect["format"]);
        for (name, wanted) in expect["must"].as_object().unwrap() {
            let tolerance = expect["tolerance"][name].as_f64().unwrap_or(0.0);
            assert!(is_near(&found[name], wanted, tolerance), "{}: {name} {}", case.display(), found[name]);
        }
    }
}

/// Four bursts of five with the same three blocks at their front, in a trace of nine seconds.
fn mooncake() -> String {
    let row = |i: u64| {
        let (at, input, output) = (i / 5 * 3_000, 3 * 512 + 10 + i, 2 + i % 4);
        json!({ "timestamp": at, "input_length": input, "output_length": output, "hash_ids": [7, 8, 9, 100 + i] })
    };
    (0..20).map(|i| row(i).to_string() + "\n").collect()
}

#[test]
fn a_file_in_words() {
    let home = Home::new();
    home.write("trace.jsonl", &mooncake());
    let text = home.ttft("dataset trace.jsonl").expect(0).out;
    for part in [
        "mooncake (jsonl), trace",
        "4 different instants, 100.0 %",
        "80 blocks of 512 tokens, 23",
        "--smooth",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    home.write("evil.csv", "Timestamp,Request tokens,Response tokens\n1,2,3\n\u{1b}[2J,1,1\n");
    let done = home.ttft("dataset evil.csv").expect(0);
    assert!(done.out.contains("line 3: ") && !done.out.contains('\u{1b}'), "{done}");
}

#[test]
fn what_is_no_data_set() {
    let home = Home::new();
    home.write("empty.csv", "");
    home.write("what.jsonl", "{\"reply\": 1}\n");
    std::fs::write(home.path("utf16.txt"), b"\xff\xfea\0\n\0").unwrap();
    std::fs::write(home.path("latin1.jsonl"), b"{\"prompt\": \"na\xefve\"}\n").unwrap();
    home.write("semicolons.csv", "Timestamp;Request tokens;Response tokens\n1;2;3\n");
    home.write("object.json", "{\n  \"data\": [{\"prompt\": \"a\"}]\n}\n");
    for (line, part) in [
        ("nope.csv", "cannot read nope.csv"),
        ("empty.csv", "holds no prompt"),
        ("what.jsonl", "line 1: no known field"),
        ("utf16.txt", "is UTF-16"),
        ("latin1.jsonl", "line 1: it is not UTF-8 (byte 15 of the record)"),
        ("semicolons.csv", "line 1: its columns are not separated by commas"),
        ("object.json", "a record is one line, or an element of one array"),
        ("what.jsonl --format mooncak", "there is no format `mooncak`"),
    ] {
        let done = home.ttft(&format!("dataset {line}")).expect(2);
        assert!(done.err.contains(part), "{part}: {done}");
    }
    // A run says the same.
    for (file, part) in
        [("latin1.jsonl", "not UTF-8"), ("utf16.txt", "is UTF-16"), ("object.json", "one line")]
    {
        let done = home.ttft(&format!("run sim:instant -n 1 --dataset {file} --out out")).expect(2);
        assert!(done.err.contains(part) && !home.path("out").exists(), "{done}");
    }
    home.write("two.json", "[{\"prompt\": \"a\"}]\n[{\"prompt\": \"b\"}]\n");
    let done = home.ttft("dataset two.json").expect(0);
    assert!(done.out.contains("line 2: there is more behind the end of the JSON array"), "{done}");
    home.ttft("run sim:instant -n 1 --dataset two.json --out out").expect(2);
    home.write("bad.csv", "Timestamp,Request tokens,Response tokens\nx,y,z\n");
    assert!(home.ttft("dataset bad.csv").expect(3).out.contains("line 2: "), "not one record is right");
}

/// The server's own record of the requests of a run, without the warm-up.
fn truth(home: &Home, skip: usize) -> Vec<Value> {
    let lines = home.read("truth.jsonl");
    let mut all: Vec<Value> = lines
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    all.drain(..skip);
    all
}

fn numbers(truth: &[Value], name: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = truth.iter().map(|line| line[name].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_trace_is_replayed_with_its_lengths_and_its_sharing() {
    let home = Home::new();
    home.write("trace.jsonl", &mooncake());
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let run =
        format!("run {} --trace trace.jsonl --speed 20 --smooth --cache as-is --warmup 4 --out out", sim.url);
    let done = home.ttft(&run).expect(0);
    for part in ["calibrated: 1.00 tokens a word", "trace of 20 requests over 9.0 s", "taken as milliseconds"]
    {
        assert!(done.err.contains(part), "{part}: {done}");
    }
    let stage = home.stage("out");
    assert_eq!((&stage["requests"]["sent"], &stage["requests"]["ok"]), (&json!(20), &json!(20)));
    assert_eq!((&stage["load"]["kind"], &stage["load"]["speed"]), (&json!("trace"), &json!(20.0)));
    assert_eq!((&stage["name"], &stage["max_tokens"]), (&json!("trace×20"), &json!(5)));
    assert_eq!(stage["client"]["send_lag_ms"]["n"], 20);
    let seen = truth(&home, 4);
    assert_eq!(numbers(&seen, "prompt_tokens"), (0..20).map(|i| 3 * 512 + 10 + i).collect::<Vec<_>>());
    let mut outputs: Vec<u64> = (0..20).map(|i| 2 + i % 4).collect();
    outputs.sort_unstable();
    assert_eq!(numbers(&seen, "output_tokens"), outputs);

    // The plan says it all, what was measured included.
    home.ttft("run --plan out/plan.toml --out again -H x:y").expect(0);
    assert_eq!(home.stage("again")["requests"]["ok"], 20);
    assert_eq!(numbers(&truth(&home, 4 + 20 + 4), "prompt_tokens"), numbers(&seen, "prompt_tokens"));
}

#[test]
fn a_trace_that_cannot_be_replayed() {
    let home = Home::new();
    let row = |i: u32| {
        format!("{{\"timestamp\": {}, \"input_length\": 5, \"output_length\": 5}}\n", f64::from(i) * 0.2)
    };
    home.write("seconds.jsonl", &(0..9).map(row).collect::<String>());
    home.write("prompts.jsonl", "{\"prompt\": \"a\"}\n");
    home.write("bad.csv", "Timestamp,Request tokens,Response tokens\n1,2,3\n2,x,3\n");
    for (line, part) in [
        ("--trace seconds.jsonl", "--trace-format guidellm (seconds)"),
        ("--trace prompts.jsonl", "no timestamp"),
        ("--trace bad.csv", "bad.csv, line 3: `x` is no number of tokens"),
        ("--trace bad.csv --cache warm", "a trace does not go with a warm cache"),
        ("--trace bad.csv --rate 5", "cannot be used with"),
        ("--trace bad.csv --concurrency 5", "cannot be used with"),
        ("--trace bad.csv --prompt x", "cannot be used with"),
        ("--trace bad.csv --speed 0", "a factor above 0"),
        ("--dataset seconds.jsonl", "replay it with --trace"),
        ("--speed 2", "--trace"),
    ] {
        let done = home.ttft(&format!("run sim:instant {line} --out out")).expect(2);
        assert!(done.err.contains(part), "{line}: {done}");
    }
    let seconds = "run sim:instant --trace seconds.jsonl --trace-format guidellm --speed 9 -n 4 --out out";
    assert!(home.ttft(seconds).expect(0).err.contains("5.000 requests/s at speed 1"));
    assert_eq!(home.stage("out")["requests"]["sent"], 4);
}

#[test]
fn prompts_of_every_kind_of_file() {
    let home = Home::new();
    home.write(
        "gpt.json",
        r#"[{"conversations": [{"from": "human", "value": "a b c"}, {"from": "gpt", "value": "d"}]}]"#,
    );
    home.write(
        "chat.jsonl",
        r#"{"messages": [{"role": "user", "content": "a b c"}, {"role": "assistant", "content": "d"}]}"#,
    );
    home.write(
        "vllm.jsonl",
        "{\"prompt\": \"a b c\", \"output_tokens\": 3}\n{\"prompt\": \"a b c\", \"output_tokens\": 5}",
    );
    home.write("plain.txt", "a b c\r\n");
    for (file, output) in [("gpt.json", 64), ("chat.jsonl", 64), ("vllm.jsonl", 5), ("plain.txt", 64)] {
        home.ttft(&format!(
            "run sim:instant -c 1 -n 4 --cache as-is --warmup 0 --dataset {file} --out {file}.out"
        ))
        .expect(0);
        let stage = home.stage(&format!("{file}.out"));
        assert_eq!((&stage["requests"]["ok"], &stage["max_tokens"]), (&json!(4), &json!(output)), "{file}");
        // Three words and the chat template.
        assert_eq!(stage["tokens"]["input"]["per_request"]["max"], json!(9.0), "{file}: {}", stage["tokens"]);
    }
    let mean = &home.stage("vllm.jsonl.out")["tokens"]["output"]["per_request"]["mean"];
    assert_eq!(mean, &json!(4.0));
}

#[test]
fn lengths_are_drawn_and_calibrated() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let flags = "-c 4 -n 40 --warmup 0 --prompt-tokens uniform:100:200 --max-tokens uniform:2:6 --ignore-eos";
    home.ttft(&format!("run {} {flags} --out out", sim.url)).expect(0);
    let seen = truth(&home, 0);
    let (inputs, outputs) = (numbers(&seen, "prompt_tokens"), numbers(&seen, "output_tokens"));
    assert!(inputs[0] >= 100 && inputs[39] <= 200 && inputs[0] + 20 < inputs[39], "{inputs:?}");
    assert!(outputs[0] >= 2 && outputs[39] <= 6 && outputs[0] < outputs[39], "{outputs:?}");
    assert_eq!(home.stage("out")["max_tokens"], 6);

    let done = home
        .ttft(&format!("run {} -c 1 -n 2 --warmup 0 --prompt-tokens 50 --no-calibrate --out raw", sim.url));
    assert!(!done.expect(0).err.contains("calibrated"));
    // The chat template comes on top.
    assert_eq!(numbers(&truth(&home, 40), "prompt_tokens"), [56, 56]);
    for wrong in ["--prompt-tokens uniform:9:1", "--max-tokens normal:5", "--prompt-tokens recorded"] {
        home.ttft(&format!("run sim:instant {wrong}")).expect(2);
    }
}

#[test]
fn odd_but_right_files_are_sent() {
    let home = Home::new();
    home.write("ids.jsonl", "{\"id\": \"x\", \"prompt\": \"a\"}\r\n{\"id\": \"x\", \"prompt\": \"b\"}");
    home.write(
        "chats.json",
        r#"[{"conversations": []}, {"conversations": [{"from": "gpt", "value": "x"}]},
            {"conversations": [{"from": "human", "value": "a"}]}]"#,
    );
    std::fs::write(home.path("bom.txt"), "\u{feff}one\r\ntwo").unwrap();
    std::fs::write(home.path("long.jsonl"), format!("{{\"prompt\": \"{}\"}}\n", "word ".repeat(400_000)))
        .unwrap();
    for (file, problem) in [
        ("ids.jsonl", "line 2: "),
        ("chats.json", "a conversation without a turn: left out"),
        ("bom.txt", ""),
        ("long.jsonl", ""),
    ] {
        let done = home.ttft(&format!("dataset {file}")).expect(0);
        assert!(done.out.contains(problem), "{file}: {done}");
        let flags = "-c 1 -n 2 --warmup 0 --max-tokens 1";
        home.ttft(&format!("run sim:instant {flags} --dataset {file} --out {file}.out"));
        assert_eq!(home.stage(&format!("{file}.out"))["requests"]["sent"], 2, "{file}");
    }
}
