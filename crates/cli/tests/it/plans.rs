//! Plan files: what they say, what flags say over them, and what is wrong with them.

use serde_json::Value;

use crate::home::{Done, Home};
use crate::sim::Sim;

fn names(summary: &Value) -> Vec<&str> {
    summary["stages"].as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap()).collect()
}

#[track_caller]
fn refused(home: &Home, line: &str, words: &[&str]) -> Done {
    let done = home.ttft(&format!("run {line} --out refused")).expect(2);
    assert_eq!(done.out, "", "{done}");
    assert_eq!(done.err.trim_end().lines().count(), 1, "{done}");
    for word in words {
        assert!(done.err.contains(word), "{word:?} in {done}");
    }
    assert!(!home.path("refused").exists(), "{done}");
    done
}

#[test]
fn a_run_leaves_the_plan_that_repeats_it() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let flags = "-c 1,2 -n 4 --warmup 1 --max-tokens 8 --prompt-tokens 40 --cache warm --connections per-user \
                 --slo ttft_p95<60s --seed 7 --name first -H x-run:1 --body-json {\"temperature\":0}";
    home.ttft(&format!("run {} {flags} --out out", sim.url)).expect(0);
    home.ttft("run --plan out/plan.toml --out again").expect(0);
    assert_eq!(home.read("out/plan.toml"), home.read("again/plan.toml"));
    let (first, second) = (home.summary("out"), home.summary("again"));
    for stage in 0..2 {
        for part in ["name", "load", "requests"] {
            assert_eq!(first["stages"][stage][part], second["stages"][stage][part]);
        }
    }
}

#[test]
fn flags_go_over_what_a_plan_says() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let flags = "-c 1,2 -n 4 --warmup 1 --max-tokens 8 --prompt-tokens 40";
    home.ttft(&format!("run {} {flags} --out out", sim.url)).expect(0);

    let other = Sim::start(&home, "");
    let line = "--plan out/plan.toml --name other --seed 8 --model m --max-tokens 4 -c 3 --out other";
    home.ttft(&format!("run {} {line}", other.url)).expect(0);
    let summary = home.summary("other");
    assert_eq!((&summary["run"]["name"], &summary["run"]["seed"]), (&"other".into(), &8.into()));
    assert_eq!(summary["run"]["model"], "m");
    assert!(summary["run"]["url"].as_str().unwrap().starts_with(&other.url));
    assert_eq!(names(&summary), ["c3"]);
    assert_eq!(summary["stages"][0]["requests"]["sent"], 4);
    assert_eq!(summary["stages"][0]["tokens"]["output"]["per_request"]["max"], 4.0);

    home.ttft("run --plan out/plan.toml --set stages.c2.requests=2 --set stages.0.concurrency=4 --out set")
        .expect(0);
    let summary = home.summary("set");
    assert_eq!(names(&summary), ["c4", "c2"]);
    assert_eq!(summary["stages"][1]["requests"]["sent"], 2);
}

#[test]
fn lists_repetitions_and_order_come_of_the_file() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let plan = format!(
        "name = \"nightly\"\nrepeat = 2\norder = \"shuffled\"\nwarmup = 0\nslo = \"ttft_p95<60s\"\n\
         [endpoint]\nurl = \"{}\"\n[[workloads]]\nprompt_tokens = 20\nmax_tokens = 2\n\
         [[stages]]\nconcurrency = [1, 2, 3]\nrequests = 3\n",
        sim.url
    );
    home.write("ttft.toml", &plan);
    home.ttft("run --plan ttft.toml --out one").expect(0);
    home.ttft("run --plan ttft.toml --out two").expect(0);
    home.ttft("run --plan ttft.toml --seed 5 --out five").expect(0);
    let [one, two, five] = ["one", "two", "five"].map(|out| home.summary(out));
    assert_eq!(names(&one), names(&two));
    assert_ne!(names(&one), names(&five));
    for pass in [1, 2] {
        let mut all: Vec<String> =
            names(&one)[3 * (pass - 1)..3 * pass].iter().map(|&name| name.to_owned()).collect();
        all.sort();
        assert_eq!(all, ["c1", "c2", "c3"].map(|name| format!("{name} #{pass}")));
    }
}

#[test]
fn what_is_wrong_with_a_plan_is_told_with_its_line() {
    let home = Home::new();
    refused(&home, "--plan nope.toml", &["cannot read the plan nope.toml"]);
    let wrong = |text: &str, words: &[&str]| {
        home.write("p.toml", text);
        refused(&home, "--plan p.toml", words)
    };
    wrong("seed = = 1", &["error: p.toml, line 1: "]);
    wrong("name = \"x\"\nsede = 2", &["p.toml, line 2: unknown key `sede`; did you mean `seed`?"]);
    wrong(
        "[[stages]]\nconcurency = 2",
        &["p.toml, line 2", "`concurency` in stages.0; did you mean `concurrency`?"],
    );
    wrong("seed = \"one\"", &["p.toml, line 1: `seed`: `one` is not a count"]);
    wrong("[timeouts]\nidle = true", &["line 2: `timeouts.idle`: expected a length of time"]);
    wrong("[[stages]]\nconcurrency = 1\nworkload = \"x\"", &["stage c1: no workload is called `x`"]);
    wrong("slo = [\"tftt<1s\"]", &["did you mean `ttft`"]);
    wrong("slo = [\"ttft_p95<1s\", \"ttft_p95>2s\"]", &["no run can keep both"]);
    wrong("precision = \"5%\"", &["`precision` needs `requests`"]);
    wrong("[budget]\nmax_cost = 1", &["`budget.max_cost` needs `price_in` and `price_out`"]);
    wrong(
        "[endpoint]\napi_key = \"\\u001b[31msk-1\"",
        &["`endpoints.0.api_key`: expected one of none, env, file"],
    );
    wrong("\"\\u001b[31m\" = 1", &["unknown key `\\x1b[31m`"]);
}

#[test]
fn what_is_wrong_with_a_path_is_told_with_the_nearest() {
    let home = Home::new();
    home.write("p.toml", "[[stages]]\nname = \"both\"\nconcurrency = 1\n");
    let wrong = |set: &str, words: &[&str]| refused(&home, &format!("--plan p.toml --set {set}"), words);
    wrong("stages.bath.requests=1", &["`stages` has no `bath`; did you mean `both`?"]);
    wrong("stages.0.request=1", &["unknown key `request` in stages.0; did you mean `requests`?"]);
    wrong("stages.1.requests=1", &["`stages` has one entry, number 0"]);
    wrong("seed", &["write it as PATH=VALUE"]);
}

#[test]
fn init_writes_a_plan_that_runs() {
    let home = Home::new();
    let done = home.ttft("init").expect(0);
    assert!(done.err.contains("ttft run --plan ttft.toml"), "{done}");
    let text = home.read("ttft.toml");
    assert_eq!(home.ttft("init -").expect(0).out, text);
    assert_eq!(home.ttft("init - --json").expect(0).json()["text"], text.as_str());
    home.ttft("run --plan ttft.toml -c 1 -n 2 --max-tokens 2 --set endpoint.url=sim:instant --out out")
        .expect(0);
    assert_eq!(names(&home.summary("out")), ["c1"]);

    home.write("ttft.toml", "mine");
    let there = home.ttft("init").expect(2);
    assert!(there.err.contains("ttft.toml is there already") && there.err.contains("--force"), "{there}");
    assert_eq!(home.read("ttft.toml"), "mine");
    home.ttft("init --force").expect(0);
    assert_eq!(home.read("ttft.toml"), text);
    home.ttft("init other.toml").expect(0);
    assert_eq!(home.read("other.toml"), text);
}

#[test]
fn a_dry_run_tells_what_would_be_done_and_sends_nothing() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let flags = "--model small,big -c 1,8 -n 95 --warmup 20 --prompt-tokens 100 --max-tokens 10 --ignore-eos \
                 --price-in 1 --price-out 10 --dry-run --out out";
    let done = home.ttft(&format!("run {} {flags}", sim.url)).expect(0);
    for told in ["c1 small", "c8 small", "c1 big", "c8 big", "warm-up", "400", "40,000", "4,000", "0.08"] {
        assert!(done.out.contains(told), "{told}: {done}");
    }
    assert!(done.out.contains("nothing has been sent") && done.out.contains("model small, big"), "{done}");
    let json = home.ttft(&format!("run {} {flags} --json -H x-api-key:sk-1", sim.url)).expect(0).json();
    assert_eq!(json["schema"], "ttft.estimate/1");
    assert_eq!(json["plan"]["stages"][3]["name"], "c8 big");
    assert_eq!(json["plan"]["endpoints"][0]["headers"][0]["value"], "<redacted>");
    assert_eq!(json["estimate"]["total"]["requests"], serde_json::json!({ "least": 400.0, "most": 400.0 }));
    assert!(!home.path("out").exists());
    drop(sim);
    assert!(!home.read("truth.jsonl").contains("small"), "nothing was asked");
    home.ttft("run --dry-run --dataset nope.txt").expect(2);
}

#[test]
fn a_budget_is_estimated_before_the_run_and_one_that_allows_nothing_is_refused() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let flags =
        "-c 1 -n 4 --warmup 0 --prompt-tokens 50 --max-tokens 4 --ignore-eos --price-in 2 --price-out 8";
    let done = home.ttft(&format!("run {} {flags} --max-cost 5 --out out", sim.url)).expect(0);
    assert!(
        done.err.contains("estimated: 4 requests, 200 input tokens, 16 output tokens, cost 0.000528"),
        "{done}"
    );
    assert!(done.err.contains("it stops before a cost of 5.00"), "{done}");
    let none = "-c 1 -n 4 --prompt-tokens 50 --max-tokens 4";
    refused(
        &home,
        &format!("{none} --max-total-tokens 53"),
        &["`budget.max_total_tokens` 53 allows not one request"],
    );
    refused(
        &home,
        &format!("{none} --price-in 2 --price-out 8 --max-cost 0.0001"),
        &["allows not one request"],
    );
    refused(&home, &format!("{none} --max-cost 1"), &["needs `price_in` and `price_out`"]);
}

#[test]
fn secrets_that_flags_set_are_not_kept() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let more = ["--set", "endpoint.headers.x-api-key=sk-secret-0123", "--set", "endpoint.headers.x-run=1"];
    home.ttft_with(&format!("run {} -c 1 -n 2 --max-tokens 2 --warmup 0 --out out", sim.url), &more)
        .expect(0);
    for file in ["plan.toml", "run.json", "summary.json"] {
        assert!(!home.read(&format!("out/{file}")).contains("sk-secret-0123"), "{file}");
    }
}
