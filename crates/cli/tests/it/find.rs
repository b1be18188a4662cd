//! The search for the highest load, through the binary.

use serde_json::Value;

use crate::home::Home;

/// A search of few and short requests.
const SHORT: &str = "--prompt-tokens 10 --max-tokens 2 --warmup 2 --requests-per-level 200 --json";

fn answer(out: &str) -> Value {
    serde_json::from_str(out).unwrap()
}

#[test]
fn the_limit_of_an_engine_lies_between_two_levels() {
    let home = Home::new();
    // Four places, each taken for 150 ms: a fifth user waits for one.
    home.write(
        "four.toml",
        "about = 'four places'\nmax_model_len = 4096\noutput = { median = 9, sigma = 0 }\n[batching]\n\
         max_num_seqs = 4\nmax_num_batched_tokens = 2048\nblock_size = 16\nnum_blocks = 4096\n\
         prefix_cache = false\nstep_ms = 30\nprefill_ms = 0.01\ndecode_ms_per_seq = 0.01\nsigma = 0.1",
    );
    let flags = "--slo ttft_p95<120ms --slo error_rate<10% --concurrency 2..32 --prompt-tokens 10 --max-tokens 5 \
                 --warmup 2 --requests-per-level 300 --json --out found";
    let done = home.ttft(&format!("find sim:four.toml {flags}")).expect(0);
    let found = answer(&done.out);
    assert_eq!((&found["schema"], &found["outcome"]), (&"ttft.find/1".into(), &"found".into()), "{found}");
    let (met, missed) = (found["met"].as_f64().unwrap(), found["missed"].as_f64().unwrap());
    assert!(met <= 5.0 && missed > 4.0 && missed <= 12.0, "{met} {missed}\n{}", done.err);
    assert!(done.err.contains("users meet the objectives"), "{}", done.err);
    assert!(done.err.contains("users: misses:"), "what was learnt on the way: {}", done.err);
    // Every level is a stage, and the answer stands beside them.
    let report = answer(&home.ttft("report found --json").expect(0).out);
    let stages = report["stages"].as_array().unwrap();
    let sent: u64 = stages.iter().map(|stage| stage["requests"]["sent"].as_u64().unwrap()).sum();
    assert!(stages.len() >= 5 && sent >= found["requests"].as_u64().unwrap());
    assert_eq!(answer(&home.read("found/find.json"))["met"], found["met"]);
}

#[test]
fn limits_outside_of_the_bounds_are_said_to_be() {
    let home = Home::new();
    let above =
        home.ttft(&format!("find sim:instant --slo ttft_p95<60s --concurrency 1..2 {SHORT} --out above"));
    let above = answer(&above.expect(0).out);
    assert_eq!((&above["outcome"], above["met"].as_f64()), (&"not_reached".into(), Some(2.0)), "{above}");
    let below =
        home.ttft(&format!("find sim:instant --slo ttft_p95<1us --concurrency 1..8 {SHORT} --out below"));
    let below = below.expect(1);
    assert_eq!(answer(&below.out)["outcome"], "below_smallest");
    assert!(below.err.contains("below the smallest level"), "{}", below.err);
    let rate = home.ttft(&format!("find sim:instant --slo ttft_p95<60s --rate 50..60 {SHORT} --out rate"));
    assert_eq!(answer(&rate.expect(0).out)["axis"], "rate");
}

#[test]
fn budgets_end_a_search_with_what_is_known() {
    let home = Home::new();
    let flags = "--slo ttft_p95<60s --concurrency 1..64 --max-requests 100";
    let done = home.ttft(&format!("find sim:instant {flags} {SHORT} --out few")).expect(3);
    let few = answer(&done.out);
    assert!(few["stopped"].as_str().unwrap().contains("more than 100 in all"), "{few}");
    assert!(few["met"].is_null() && few["requests"].as_u64().unwrap() <= 100);
    let flags = "--slo ttft_p95<60s --concurrency 1..64 --max-time 1s";
    let done = home.ttft(&format!("find sim:fixed {flags} --max-tokens 2 --json --out short")).expect(3);
    let stopped = answer(&done.out)["stopped"].as_str().unwrap().to_owned();
    assert!(stopped.contains("--max-time"), "{stopped}");
}

#[test]
fn what_cannot_be_searched_is_a_mistake_of_usage() {
    let home = Home::new();
    for (flags, part) in [
        ("", "--slo"),
        ("--slo ttft<1s", "add `goodput>0.95`"),
        ("--slo requests_per_s>5", "ask for a latency"),
        ("--slo ttfd_p95<1s", "did you mean"),
        ("--slo ttft_p95<1s --concurrency 9..2", "between 9 and 2"),
        ("--slo ttft_p95<1s --concurrency 9", "LOW..HIGH"),
        ("--slo ttft_p95<1s --rate 0..5", "is no rate"),
        ("--slo ttft_p95<1s --requests-per-level 5", "at least 100"),
    ] {
        let done = home.ttft(&format!("find {flags}")).expect(2);
        assert!(done.err.contains(part), "{flags}: {}", done.err);
    }
    let gone =
        home.ttft("find http://127.0.0.1:9 --model m --slo ttft_p95<1s --warmup 2 --out gone").expect(3);
    assert!(gone.err.contains("connect_refused"), "{}", gone.err);
}
