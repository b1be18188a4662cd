//! The engine in virtual time: no socket, no clock.

use std::collections::HashMap;
use std::sync::Arc;

use ttft_model::Nanos;

use super::{Ask, Engine, Finish, JobId, Token};
use crate::Profile;
use crate::random::{Random, hash};

/// Costs in round numbers: a step of 10 ms, 1 ms per prompt token, 1 ms per decoding sequence.
fn engine(limits: &str) -> Engine {
    engine_with(limits, "")
}

fn engine_with(limits: &str, more: &str) -> Engine {
    let defaults = [
        ("max_num_seqs", "8"),
        ("max_num_batched_tokens", "100"),
        ("block_size", "10"),
        ("num_blocks", "100"),
        ("prefix_cache", "true"),
    ];
    let given: HashMap<&str, &str> = limits.split(',').filter_map(|l| l.split_once('=')).collect();
    let limits =
        defaults.map(|(name, value)| format!("{name} = {}", given.get(name).unwrap_or(&value))).join("\n");
    let text = format!(
        "about='x'\nmax_model_len=200\noutput={{median=9,sigma=0}}\n[batching]\n{limits}\n\
         step_ms=10\nprefill_ms=1\ndecode_ms_per_seq=1\n{more}"
    );
    Engine::new(&Profile::parse("test", &text).unwrap(), 1)
}

fn job(n: u32) -> JobId {
    JobId { slot: n, serial: n + 1 }
}

/// A prompt of its own, in blocks of 10.
fn ask(prompt: u32, output: u32, salt: u64) -> Ask {
    let mut state = salt;
    let blocks: Arc<[u64]> = (0..prompt / 10)
        .map(|_| {
            state = hash(state, b"block");
            state
        })
        .collect();
    Ask { prompt, blocks, output, finish: Finish::Length }
}

/// Something done to the engine at an instant.
type Event = Box<dyn FnOnce(&mut Engine, Nanos)>;

/// Runs until nothing is due, with what happens at given instants; all tokens.
fn run(engine: &mut Engine, mut events: Vec<(i64, Event)>) -> Vec<Token> {
    let mut tokens = Vec::new();
    events.reverse();
    let mut now = Nanos::ZERO;
    loop {
        while events.last().is_some_and(|(ms, _)| Nanos::from_millis(*ms) <= now) {
            let (_, event) = events.pop().unwrap();
            event(engine, now);
        }
        let due = engine.step(now, &mut tokens);
        let next = events.last().map(|(ms, _)| Nanos::from_millis(*ms));
        match [due, next].into_iter().flatten().min() {
            Some(next) => now = next,
            None => return tokens,
        }
    }
}

fn submit(n: u32, ask: Ask) -> Event {
    Box::new(move |engine, now| engine.submit(job(n), now, [ask]))
}

/// When a job's tokens came, in milliseconds.
fn times(tokens: &[Token], n: u32) -> Vec<i64> {
    tokens.iter().filter(|t| t.job == job(n)).map(|t| t.at.0 / 1_000_000).collect()
}

#[test]
fn one_request_takes_a_prefill_step_and_then_a_step_a_token() {
    let tokens = run(&mut engine(""), vec![(5, submit(0, ask(50, 3, 1)))]);
    assert_eq!(times(&tokens, 0), [65, 76, 87]);
    assert_eq!(tokens.iter().map(|t| t.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(tokens.iter().map(|t| t.finish).collect::<Vec<_>>(), [None, None, Some(Finish::Length)]);
}

#[test]
fn a_long_prompt_is_cut_into_chunks_between_which_others_decode() {
    let tokens = run(&mut engine(""), vec![(0, submit(0, ask(10, 30, 1))), (20, submit(1, ask(180, 1, 2)))]);
    // Step 1: 10 ms + 10 tokens. Then 99 prompt tokens beside one decode, then the other 81.
    assert_eq!(times(&tokens, 0)[..3], [20, 20 + 10 + 99 + 1, 130 + 10 + 81 + 1]);
    assert_eq!(times(&tokens, 1), [222]);
}

#[test]
fn requests_over_the_limit_wait_in_order() {
    let mut engine = engine("max_num_seqs=1");
    let tokens = run(
        &mut engine,
        vec![(0, submit(0, ask(10, 2, 1))), (1, submit(1, ask(10, 2, 2))), (2, submit(2, ask(10, 2, 3)))],
    );
    let order: Vec<u32> = tokens.iter().map(|t| t.job.slot).collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2]);
    assert_eq!(times(&tokens, 1), [31 + 20, 31 + 20 + 11]);
    assert_eq!(engine.timings(job(1)).scheduled, Some(Nanos::from_millis(31)));
    let page = engine.metrics().page("m");
    assert!(
        page.contains("vllm:request_queue_time_seconds_sum{engine=\"0\",model_name=\"m\"} 0.09"),
        "{page}"
    );
}

#[test]
fn without_room_the_youngest_is_preempted_and_computed_again() {
    // Twenty blocks of 10; two requests that grow to 110 tokens each.
    let mut engine = engine("num_blocks=20,prefix_cache=false");
    let tokens = run(&mut engine, vec![(0, submit(0, ask(85, 25, 1))), (1, submit(1, ask(85, 25, 2)))]);
    assert_eq!((times(&tokens, 0).len(), times(&tokens, 1).len()), (25, 25));
    let gaps = |n| times(&tokens, n).windows(2).map(|w| w[1] - w[0]).max().unwrap();
    assert!(gaps(0) < 120, "the older one goes on: {}", gaps(0));
    assert!(gaps(1) > 100, "the younger one waits and is computed again: {}", gaps(1));
    assert_eq!(engine.metrics().preemptions, 1);
    assert!(engine.metrics().kv_usage.abs() < 1e-9, "all blocks are given back");
}

#[test]
fn a_known_prefix_is_not_computed_again() {
    let shared = || ask(55, 1, 7);
    let mut engine = engine("");
    let tokens = run(&mut engine, vec![(0, submit(0, shared())), (100, submit(1, shared()))]);
    assert_eq!(times(&tokens, 0), [65]);
    assert_eq!(times(&tokens, 1), [100 + 10 + 5]);
    assert_eq!(engine.timings(job(1)).cached, 50);
    assert_eq!((engine.metrics().prefix_queries, engine.metrics().prefix_hits), (110, 50));
    // The last token is computed even if every block is known.
    let tokens = run(&mut engine, vec![(200, submit(2, ask(50, 1, 7)))]);
    assert_eq!(engine.timings(job(2)).cached, 40);
    assert_eq!(times(&tokens, 2), [220]);
}

#[test]
fn choices_share_the_prompt() {
    let mut engine = engine("");
    let both = vec![ask(50, 2, 3), ask(50, 3, 3)];
    let tokens = run(&mut engine, vec![(0, Box::new(move |engine, now| engine.submit(job(0), now, both)))]);
    // 50 tokens for the first choice, 10 for the second, whose other 40 it finds.
    assert_eq!(
        tokens.iter().map(|t| (t.choice, t.number)).collect::<Vec<_>>(),
        [(0, 1), (1, 1), (0, 2), (1, 2), (1, 3)]
    );
    assert_eq!(times(&tokens, 0), [70, 70, 82, 82, 93]);
}

#[test]
fn an_aborted_request_gives_its_place_and_its_blocks_back() {
    let mut engine = engine("max_num_seqs=1");
    let tokens = run(
        &mut engine,
        vec![
            (0, submit(0, ask(10, 100, 1))),
            (1, submit(1, ask(10, 2, 2))),
            (2, submit(2, ask(10, 2, 3))),
            (40, Box::new(|engine: &mut Engine, _| engine.abort(job(0)))),
            (41, Box::new(|engine: &mut Engine, _| engine.abort(job(1)))),
        ],
    );
    assert_eq!(times(&tokens, 0), [20, 31]);
    assert!(times(&tokens, 1).is_empty());
    assert_eq!(times(&tokens, 2), [42 + 20, 42 + 31]);
    assert_eq!(engine.metrics().running + engine.metrics().waiting, 0);
    assert!(engine.metrics().kv_usage.abs() < 1e-9);
}

#[test]
fn fixed_times_hold_whatever_the_load() {
    let profile = Profile::load("fixed").unwrap().with_times(Some(50.0), Some(5.0)).unwrap();
    let mut engine = Engine::new(&profile, 0);
    let jobs = (0..100).map(|n| (i64::from(n / 30), submit(n, ask(10, 3, 1)))).collect();
    let tokens = run(&mut engine, jobs);
    for n in 0..100 {
        let start = i64::from(n / 30) + 50;
        assert_eq!(times(&tokens, n), [start, start + 5, start + 10], "{n}");
    }
}

#[test]
fn jitter_is_drawn_once_a_request_and_repeats_with_the_seed() {
    let text =
        "about='x'\nmax_model_len=200\noutput={median=9,sigma=0}\n[timed]\nttft_ms=100\nitl_ms=10\nsigma=0.3";
    let profile = Profile::parse("test", text).unwrap();
    let run_once = |seed| {
        let mut engine = Engine::new(&profile, seed);
        run(&mut engine, (0..20).map(|n| (0, submit(n, ask(10, 3, 1)))).collect())
    };
    let tokens = run_once(5);
    let firsts: Vec<i64> = (0..20).map(|n| times(&tokens, n)[0]).collect();
    assert!(firsts.iter().any(|t| *t < 90) && firsts.iter().any(|t| *t > 110), "{firsts:?}");
    for n in 0..20 {
        let own: Vec<i64> = tokens.iter().filter(|t| t.job == job(n)).map(|t| t.at.0).collect();
        assert_eq!(own[2] - own[1], own[1] - own[0]);
    }
    assert_eq!(tokens, run_once(5));
    assert_ne!(tokens, run_once(6));
}

#[test]
fn without_waiting_all_get_their_tokens_in_turn() {
    let mut engine = Engine::new(&Profile::load("instant").unwrap(), 0);
    let tokens = run(&mut engine, vec![(0, submit(0, ask(1, 3, 1))), (0, submit(1, ask(1, 2, 1)))]);
    assert_eq!(tokens.iter().map(|t| t.job.slot).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
}

/// A closed loop of users with the default workload of a run, in virtual time: times to first token in
/// milliseconds, without those of the start.
fn closed_loop(users: u32, requests: usize, prompt: u32, output: std::ops::RangeInclusive<u32>) -> Vec<f64> {
    let profile = Profile::load("default").unwrap();
    let mut engine = Engine::new(&profile, 42);
    let mut random = Random::new(9);
    let mut started: HashMap<u32, Nanos> = HashMap::new();
    // The user's own time between the end of an answer and the next request.
    let turnaround = Nanos(500_000);
    let mut starts: Vec<(Nanos, u32)> = (0..users)
        .map(|user| (Nanos::from_millis(i64::from(user) * 4_000 / i64::from(users)), user))
        .collect();
    let (mut ttft, mut tokens, mut serial) = (Vec::new(), Vec::new(), 0);
    let mut due = None;
    while ttft.len() < requests {
        let start = starts.iter().map(|(at, _)| *at).min();
        let now = [due, start].into_iter().flatten().min().unwrap();
        for (at, user) in starts.extract_if(.., |(at, _)| *at <= now) {
            serial += 1;
            started.insert(user, at);
            let length =
                output.start() + (random.unit() * f64::from(output.end() - output.start() + 1)) as u32;
            let ask = Ask { prompt, blocks: Arc::new([]), output: length, finish: Finish::Length };
            engine.submit(JobId { slot: user, serial }, at, [ask]);
        }
        due = engine.step(now, &mut tokens);
        for token in tokens.drain(..) {
            if token.number == 1 {
                ttft.push((token.at - started[&token.job.slot]).as_millis_f64());
            }
            if token.finish.is_some() {
                starts.push((now + turnaround, token.job.slot));
            }
        }
    }
    let mut ttft = ttft.split_off(2 * users as usize);
    ttft.sort_by(f64::total_cmp);
    ttft
}

fn percentile(sorted: &[f64], p: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * p).round() as usize]
}

#[test]
fn the_default_profile_alone_takes_what_it_promises() {
    let alone = |prompt| percentile(&closed_loop(1, 20, prompt, 64..=128), 0.5);
    assert!((190.0..215.0).contains(&alone(506)), "{}", alone(506));
    assert!((1_700.0..1_900.0).contains(&alone(4_006)), "{}", alone(4_006));
}

#[test]
fn the_default_profile_has_its_tail_knee_at_16_and_queues_at_64() {
    let level = |users| {
        let ttft = closed_loop(users, 2_000, 506, 64..=128);
        (percentile(&ttft, 0.5), percentile(&ttft, 0.99))
    };
    let [one, eight, sixteen, many] = [1, 8, 16, 64].map(level);
    let all = format!("p50 and p99 at 1, 8, 16, 64: {one:?} {eight:?} {sixteen:?} {many:?}");
    assert!(eight.0 < 1.1 * one.0 && eight.1 < 1.6 * one.1, "flat up to 8; {all}");
    assert!(sixteen.0 < 1.1 * eight.0 && sixteen.1 > 2.0 * eight.1, "at 16 only the tail grows; {all}");
    assert!(many.0 > 10.0 * sixteen.0, "64 queue; {all}");
}

#[test]
fn under_pressure_one_admission_waits_and_the_others_go_on() {
    let mut engine = engine_with("", "pressure={from_seqs=1,one_in=1,wait_ms=100}");
    let tokens = run(&mut engine, vec![(0, submit(0, ask(10, 5, 1))), (1, submit(1, ask(10, 1, 2)))]);
    assert_eq!(times(&tokens, 0), [20, 31, 42, 53, 64]);
    assert_eq!(times(&tokens, 1), [120 + 20]);
}

#[test]
fn the_first_prompts_find_a_cold_engine() {
    let mut engine = engine_with("", "cold={prompts=2,ms=100}");
    let asks = (0..3).map(|i| (i64::from(i) * 500, submit(i, ask(10, 1, u64::from(i)))));
    let tokens = run(&mut engine, asks.collect());
    let first = |n: u32| times(&tokens, n)[0];
    assert_eq!([first(0), first(1), first(2)], [120, 620, 1020]);
}
