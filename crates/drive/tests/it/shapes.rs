//! Shapes of load: mixes, thinking users, rates that change, pauses, budgets, several endpoints and models.

use std::net::SocketAddr;

use ttft_drive::{Arrivals, Rate};
use ttft_model::{
    Arrival, Budget, Endpoint, Load, Nanos, Outcome, Plan, Prompt, Record, Share, Stage, Stop, Workload,
};

use crate::run::{closed, engine, ms, numbers, plan, play, stage};
use crate::scripted::{hang, serve};

/// Tokens that the engine counts around a prompt.
const TEMPLATE: u64 = 6;

fn counted(records: &[Record]) -> impl Iterator<Item = &Record> {
    records.iter().filter(|record| !record.warmup)
}

/// A workload of so many words, with answers of so many tokens.
fn words(name: &str, words: u32, max_tokens: u32) -> Workload {
    let prompt = Prompt::Text(vec!["word"; words as usize].join(" "));
    Workload { name: name.to_owned(), prompt, max_tokens, ignore_eos: true, ..Workload::default() }
}

fn mixed(addr: SocketAddr, load: Load, requests: u64) -> Plan {
    let share = |(name, weight): (&str, f64)| Share { workload: name.to_owned(), weight };
    let mix = [("short", 3.0), ("long", 1.0)].map(share).to_vec();
    let mut plan = plan(addr, vec![Stage { mix, ..stage(load, Some(requests), None) }]);
    plan.workloads = vec![words("short", 5, 1), words("long", 50, 3)];
    plan
}

#[test]
fn each_workload_has_its_share_whatever_the_workers() {
    let engine = engine(0.5, 0.0);
    let loads = [closed(6), Load::open(2_000.0, Arrival::Poisson)];
    for load in loads {
        let mut by_number = Vec::new();
        for workers in [1, 3] {
            let mut told = play(mixed(engine.addr(), load.clone(), 400), workers);
            told.records.sort_by_key(|record| record.seq);
            assert_eq!(numbers(&told.records), (0..400).collect::<Vec<_>>());
            for record in &told.records {
                assert_eq!(record.outcome(), Outcome::Ok);
                let asked = [(5, 1), (50, 3)][record.workload as usize];
                let usage = record.answer.usage;
                // The salt stands in front as one more word.
                let words = usage.input.unwrap() - TEMPLATE;
                assert!(
                    (asked.0..=asked.0 + 1).contains(&words) && usage.output == Some(asked.1),
                    "{usage:?}"
                );
            }
            let of: Vec<u32> = told.records.iter().map(|record| record.workload).collect();
            let short = of.iter().filter(|workload| **workload == 0).count();
            assert!((260..=340).contains(&short), "{short} of 400 where 300 are expected");
            by_number.push(of);
        }
        assert_eq!(by_number[0], by_number[1], "which request is of which workload, the seed says");
    }
}

#[test]
fn users_think_between_answer_and_request() {
    let engine = engine(1.0, 0.0);
    for think in ["60ms", "uniform:40ms:80ms"] {
        let load = Load::Closed { concurrency: 3, ramp_up: ms(0), think_time: Some(think.parse().unwrap()) };
        let told = play(plan(engine.addr(), vec![stage(load, Some(15), None)]), 2);
        assert_eq!(numbers(&told.records), (0..15).collect::<Vec<_>>());
        let window = &told.windows[0];
        // Five rounds have four pauses between them; a user that pauses less takes the place of one that pauses more.
        let took = window.end.unwrap() - window.start;
        assert!(took >= ms(4 * 40).0, "{think}: {took:?}");
        let mut records = told.records;
        records.sort_by_key(|record| record.phases.started);
        // Nobody starts again before the shortest pause after the first answer has passed.
        let first_end = records.iter().map(|record| record.finished).min().unwrap();
        assert!(records[3].phases.started - first_end >= ms(40).0);
        assert!(records.iter().all(|record| record.phases.scheduled <= record.phases.started));
    }
}

#[test]
fn a_thinking_user_does_not_hold_up_the_stages_end() {
    let engine = engine(1.0, 0.0);
    let load = Load::Closed { concurrency: 2, ramp_up: ms(0), think_time: Some("1h".parse().unwrap()) };
    let told = play(plan(engine.addr(), vec![stage(load, None, Some(ms(150)))]), 1);
    assert_eq!((told.records.len(), told.interrupted), (2, false));
    let window = &told.windows[0];
    assert!(window.end.unwrap() - window.start >= ms(150).0);
}

#[test]
fn a_rate_that_changes_is_kept_arrival_by_arrival() {
    let engine = engine(0.5, 0.0);
    for (arrival, steps) in
        [(Arrival::Poisson, None), (Arrival::Constant, Some(4)), (Arrival::Gamma(0.5), None)]
    {
        let load =
            Load::Open { rate: 20.0, rate_to: Some(400.0), rate_steps: steps, arrival, max_in_flight: None };
        let plan = plan(engine.addr(), vec![stage(load, None, Some(ms(600)))]);
        let rate = Rate::changing(20.0, 400.0, 0.6, steps);
        let due: Vec<Nanos> =
            Arrivals::new(rate, arrival, plan.seed).take_while(|at| *at < ms(600).0).collect();
        let mut told = play(plan, 2);
        told.records.sort_by_key(|record| record.seq);
        let start = told.windows[0].start;
        let sent: Vec<Nanos> = told.records.iter().map(|r| r.phases.scheduled - start).collect();
        assert_eq!(sent, due, "{arrival:?}");
        let half = sent.iter().filter(|at| **at < ms(300).0).count();
        assert!(half * 2 < sent.len(), "{half} of {} in the first half", sent.len());
        assert_eq!(told.windows[0].reached, start + ms(600).0, "it has no steady state");
    }
}

#[test]
fn a_ramp_that_ends_by_a_count_takes_as_long_as_that_needs() {
    let load = Load::Open {
        rate: 10.0,
        rate_to: Some(30.0),
        rate_steps: None,
        arrival: Arrival::Constant,
        max_in_flight: None,
    };
    let rate = Rate::of(&load, &Stop { requests: Some(100), duration: None }).unwrap();
    assert_eq!(rate, Rate::changing(10.0, 30.0, 5.0, None));
}

#[test]
fn nothing_is_sent_while_the_server_settles() {
    let engine = engine(1.0, 0.0);
    let stages = vec![stage(closed(2), Some(6), None), stage(closed(2), Some(6), None)];
    let mut plan = plan(engine.addr(), stages);
    plan.warmup = 3;
    plan.settle = ms(200);
    let told = play(plan, 2);
    assert_eq!(
        told.news,
        ["warm-up", "records", "stage 0", "records", "settling before 1", "stage 1", "records"]
    );
    assert!(told.windows[1].start - told.windows[0].end.unwrap() >= ms(200).0);
}

#[test]
fn a_run_that_is_stopped_does_not_settle() {
    let stages = vec![stage(closed(1), Some(5), None), stage(closed(1), Some(5), None)];
    let mut plan = plan(serve(hang), stages);
    plan.settle = ms(3_600_000);
    let running = crate::run::begin(plan, 1);
    running.stop.at_once();
    assert!(crate::run::finish(running).interrupted);
}

#[test]
fn a_budget_of_tokens_is_never_exceeded_and_nearly_used() {
    let engine = engine(1.0, 0.0);
    for load in [closed(4), Load::open(500.0, Arrival::Constant)] {
        let mut plan = plan(engine.addr(), vec![stage(load, Some(100_000), None)]);
        plan.workloads = vec![words("default", 20, 30)];
        plan.warmup = 3;
        plan.budget = Budget { max_total_tokens: Some(3_000), ..Budget::default() };
        let told = play(plan, 2);
        let usage =
            |record: &Record| record.answer.usage.input.unwrap() + record.answer.usage.output.unwrap();
        let used: u64 = told.records.iter().map(usage).sum();
        assert!(used <= 3_000, "{used}");
        assert!(used > 2_000, "{used} of 3000 tokens, and no more than a few requests could be under way");
        assert!(told.interrupted && told.spent.as_ref().is_some_and(|why| why.contains("3000 tokens")));
        assert!(told.records.iter().all(|record| record.outcome() == Outcome::Ok), "in order");
        assert!(told.records.iter().any(|record| record.warmup), "the warm-up counts too");
    }
}

#[test]
fn a_budget_may_allow_nothing() {
    let engine = engine(1.0, 0.0);
    let mut plan = plan(engine.addr(), vec![stage(closed(2), Some(10), None)]);
    plan.budget = Budget { max_cost: Some(0.000_001), price_out: Some(60.0), ..Budget::default() };
    let told = play(plan, 1);
    assert!(told.records.is_empty() && told.interrupted);
    assert!(told.spent.unwrap().contains("a cost of 0.000001"));
}

#[test]
fn two_endpoints_and_two_models_in_one_run() {
    let engines = [engine(1.0, 0.0), engine(1.0, 0.0)];
    let mut plan = plan(engines[0].addr(), Vec::new());
    plan.endpoints.push(Endpoint {
        name: "other".to_owned(),
        url: format!("http://{}/v1/chat/completions", engines[1].addr()),
        model: Some("there".to_owned()),
        ..plan.endpoints[0].clone()
    });
    let at = |endpoint: Option<&str>, model: Option<&str>| Stage {
        endpoint: endpoint.map(str::to_owned),
        model: model.map(str::to_owned),
        ..stage(closed(3), Some(12), None)
    };
    plan.stages =
        vec![at(None, None), at(None, Some("big")), at(Some("other"), None), at(Some("default"), None)];
    plan.warmup = 2;
    let told = play(plan, 2);
    assert!(told.records.iter().all(|record| record.outcome() == Outcome::Ok));
    for index in 0..4 {
        assert_eq!(counted(&told.records).filter(|record| record.stage == index).count(), 12);
    }
    // One warm-up request for each thing that is asked, though two were wanted; each told to be of its first stage.
    let mut warm: Vec<u32> = told.records.iter().filter(|r| r.warmup).map(|r| r.stage).collect();
    warm.sort_unstable();
    assert_eq!(warm, [0, 1, 2]);
    // Connections are numbered over both, and each engine saw its own stages.
    let of = |stages: &[u32]| -> std::collections::BTreeSet<u64> {
        told.records.iter().filter(|r| stages.contains(&r.stage)).map(|r| r.connection.id).collect()
    };
    assert!(of(&[0, 1, 3]).is_disjoint(&of(&[2])));
    let models = |stage: u32| {
        let served = counted(&told.records).filter(move |record| record.stage == stage);
        served.filter_map(|record| record.answer.model.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_ne!(models(0), models(1));
    let [first, second] = engines.map(|engine| engine.stop().unwrap().requests);
    assert_eq!((first, second), (36 + 2, 12 + 1));
}
