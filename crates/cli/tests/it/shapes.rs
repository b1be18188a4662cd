//! Plans whose stages mix workloads, change their rate, think, settle, spend a budget, or ask several endpoints.

use serde_json::Value;

use crate::home::Home;
use crate::sim::Sim;

/// A whole plan: `top` are its first keys, and the two workloads `short` and `long` are there.
fn plan(top: &str, endpoints: &[(&str, &str, &str)], stages: &str) -> String {
    let endpoint = |(name, url, model): &(&str, &str, &str)| {
        format!(
            "[[endpoints]]\nname = \"{name}\"\nurl = \"{url}\"\ndialect = \"openai-chat\"\nmodel = \"{model}\"\n\
             api_key = \"none\"\nconnections = \"reuse\"\nhttp = \"1.1\"\nstreams_per_connection = 8\n"
        )
    };
    let workload = |name: &str, tokens: u32, max_tokens: u32| {
        format!(
            "[[workloads]]\nname = \"{name}\"\nmax_tokens = {max_tokens}\nignore_eos = true\ncache = \"cold\"\n\
             [workloads.prompt]\ntokens = {tokens}\n"
        )
    };
    let timeouts =
        "[timeouts]\nconnect = \"10s\"\nfirst_token = \"40s\"\nidle = \"40s\"\ntotal = \"50s\"\n[client]\n";
    [
        format!("name = \"shapes\"\nseed = 3\ndrain = \"20s\"\n{top}\n"),
        endpoints.iter().map(endpoint).collect(),
        timeouts.to_owned(),
        "[sources]\nfind = false\n".to_owned(),
        workload("short", 10, 2),
        workload("long", 200, 4),
        stages.to_owned(),
    ]
    .join("\n")
}

fn here(sim: &Sim) -> String {
    format!("{}/v1/chat/completions", sim.url)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_mix_has_figures_of_each_workload() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let url = here(&sim);
    let stages =
        "[[stages]]\nname = \"both\"\nconcurrency = 4\nrequests = 80\nmix = { short = 3.0, long = 1.0 }\n";
    home.write("plan.toml", &plan("warmup = 4\nslo = [\"ttft<30s\"]", &[("here", &url, "m")], stages));
    let done = home.ttft("run --plan plan.toml --out out").expect(0);
    let stage = home.stage("out");
    assert_eq!((&stage["workload"], &stage["requests"]["ok"]), (&"long+short".into(), &80.into()));
    let parts = stage["parts"].as_array().unwrap();
    let names: Vec<_> = parts.iter().map(|part| part["workload"].as_str().unwrap()).collect();
    assert_eq!(names, ["long", "short"]);
    let mut sent = 0;
    for (part, share, tokens) in [(&parts[0], 0.25, 4.0), (&parts[1], 0.75, 2.0)] {
        assert_eq!(part["share"], share);
        let n = part["requests"]["sent"].as_u64().unwrap();
        sent += n;
        assert!((number(&part["share_sent"]) - n as f64 / 80.0).abs() < 1e-9);
        // Four standard deviations of a share of 80.
        assert!((number(&part["share_sent"]) - share).abs() < 0.2, "{part}");
        assert_eq!(part["requests"]["warmup"], 2, "the warm-up covers both");
        let output = &part["tokens"]["output"]["per_request"];
        assert_eq!((number(&output["min"]), number(&output["max"])), (tokens, tokens));
        assert!(number(&part["latency_ms"]["ttft"]["p50"]) > 0.0);
        assert_eq!(part["goodput"]["attainment"], 1.0);
    }
    assert_eq!(sent, 80);
    let row = done.out.lines().find(|line| line.trim_start().starts_with("long ")).unwrap_or_default();
    assert!(row.contains("[of 25.0 % asked]") || row.contains("[of 25 % asked]"), "{done}");

    // The rows tell of which workload each request was.
    let again = home.ttft("report out --json").expect(0).json();
    assert_eq!(again["stages"][0]["parts"], stage["parts"]);
}

#[test]
fn two_endpoints_and_two_models_side_by_side() {
    let home = Home::new();
    let (one, two) = (Sim::start(&home, "--truth one.jsonl"), Sim::start(&home, "--truth two.jsonl"));
    let stage = |name: &str, more: &str| {
        format!(
            "[[stages]]\nname = \"{name}\"\nworkload = \"short\"\nconcurrency = 2\nrequests = 6\n{more}\n"
        )
    };
    let stages = [
        stage("a", ""),
        stage("b", "model = \"big\""),
        stage("c", "endpoint = \"there\""),
        stage("d", "endpoint = \"there\"\nmodel = \"big\""),
    ];
    let endpoints = [("here", here(&one)), ("there", here(&two))];
    let endpoints = [
        (endpoints[0].0, endpoints[0].1.as_str(), "small"),
        (endpoints[1].0, endpoints[1].1.as_str(), "other"),
    ];
    home.write("plan.toml", &plan("warmup = 1\nslo = []", &endpoints, &stages.concat()));
    let done = home.ttft("run --plan plan.toml --out out").expect(0);
    let summary = home.summary("out");
    let told: Vec<_> = summary["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| {
            (s["endpoint"].as_str().unwrap(), s["model"].as_str().unwrap(), s["requests"]["ok"].as_u64())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("here", "small", Some(6)),
            ("here", "big", Some(6)),
            ("there", "other", Some(6)),
            ("there", "big", Some(6))
        ]
    );
    // One warm-up request for each thing that is asked.
    for file in ["one.jsonl", "two.jsonl"] {
        let seen = home.read(file).lines().filter(|line| line.starts_with('{')).count();
        assert_eq!(seen, 2 * 6 + 2, "{file}");
    }
    assert!(done.out.contains("endpoint") && done.out.contains("there"), "{done}");
    assert!(done.err.contains("models small, big") && done.err.contains("models other, big"), "{done}");
}

#[test]
fn think_time_lowers_the_rate_as_computed() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let url = here(&sim);
    let stage = |name: &str, more: &str| {
        format!(
            "[[stages]]\nname = \"{name}\"\nworkload = \"short\"\nconcurrency = 4\nduration = \"1500ms\"\n{more}\n"
        )
    };
    let stages = [stage("busy", ""), stage("thinking", "think_time = \"200ms\"")].concat();
    home.write(
        "plan.toml",
        &plan("warmup = 2\nslo = []\nsettle = \"50ms\"", &[("here", &url, "m")], &stages),
    );
    let done = home.ttft("run --plan plan.toml --out out").expect(0);
    let stages = home.summary("out")["stages"].clone();
    let rate =
        |stage: &Value| number(&stage["requests"]["sent"]) / number(&stage["windows"]["whole"]["duration_s"]);
    // Four users that think 200 ms can start no more than 20 a second, and four at the beginning.
    let sent = number(&stages[1]["requests"]["sent"]);
    assert!((4.0..=4.0 * (1.0 + 1500.0 / 200.0)).contains(&sent), "{sent}");
    assert!(rate(&stages[1]) < rate(&stages[0]), "{} {}", rate(&stages[1]), rate(&stages[0]));
    let doubts = stages[1]["client"]["reasons"].to_string();
    assert!(!doubts.contains("in flight where"), "{doubts}");
    assert!(done.err.contains("settling before stage 2/2"), "{done}");
}

#[test]
fn a_ramp_has_no_steady_state() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let url = here(&sim);
    let stage = "[[stages]]\nname = \"ramp\"\nworkload = \"short\"\nrate = 5.0\nrate_to = 100.0\narrival = \"constant\"\n\
                 duration = \"1s\"\n";
    home.write("plan.toml", &plan("warmup = 0\nslo = []", &[("here", &url, "m")], stage));
    let done = home.ttft("run --plan plan.toml --out out").expect(0);
    let stage = home.stage("out");
    // The area below the ramp: (5 + 100) / 2 · 1 s, and the first one at once.
    assert_eq!(stage["requests"]["sent"], 53);
    assert_eq!(stage["window"], "whole");
    assert!(done.out.contains("its rate changes all the time"), "{done}");
    assert!(done.out.contains("5 to 100/s constant"), "{done}");
}

#[test]
fn a_budget_ends_the_run_in_order_and_says_so() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let url = here(&sim);
    let stages = "[[stages]]\nname = \"c\"\nworkload = \"long\"\nconcurrency = 2\nrequests = 5000\n";
    let spent = |out: &str, budget: &str, code: i32| {
        let top = "warmup = 2\nslo = []";
        let text =
            plan(top, &[("here", &url, "m")], stages).replace("[timeouts]", &format!("{budget}\n[timeouts]"));
        home.write("plan.toml", &text);
        home.ttft(&format!("run --plan plan.toml --out {out}")).expect(code)
    };
    let done = spent("tokens", "[budget]\nmax_total_tokens = 4000", 0);
    let summary = home.summary("tokens");
    let stage = &summary["stages"][0];
    let used = number(&stage["tokens"]["input"]["total"]) + number(&stage["tokens"]["output"]["total"]);
    assert!(used <= 4000.0 && number(&stage["requests"]["ok"]) >= 3.0, "{used}");
    assert_eq!(stage["requests"]["sent"], stage["requests"]["ok"], "what was under way could end");
    assert_eq!(summary["run"]["interrupted"], true);
    let why = summary["run"]["stopped_by"].as_str().unwrap();
    assert!(why.contains("the budget of 4000 tokens holds no further request"), "{why}");
    assert!(done.err.contains("stopping: the budget of 4000 tokens"), "{done}");

    let cost = "[budget]\nprice_in = 10.0\nprice_out = 100.0\nmax_cost = 0.02";
    spent("cost", cost, 0);
    let stage = home.stage("cost");
    let cost = number(&stage["tokens"]["input"]["total"]) * 10e-6
        + number(&stage["tokens"]["output"]["total"]) * 100e-6;
    assert!(cost <= 0.02 && cost > 0.005, "{cost}");

    // Nothing fits: nothing was measured. A budget that cannot hold a request by any count is no plan.
    let done = spent("nothing", "[budget]\nmax_total_tokens = 210", 3);
    assert!(done.err.contains("the budget of 210 tokens holds no further request"), "{done}");
    let done = spent("none", "[budget]\nmax_total_tokens = 10", 2);
    assert!(done.err.contains("allows not one request"), "{done}");
}

#[test]
fn a_stage_that_is_precise_enough_ends_early() {
    let home = Home::new();
    let sim = Sim::serve(&home, "--profile fixed --ttft-ms 5 --itl-ms 0");
    let url = here(&sim);
    let stages = "[[stages]]\nname = \"c\"\nworkload = \"short\"\nconcurrency = 8\nrequests = 20000\n\
                  [[stages]]\nname = \"few\"\nworkload = \"short\"\nconcurrency = 8\nrequests = 20\n";
    // Hardly any machine is so noisy that thousands of requests do not place the percentile that well.
    home.write("plan.toml", &plan("warmup = 0\nslo = []\nprecision = 0.9", &[("here", &url, "m")], stages));
    let done = home.ttft("run --plan plan.toml --out out").expect(0);
    let stages = home.summary("out")["stages"].clone();
    let sent = number(&stages[0]["requests"]["sent"]);
    assert!((200.0..20_000.0).contains(&sent), "{sent}");
    let why = stages[0]["ended_early"].as_str().unwrap();
    assert!(why.contains("95 % interval of TTFT p95"), "{why}");
    assert_eq!((&stages[1]["requests"]["sent"], &stages[1]["ended_early"]), (&20.into(), &Value::Null));
    assert!(done.out.contains("ended before its time"), "{done}");
}
