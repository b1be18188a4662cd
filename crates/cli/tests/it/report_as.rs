//! `ttft report --as`: one run in the words of other tools.

use serde_json::Value;

use crate::home::Home;
use crate::sim::Sim;

fn row<'a>(told: &'a Value, tool: &str) -> &'a Value {
    let rows = told["stages"][0]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["tool"] == tool).unwrap_or_else(|| panic!("no {tool}"))
}

#[test]
fn other_tools_figures_stand_beside_ours() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    home.ttft(&format!("run {} -c 2 -n 12 --warmup 2 --max-tokens 8 --out out", sim.url)).expect(0);
    let done = home.ttft("report out --as vllm,vllm-rs,mlperf --json").expect(0);
    let told = done.json();
    assert_eq!(told["schema"], "ttft.rosetta/1");
    assert_eq!(told["stages"][0]["requests"], 12, "warm-up apart");
    let tools: Vec<&str> =
        told["stages"][0]["rows"].as_array().unwrap().iter().map(|r| r["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["ttft", "vllm", "vllm-rs", "mlperf"]);

    // The same records: ours is the summary's, and vLLM counts the same first token.
    let ours = row(&told, "ttft")["ttft_ms"]["p50"].as_f64().unwrap();
    assert_eq!(row(&told, "vllm")["ttft_ms"]["p50"], ours);
    assert_eq!(row(&told, "vllm")["ttft_same"], true);
    // The simulated engine sends a role-only chunk at once.
    let early = row(&told, "vllm-rs")["ttft_ms"]["p50"].as_f64().unwrap();
    assert!(early <= ours, "{early} against {ours}");
    for tool in ["vllm", "vllm-rs", "mlperf"] {
        let row = row(&told, tool);
        assert!(!row["source"].as_str().unwrap().is_empty() && !row["why"].as_str().unwrap().is_empty());
        assert!(row["tokens_ms"][0]["ms"]["p50"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(done.err.contains("why they differ"), "{done}");

    let all = home.ttft("report out --as all").expect(0);
    for tool in
        "vllm vllm-rs aiperf guidellm sglang inference-perf genai-bench evalscope llmperf mlperf".split(' ')
    {
        assert!(all.out.contains(&format!("{tool} ")), "{tool}: {all}");
    }
}

#[test]
fn an_unknown_tool_is_an_error_of_usage() {
    let home = Home::new();
    let done = home.ttft("report out --as vlm").expect(2);
    assert!(done.err.contains("vllm") && done.err.contains("guidellm"), "{done}");
    let none = home.ttft("report out --as vllm").expect(2);
    assert!(none.err.contains("out is no run folder"), "{none}");
}
