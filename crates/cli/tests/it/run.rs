//! `ttft run` from its arguments to its folder.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::home::Home;
use crate::sim::Sim;

const QUICK: &str = "-c 2 -n 6 --warmup 2 --max-tokens 8";

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

#[track_caller]
fn has_keys(value: &Value, wanted: &str) {
    let have = keys(value);
    let missing: Vec<&str> = wanted.split_whitespace().filter(|key| !have.contains(key)).collect();
    assert!(missing.is_empty(), "without {missing:?}: {have:?}");
}

#[test]
fn the_summary_has_the_keys_of_its_schema() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let slo = "--slo ttft_p95<60s --slo error_rate<50%";
    home.ttft(&format!("run {} -c 1,3 -n 12 --max-tokens 8 {slo} --out out", sim.url)).expect(0);
    let summary = home.summary("out");
    assert_eq!(
        keys(&summary),
        BTreeSet::from(["schema", "run", "stages", "knee", "diagnosis", "contamination"])
    );
    assert_eq!(summary["schema"], "ttft.summary/1");
    assert_eq!(summary["run"]["interrupted"], false);
    assert_eq!(summary["run"]["model"], "sim");
    assert!(summary["diagnosis"].is_array() && summary["contamination"].is_array());

    let stages = summary["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 2);
    for (stage, (users, warm)) in stages.iter().zip([(1, 10), (3, 0)]) {
        has_keys(
            stage,
            "name load workload model requests latency_ms throughput tokens goodput client server reconcile windows",
        );
        assert_eq!(stage["name"], format!("c{users}"));
        assert_eq!(
            stage["load"],
            serde_json::json!({ "kind": "closed", "concurrency": users, "ramp_up": "0s" })
        );
        let requests = &stage["requests"];
        has_keys(requests, "sent ok failed warmup outcomes errors");
        assert_eq!(requests["sent"], 12);
        assert_eq!(requests["ok"], 12);
        assert_eq!(requests["failed"], 0);
        assert_eq!(requests["warmup"], warm);
        assert_eq!(requests["outcomes"], serde_json::json!({ "ok": 12 }));
        assert_eq!(requests["errors"], serde_json::json!({}));

        let latency = &stage["latency_ms"];
        has_keys(
            latency,
            "ttft ttft_scheduled ttft_sent ttft_answer ttfb headers_time header_gap e2e total tpot event_gap itl connect_time rtt",
        );
        has_keys(
            &latency["ttft"],
            "n mean stddev min p1 p5 p10 p25 p50 p75 p90 p95 p99 p99_9 max ci95 excluded pessimistic",
        );
        assert!(latency["ttft"]["ci95"]["p50"].is_array());
        assert!(latency["ttft"]["p50"].as_f64().unwrap() >= 20.0, "{}", latency["ttft"]);
        has_keys(&stage["throughput"], "requests_per_s output_tokens_per_s input_tokens_per_s");
        has_keys(&stage["tokens"], "input output source");
        assert_eq!(stage["tokens"]["source"], "usage");
        assert_eq!(stage["goodput"]["slo"].as_array().unwrap().len(), 2);
        has_keys(&stage["goodput"], "attainment ci95 requests_per_s");
        has_keys(&stage["client"], "clock read_lag_ms send_lag_ms cpu_percent max_in_flight verdict reasons");
        assert!(stage["client"]["max_in_flight"].as_u64().unwrap() <= users);
        has_keys(&stage["windows"], "steady whole");
    }
}

#[test]
fn the_folder_holds_what_a_run_leaves_and_is_read_again() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    home.ttft(&format!("run {} {QUICK} --out out", sim.url)).expect(0);
    let mut files: Vec<_> = std::fs::read_dir(home.path("out"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["plan.toml", "requests.arrow", "run.json", "server.jsonl", "summary.json"]);

    let facts: Value = serde_json::from_str(&home.read("out/run.json")).unwrap();
    assert_eq!(facts["schema"], "ttft.run/1");
    has_keys(&facts, "version name command host kernel clock zero_unix_ns ended_ns interrupted stages plan");

    // The rows alone give the same summary again.
    let again = home.ttft("report out --json").expect(0);
    assert_eq!(again.json(), home.summary("out"));
    let several = home.ttft("report out out").expect(0);
    assert_eq!(several.out.matches("6 of 6 requests ok").count(), 2, "{several}");
}

#[test]
fn json_stands_alone_on_standard_output() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let done = home.ttft(&format!("run {} {QUICK} --out out --json", sim.url)).expect(0);
    assert_eq!(done.json(), home.summary("out"));
    for told in ["results go to out", "stage 1/1", "6 of 6 requests ok", "TTFT", "kept in out"] {
        assert!(done.err.contains(told), "{told}: {done}");
    }
    let text = home.ttft(&format!("run {} {QUICK} --out text", sim.url)).expect(0);
    assert!(text.out.contains("6 of 6 requests ok") && !text.err.contains("6 of 6"), "{text}");
    assert!(text.err.contains("at most 8 output tokens, prefix cache cold\n2 warm-up requests"), "{text}");
}

#[test]
fn a_missed_objective_is_exit_code_1() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let met = home.ttft(&format!("run {} {QUICK} --slo ttft_p50<60s", sim.url)).expect(0);
    assert!(met.out.contains("met"), "{met}");
    let slos = "--slo ttft_p50<60s --slo ttft_p50<1ms";
    let missed = home.ttft(&format!("run {} {QUICK} {slos} --json", sim.url)).expect(1);
    assert!(missed.err.contains("MISSED"), "{missed}");
    let results = &missed.json()["stages"][0]["goodput"]["slo"];
    assert_eq!((&results[0]["met"], &results[1]["met"]), (&true.into(), &false.into()));
}

#[test]
fn failures_alone_are_exit_code_3_and_some_are_not() {
    let home = Home::new();
    let sim = Sim::start(&home, "--fault status=500");
    let done = home.ttft(&format!("run {} {QUICK} --out out", sim.url)).expect(3);
    assert!(done.out.contains("6 of 6 requests failed") && done.out.contains("http_error"), "{done}");
    assert_eq!(home.stage("out")["requests"]["failed"], 6);

    let half = Sim::start(&home, "--fault status=500@0.5");
    home.ttft(&format!("run {} -c 2 -n 40 --warmup 0 --max-tokens 4 --out half", half.url)).expect(0);
    let requests = &home.stage("half")["requests"];
    let (ok, failed) = (requests["ok"].as_u64().unwrap(), requests["failed"].as_u64().unwrap());
    assert!(ok + failed == 40 && ok > 5 && failed > 5, "{requests}");
    assert_eq!(requests["errors"]["http_error"], failed);
}

#[test]
fn without_a_url_the_built_in_engine_is_tested() {
    let home = Home::new();
    let done =
        home.ttft("run -c 2 -n 4 --warmup 0 --max-tokens 4 --prompt-tokens 20 --name first-try").expect(0);
    assert!(done.out.contains("4 of 4 requests ok"), "{done}");
    let runs: Vec<_> = std::fs::read_dir(home.path("runs")).unwrap().map(|run| run.unwrap().path()).collect();
    assert_eq!(runs.len(), 1);
    assert!(runs[0].to_str().unwrap().ends_with("Z-first-try"), "{runs:?}");
    home.ttft(&format!("report {}", runs[0].display())).expect(0);
    // So is another profile of it, and again by its plan.
    home.ttft("run sim:instant -c 2 -n 4 --max-tokens 4 --out out").expect(0);
    home.ttft("run --plan out/plan.toml --out again").expect(0);
}

#[test]
fn prompts_come_from_files() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    home.write("p.txt", "one two\n\nthree four five\n");
    home.write("p.jsonl", "{\"prompt\":\"one\"}\n{\"messages\":[{\"role\":\"user\",\"content\":\"two\"}]}\n");
    for file in ["p.txt", "p.jsonl"] {
        let run = format!("run {} {QUICK} --cache as-is --dataset {file} --out {file}.out", sim.url);
        home.ttft(&run).expect(0);
        let input = &home.stage(&format!("{file}.out"))["tokens"]["input"]["per_request"];
        assert!(input["max"].as_f64().unwrap() < 20.0, "{input}");
    }
}

/// Scripts that start a server on a free port need its address, and not from a sentence.
#[test]
fn a_simulated_engine_tells_its_address_as_json() {
    let home = Home::new();
    let mut child = home.command().args(["sim", "--port", "0", "--json"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    home.ttft(&format!("check {}", told["url"].as_str().unwrap())).expect(0);
    child.kill().unwrap();
    child.wait().unwrap();
}
