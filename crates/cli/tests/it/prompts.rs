//! Prompts: exact lengths, lengths of files, shared prefixes, images, and what does not fit.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::raw_server::{self, answer, events, serve};
use crate::sim::Sim;

/// Words are tokens for it, as they are for the simulated engine.
const WORDS: &str = r#"{"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,"decoder":null,
    "pre_tokenizer":{"type":"WhitespaceSplit"},"model":{"type":"WordLevel","vocab":{"?":0},"unk_token":"?"}}"#;

/// The server's own record of the requests.
fn truth(home: &Home) -> Vec<Value> {
    let lines = home.read("truth.jsonl");
    lines.lines().filter(|line| line.starts_with('{')).map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn column(truth: &[Value], name: &str) -> Vec<u64> {
    truth.iter().map(|line| line[name].as_u64().unwrap()).collect()
}

/// A server that keeps the bodies of what it is asked, and answers each with an event or two.
fn listener(usage: bool) -> (String, Arc<Mutex<Vec<Value>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let url = serve(move |asked| {
        if !asked.is_post() || asked.head.contains("/tokenize") {
            return answer("404 Not Found", "", "");
        }
        kept.lock().unwrap().push(serde_json::from_str(&asked.body).unwrap());
        let count = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
        let text = r#"{"choices":[{"index":0,"delta":{"content":"of the water"},"finish_reason":"stop"}]}"#;
        if usage { events(&[text, count, "[DONE]"]) } else { events(&[text, "[DONE]"]) }
    });
    (url, seen)
}

fn bpe() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../plan/testdata/tokenizer/tokenizer.json")
        .display()
        .to_string()
}

#[test]
fn a_tokenizer_makes_prompts_exact_and_the_template_is_left_room_for() {
    let home = Home::new();
    home.write("words.json", WORDS);
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let flags = "-c 2 -n 12 --warmup 0 --tokenizer words.json --prompt-tokens 200 --max-tokens 2";
    let done = home.ttft(&format!("run {} {flags} --out cold", sim.url)).expect(0);
    let told = "the tokenizer counts as the server's /tokenize does; 6 tokens around the prompt";
    assert!(done.err.contains(told), "{done}");
    assert_eq!(column(&truth(&home), "prompt_tokens"), vec![200; 12]);
    home.ttft(&format!("run {} {flags} --no-calibrate --cache as-is --out raw", sim.url)).expect(0);
    assert_eq!(column(&truth(&home)[12..], "prompt_tokens"), vec![206; 12], "the template comes on top");

    // Another tokenizer than the server's is held to, and told.
    let other = format!("run {} -c 1 -n 1 --warmup 0 --prompt-tokens 50 --out other --tokenizer", sim.url);
    let done = home.ttft_with(&other, &[&bpe()]).expect(0);
    assert!(done.err.contains("the tokenizer is not the server's"), "{done}");
}

#[test]
fn a_tokenizer_counts_answers_that_the_server_does_not() {
    let home = Home::new();
    home.write("words.json", WORDS);
    for (usage, source) in [(false, "tokenizer"), (true, "usage")] {
        let (url, _) = listener(usage);
        let flags = "--model m -c 2 -n 6 --warmup 0 --prompt a --tokenizer words.json --connections new";
        home.ttft(&format!("run {url} {flags} --out {source}")).expect(0);
        let stage = home.stage(source);
        assert_eq!((&stage["requests"]["ok"], &stage["tokens"]["source"]), (&json!(6), &json!(source)));
        // "of the water"
        assert_eq!(stage["tokens"]["output"]["per_request"]["max"], json!(3.0), "{}", stage["tokens"]);
    }
}

#[test]
fn what_is_no_tokenizer() {
    let home = Home::new();
    home.write("none.json", "{\"model\": 3}");
    for (file, part) in
        [("none.json", "cannot be used as a tokenizer.json"), ("nowhere.json", "cannot read nowhere.json")]
    {
        let done =
            home.ttft(&format!("run sim:instant --tokenizer {file} --prompt-tokens 5 --out out")).expect(2);
        assert!(done.err.contains(part), "{done}");
    }
}

#[test]
fn lengths_come_from_a_file_in_pairs() {
    let home = Home::new();
    home.write("lengths.csv", "input_tokens,output_tokens,weight\n100,2,3\n300,6,1\n");
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let run =
        format!("run {} -c 4 -n 40 --warmup 0 --ignore-eos --prompt-tokens empirical:lengths.csv", sim.url);
    home.ttft(&format!("{run} --out out")).expect(0);
    let seen = truth(&home);
    for line in &seen {
        let (input, output) = (line["prompt_tokens"].as_u64(), line["output_tokens"].as_u64());
        assert!(matches!((input, output), (Some(100), Some(2)) | (Some(300), Some(6))), "{line}");
    }
    let short = seen.iter().filter(|line| line["prompt_tokens"] == 100).count();
    assert!((20..40).contains(&short), "three of four: {short}");
    assert_eq!(home.stage("out")["max_tokens"], 6);
    home.write("bad.csv", "length\n5\nmany\n");
    for (flags, part) in [
        ("--prompt-tokens empirical:bad.csv", "bad.csv, line 3: `many` is no number of tokens"),
        ("--prompt-tokens empirical:", "is no length"),
        ("--max-tokens empirical:nowhere.csv", "cannot read nowhere.csv"),
    ] {
        let done = home.ttft(&format!("run sim:instant {flags} --out wrong")).expect(2);
        assert!(done.err.contains(part), "{done}");
    }
}

#[test]
fn prefixes_are_shared_within_a_stage_and_cold_before_it() {
    let home = Home::new();
    let run = |cache: &str, out: &str| {
        let flags =
            "-c 1,1 -n 12 --warmup 4 --prompt-tokens 40 --max-tokens 1 --prefix-groups 2 --prefix-tokens 640";
        home.ttft(&format!("run sim:default {flags} --cache {cache} --out {out}")).expect(0)
    };
    for cache in ["cold", "as-is"] {
        let done = run(cache, cache);
        let stages = home.summary(cache)["stages"].clone();
        for stage in stages.as_array().unwrap() {
            assert_eq!(stage["requests"]["ok"], 12, "{stage}");
            let (cached, input) = (&stage["tokens"]["cached"], &stage["tokens"]["input"]);
            // Twelve requests take two prefixes; only the first of each finds nothing.
            let share = cached["total"].as_f64().unwrap() / input["total"].as_f64().unwrap();
            assert!((0.6..0.9).contains(&share), "{cache}: {share}");
            assert_eq!(cached["per_request"]["min"], json!(0.0), "{cache}: no stage warms another");
            assert_eq!(input["per_request"]["max"], json!(686.0));
        }
        let word = if cache == "cold" { "prefix cache cold: " } else { "prefix cache as it is: " };
        assert!(
            done.out.contains(word) && done.out.contains("% of prompt tokens came from the cache"),
            "{done}"
        );
    }
    let done =
        home.ttft("run sim:default -c 1 -n 5 --warmup 0 --prompt-tokens 100 --max-tokens 1 --out plain");
    assert!(done.expect(0).out.contains("prefix cache cold: 0 % of prompt tokens came from the cache"));
    let wrong = home.ttft("run sim:instant --prefix-tokens 5 --prefix-pick zipf:0").expect(2);
    assert!(wrong.err.contains("is no way to take a prefix"), "{wrong}");
}

#[test]
fn images_are_sent_and_no_two_are_the_same() {
    let home = Home::new();
    let (url, seen) = listener(true);
    let flags =
        "--model m -c 1 -n 4 --warmup 0 --prompt what? --images 2 --image-size 32x16 --connections new";
    home.ttft(&format!("run {url} {flags} --out out")).expect(0);
    let mut urls = HashSet::new();
    for body in seen.lock().unwrap().iter() {
        let parts = body["messages"][0]["content"].as_array().unwrap();
        assert!(parts[0]["text"].as_str().unwrap().ends_with("] what?"), "{body}");
        assert_eq!(parts.len(), 3);
        for part in &parts[1..] {
            let url = part["image_url"]["url"].as_str().unwrap();
            assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
            urls.insert(url.to_owned());
        }
    }
    assert_eq!(urls.len(), 8);
    let done = home.ttft("run sim:instant --dialect openai-completions --images 1 --out none").expect(2);
    assert!(done.err.contains("images cannot be sent"), "{done}");
    let done = home.ttft("run sim:instant --images 1 --image-size 0x5").expect(2);
    assert!(done.err.contains("is no size of an image"), "{done}");
}

#[test]
fn a_prompt_longer_than_the_models_context() {
    let home = Home::new();
    let done = home.ttft("run sim:default --prompt-tokens 20k --no-calibrate -n 1 --out out").expect(2);
    let told = "prompts have 20000 tokens, but the model's context is 16384 tokens";
    assert!(done.err.contains(told) && !home.path("out").exists(), "{done}");
    for (flags, told) in [
        ("--prompt-tokens 16300 --max-tokens 200", "together more than the model's context of 16384"),
        (
            "--prompt-tokens uniform:10:20000 --max-tokens 2",
            "prompts have up to 20000 tokens, but the model's context",
        ),
    ] {
        let done = home.ttft(&format!(
            "run sim:default {flags} --no-calibrate -c 1 -n 1 --warmup 0 --out {}",
            flags.len()
        ));
        assert!(done.err.contains(told), "{done}");
    }
}

/// llama.cpp has another `/tokenize`, and no usage is needed where it answers.
#[test]
fn a_server_that_tokenizes_as_llama_cpp_does() {
    let home = Home::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let url = serve(move |asked| {
        let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let path = asked.head.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            "/tokenize" => {
                let words = body["content"].as_str().map_or(0, |text| text.split_whitespace().count());
                raw_server::json("200 OK", &json!({"tokens": vec![1; words * 2]}))
            }
            "/apply-template" => {
                let text = format!("<s> {} </s>", body["messages"][0]["content"].as_str().unwrap());
                raw_server::json("200 OK", &json!({"prompt": text}))
            }
            "/v1/chat/completions" => {
                kept.lock().unwrap().push(body["messages"][0]["content"].as_str().unwrap().to_owned());
                events(&[
                    r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
                    "[DONE]",
                ])
            }
            "/v1/models" => {
                let own = json!({"id": "m", "meta": {"n_ctx_train": 32768}});
                raw_server::json("200 OK", &json!({"data": [own]}))
            }
            "/props" => raw_server::json("200 OK", &json!({"default_generation_settings": {"n_ctx": 3000}})),
            _ => answer("404 Not Found", "", ""),
        }
    });
    let flags = "-c 1 -n 2 --warmup 0 --prompt-tokens 100 --connections new --cache as-is";
    let done = home.ttft(&format!("run {url} {flags} --out out")).expect(0);
    assert!(
        done.err
            .contains("calibrated: 2.00 tokens a word, and 4 around the prompt, by the server's /tokenize"),
        "{done}"
    );
    let words = |text: &String| text.split(' ').count();
    assert_eq!(seen.lock().unwrap().iter().map(words).collect::<Vec<_>>(), [48, 48]);
    let done = home.ttft(&format!("run {url} -n 1 --prompt-tokens 4000 --out long")).expect(2);
    assert!(done.err.contains("prompts have 4000 tokens, but the model's context is 3000 tokens"), "{done}");
}
