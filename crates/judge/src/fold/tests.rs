//! Stages made up record by record, folded, and looked at.

use ttft_model::{
    ApiKey, Channel, ClockInfo, Endpoint, Failure, Load, Prompt, Share, Span, Stamp, StampSource, Stop,
    Timeouts, TokenSource,
};

use super::*;
use crate::Verdict;

pub(crate) fn at(ms: i64) -> Nanos {
    Nanos::from_millis(ms)
}

/// A run of one closed stage of `users`, reached at 1 s, dry at 9 s, ended at 10 s.
pub(crate) fn run(users: u32, slo: &[&str]) -> Run {
    let span = |s: i64| Span(at(s * 1000));
    Run {
        schema: "ttft.run/1".to_owned(),
        version: "0.1.0".to_owned(),
        name: "test".to_owned(),
        command: Vec::new(),
        host: "host".to_owned(),
        kernel: "kernel".to_owned(),
        cpus: 2,
        clock: ClockInfo {
            receive: StampSource::Kernel,
            transmit: false,
            wall_steps: 0,
            note: String::new(),
            realtime: false,
        },
        zero_unix_ns: 0,
        zero_monotonic_ns: 0,
        ended_ns: Some(10_000_000_000),
        interrupted: false,
        stopped_by: None,
        server: None,
        governor: None,
        stages: vec![StageWindow {
            stage: 0,
            start: at(0),
            reached: at(1000),
            dry: Some(at(9000)),
            end: Some(at(10_000)),
            worker_cpu_ns: vec![1_000_000_000, 2_000_000_000],
            max_in_flight: users,
            ..StageWindow::default()
        }],
        plan: Plan {
            name: "test".to_owned(),
            seed: 1,
            warmup: 0,
            drain: span(1),
            slo: slo.iter().map(|&text| text.to_owned()).collect(),
            endpoints: vec![Endpoint {
                url: "http://localhost/v1/chat/completions".to_owned(),
                model: Some("m".to_owned()),
                api_key: ApiKey::None,
                ..Endpoint::default()
            }],
            timeouts: Timeouts { connect: span(1), first_token: span(9), idle: span(9), total: span(9) },
            workloads: vec![Workload {
                name: "short".to_owned(),
                prompt: Prompt::Tokens(9),
                max_tokens: 10,
                ..Workload::default()
            }],
            stages: vec![Stage {
                name: "c".to_owned(),
                mix: Share::whole("short"),
                load: Load::closed(users),
                stop: Stop { requests: None, duration: Some(span(9)) },
                ..Stage::default()
            }],
            ..Plan::default()
        },
    }
}

/// An ok request of ten tokens, the first after `ttft`, each `gap` after the one before.
pub(crate) fn ok(started: i64, ttft: i64, gap: i64) -> Record {
    let stamp = |t: i64| Some(Stamp { kernel: Some(at(t)), user: at(t) + Nanos(30_000) });
    let mut r = Record::default();
    (r.phases.scheduled, r.phases.started) = (at(started), at(started));
    r.phases.sent_first = Some(at(started) + Nanos(20_000));
    r.phases.sent = r.phases.sent_first;
    r.connection.reused = true;
    r.answer.first_token = stamp(started + ttft);
    r.answer.last_token = stamp(started + ttft + 9 * gap);
    for i in 0..10 {
        r.answer.events.push(at(started + ttft + i * gap), 1, Channel::Text, false);
    }
    r.answer.usage.output = Some(10);
    r.answer.usage.input = Some(100);
    r.token_source = TokenSource::Usage;
    let facts = &mut r.answer.facts;
    (facts.streamed, facts.terminator, facts.finish) = (true, true, true);
    r.answer.outcome = Some(Outcome::Ok);
    r.finished = at(started + ttft + 9 * gap);
    r
}

pub(crate) fn failed(started: i64, class: ErrorClass, message: &str) -> Record {
    let mut r = Record { finished: at(started + 10), ..Record::default() };
    (r.phases.scheduled, r.phases.started) = (at(started), at(started));
    r.answer.outcome = Some(Outcome::Error);
    r.answer.failure = Some(Failure::new(class, message));
    r
}

/// Two users, each a request of 100 ms after another: 40 ms to the first token, then a gap of 6 ms and a pause of 6.
fn steady_load() -> Vec<Record> {
    (0..2).flat_map(|_| (0..100).map(|i| ok(i * 100, 40, 6))).collect()
}

fn fold(run: &Run, records: &[Record]) -> StageSummary {
    let mut fold = RunFold::new(run).unwrap();
    for r in records {
        fold.push(r);
    }
    fold.finish(&[]).stages.remove(0)
}

fn near(got: Option<f64>, wanted: f64) {
    assert!(
        got.is_some_and(|got| (got - wanted).abs() < 1e-6 * wanted.abs().max(1.0)),
        "{got:?} for {wanted}"
    );
}

#[test]
fn a_steady_stage() {
    let run = run(2, &[]);
    let mut records = steady_load();
    records.push(Record { warmup: true, ..ok(0, 9000, 1) });
    let stage = fold(&run, &records);
    assert_eq!((stage.window, stage.window_reason), (WindowChoice::Steady, None));
    assert_eq!((stage.requests.sent, stage.requests.ok, stage.requests.warmup), (200, 200, 1));
    let ttft = &stage.latency_ms["ttft"];
    assert_eq!(
        (ttft.n, ttft.p50, ttft.max),
        (162, Some(40.0), Some(40.0)),
        "81 starts from 1 s to 9 s, each user"
    );
    assert_eq!(stage.latency_ms["tpot"].p99, Some(6.0));
    assert_eq!(stage.latency_ms["itl"].n, 162 * 9);
    assert_eq!(stage.windows.whole.latency_ms["ttft"].n, 200);
    assert_eq!(stage.latency_ms["connect_time"].excluded, 162);
    near(stage.throughput.requests_per_s, 20.0);
    near(stage.throughput.output_tokens_per_s, 200.0);
    near(stage.throughput.output_tokens_per_s_per_user, 1000.0 / 6.0);
    near(stage.windows.steady.littles_law.map(|l| l.ratio), 1.0);
    near(stage.client.cpu_percent, 20.0);
    assert_eq!((stage.client.verdict, stage.client.reasons.len()), (Verdict::Ok, 0));
    assert_eq!(stage.client.clock, "kernel");
    assert_eq!(stage.tokens.output.total, Some(1620));
}

#[test]
fn order_of_records_does_not_matter() {
    let run = run(2, &["ttft_p95<1s"]);
    let mut records = steady_load();
    records.push(failed(2000, ErrorClass::Reset, "a"));
    records.push(failed(3000, ErrorClass::Reset, "b"));
    let forward = fold(&run, &records);
    records.reverse();
    let mut backward = fold(&run, &records);
    // Means differ in the last bit by the order of their sum.
    backward.latency_ms.clone_from(&forward.latency_ms);
    backward.windows.clone_from(&forward.windows);
    backward.throughput = forward.throughput;
    backward.client = forward.client.clone();
    backward.tokens = forward.tokens.clone();
    assert_eq!(forward, backward);
}

#[test]
fn failures_count_against_and_cancelled_do_not() {
    let run = run(2, &["ttft_p50<100ms", "ttft_p95<100ms", "error_rate<1%"]);
    let mut records = steady_load();
    for i in 0..18 {
        let message = if i < 12 { "peer \u{1b}[31mleft" } else { "gone" };
        records.push(failed(2000 + i * 100, ErrorClass::Reset, message));
    }
    records.push(Record { finished: at(9500), ..Record::default() });
    let stage = fold(&run, &records);
    assert_eq!((stage.requests.sent, stage.requests.failed), (219, 18));
    assert_eq!(stage.requests.outcomes["cancelled"], 1);
    assert_eq!(stage.requests.errors["reset"], 18);
    assert_eq!(
        (stage.requests.failures[0].message_n, stage.requests.failures[0].message.as_str()),
        (12, "peer \u{1b}[31mleft")
    );
    let ttft = &stage.latency_ms["ttft"];
    assert_eq!((ttft.n, ttft.p95), (162, Some(40.0)));
    assert!(ttft.pessimistic["p95"].0.is_infinite() && ttft.pessimistic["p50"].0 < 41.0);
    let met: Vec<_> = stage.goodput.slo.iter().map(|r| r.met).collect();
    assert_eq!(met, [Some(true), Some(false), Some(false)]);
    assert_eq!((stage.goodput.good, stage.goodput.of), (162, 180));
    assert_eq!(stage.goodput.attainment, Some(0.9));
}

#[test]
fn goodput_counts_requests_that_met_all() {
    let run = run(2, &["ttft<50ms", "tpot_p99<10ms"]);
    let mut records = steady_load();
    for r in records.iter_mut().filter(|r| r.phases.started.0 % 1_000_000_000 == 0) {
        r.answer.first_token = r.answer.first_token.map(|s| Stamp { kernel: Some(s.at() + at(20)), ..s });
    }
    records[50].answer.usage.output = None;
    let stage = fold(&run, &records);
    // Eighteen starts at full seconds from 1 s to 9 s are late, one of which also lacks its tokens.
    assert_eq!((stage.goodput.good, stage.goodput.of), (144, 162));
    assert_eq!(stage.goodput.slo[0].met, Some(false));
    assert_eq!(stage.goodput.slo[0].requests_met, Some(144));
    assert_eq!(stage.goodput.slo[1].requests_met, Some(161));
    assert_eq!(stage.latency_ms["tpot"].excluded, 1);
    assert!(stage.goodput.requests_per_s < stage.throughput.requests_per_s);
}

#[test]
fn without_a_steady_window_the_whole_is_shown_and_said() {
    let mut run = run(2, &[]);
    run.stages[0].dry = Some(at(500));
    let stage = fold(&run, &steady_load());
    assert_eq!(stage.window, WindowChoice::Whole);
    assert!(stage.window_reason.unwrap().contains("never held"));
    assert_eq!(stage.latency_ms["ttft"].n, 200);
    run.stages[0].dry = Some(at(1090));
    let stage = fold(&run, &[ok(1000, 40, 6), ok(1010, 800, 6), ok(1000, 40, 2)]);
    assert_eq!(stage.window, WindowChoice::Whole, "one of two users was done");
}

#[test]
fn a_killed_run_ends_with_its_last_request() {
    let mut run = run(2, &[]);
    (run.stages[0].dry, run.stages[0].end) = (None, None);
    let stage = fold(&run, &steady_load());
    assert_eq!(stage.window, WindowChoice::Steady);
    near(Some(stage.windows.whole.end_s), 9.994);
    near(stage.throughput.output_tokens_per_s, 1800.0 / 8.994);
}

#[test]
fn nothing_at_all() {
    let run = run(2, &["ttft_p95<1s"]);
    let stage = fold(&run, &[]);
    assert_eq!((stage.requests.sent, stage.latency_ms["ttft"].n), (0, 0));
    assert_eq!(stage.goodput.slo[0].met, None);
    let json = serde_json::to_string(&Summary::new(&run, vec![stage.clone()])).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&json).unwrap().stages[0], stage);
    assert!(RunFold::new(&super::tests::run(1, &["nonsense<1s"])).is_err());
}

/// The verdict after `change` of every record of a steady load, and the reasons.
fn verdict(change: impl Fn(&mut Record), window: impl Fn(&mut Run)) -> (Verdict, String) {
    let mut run = run(2, &[]);
    window(&mut run);
    let mut records = steady_load();
    records.iter_mut().for_each(change);
    let client = fold(&run, &records).client;
    (client.verdict, client.reasons.join("\n"))
}

#[track_caller]
fn says((verdict, reasons): (Verdict, String), wanted: Verdict, part: &str) {
    assert_eq!(verdict, wanted, "{reasons}");
    assert!(reasons.contains(part), "{reasons}");
}

fn late(r: &mut Record, by: Nanos) {
    r.answer.first_token = r.answer.first_token.map(|s| Stamp { user: s.at() + by, ..s });
}

#[test]
fn an_overloaded_client_with_kernel_stamps_is_suspect() {
    says(verdict(|r| late(r, at(7)), |_| {}), Verdict::Suspect, "it read first tokens 7.00 ms late");
}

#[test]
fn coalesced_first_tokens() {
    let coalesce = |r: &mut Record| r.answer.facts.first_token_coalesced = true;
    says(verdict(coalesce, |_| {}), Verdict::Suspect, "the sender put them together");
    let and_late = |r: &mut Record| {
        coalesce(r);
        late(r, at(7));
    };
    says(verdict(and_late, |_| {}), Verdict::Invalid, "no accuracy is claimed");
    let fast = |r: &mut Record| {
        coalesce(r);
        let first = r.answer.events.at[0];
        (0..10).for_each(|i| r.answer.events.at[i as usize] = first + Nanos(i * 200_000));
    };
    says(verdict(fast, |_| {}), Verdict::Suspect, "unavoidable at 200 µs between tokens");
    let buffered = |r: &mut Record| {
        coalesce(r);
        r.answer.facts.all_in_one_read = true;
    };
    assert_eq!(verdict(buffered, |_| {}).0, Verdict::Ok, "a proxy's doing is not the client's");
}

#[test]
fn without_kernel_stamps() {
    let user = |r: &mut Record| r.answer.first_token = r.answer.first_token.map(|s| Stamp::user(s.user));
    says(verdict(user, |_| {}), Verdict::Suspect, "no first token has a kernel stamp");
    let lagging = |r: &mut Record| {
        user(r);
        r.read_lag_max = Some(at(9));
    };
    says(verdict(lagging, |_| {}), Verdict::Invalid, "inside the figures");
}

#[test]
fn slow_to_send() {
    let sent_after =
        |us: i64| move |r: &mut Record| r.phases.sent_first = Some(r.phases.started + Nanos(us * 1000));
    says(verdict(sent_after(600), |_| {}), Verdict::Suspect, "600 µs (p99)");
    says(verdict(sent_after(3000), |_| {}), Verdict::Invalid, "3.00 ms (median)");
}

#[test]
fn an_open_loop_that_was_not_kept() {
    let open = |max| {
        move |run: &mut Run| {
            run.plan.stages[0].load = Load::Open {
                rate: 40.0,
                rate_to: None,
                rate_steps: None,
                arrival: ttft_model::Arrival::Constant,
                max_in_flight: max,
            };
        }
    };
    let lag = |by: i64| move |r: &mut Record| r.phases.scheduled = r.phases.started - at(by);
    says(
        verdict(lag(0), open(None)),
        Verdict::Suspect,
        "started 20.250 requests a second where 40 were asked",
    );
    says(verdict(lag(2), open(None)), Verdict::Suspect, "2.00 ms after they were due");
    says(verdict(lag(20), open(None)), Verdict::Invalid, "20.0 ms after they were due");
    says(verdict(lag(20), open(Some(2))), Verdict::Suspect, "read ttft_scheduled");
}

#[test]
fn a_replay_is_judged_as_an_open_loop_without_a_rate() {
    let trace = |max| {
        move |run: &mut Run| {
            let (path, format) = ("trace.csv".to_owned(), None);
            run.plan.stages[0].load =
                Load::Trace { path, format, speed: 2.0, smooth: false, max_in_flight: max };
        }
    };
    let lag = |by: i64| move |r: &mut Record| r.phases.scheduled = r.phases.started - at(by);
    assert_eq!(verdict(lag(0), trace(None)).0, Verdict::Ok);
    says(verdict(lag(20), trace(None)), Verdict::Invalid, "20.0 ms after they were due");
    says(verdict(lag(20), trace(Some(2))), Verdict::Suspect, "read ttft_scheduled");
}

#[test]
fn the_rest_of_the_clients_troubles() {
    let cpu = |ns: i64| move |run: &mut Run| run.stages[0].worker_cpu_ns = vec![ns, 0];
    says(verdict(|_| {}, cpu(9_000_000_000)), Verdict::Suspect, "90 % of its core");
    says(verdict(|_| {}, cpu(9_900_000_000)), Verdict::Invalid, "99 % of its core");
    says(verdict(|_| {}, |run| run.stages[0].max_in_flight = 1), Verdict::Suspect, "never more than 1");
    says(
        verdict(|r| r.doubt.add(ttft_model::Doubt::CLOCK_STEP), |_| {}),
        Verdict::Suspect,
        "wall clock stepped",
    );
    let mut records = steady_load();
    records.extend((0..20).map(|i| failed(i * 100, ErrorClass::Client, "no ports")));
    let client = fold(&run(2, &[]), &records).client;
    says((client.verdict, client.reasons.join("\n")), Verdict::Invalid, "20 requests failed");
}

#[test]
fn slow_first_requests_are_told_with_their_effect() {
    let run = run(2, &[]);
    let mut records = steady_load();
    for (i, r) in records.iter_mut().enumerate() {
        // Never two alike.
        let jitter = Nanos((i as i64 * 7_919 % 101) * 10_000);
        let slow = if r.phases.started < at(2000) { at(150) } else { Nanos(0) };
        let stamp = Stamp::user(r.answer.first_token.unwrap().at() + jitter + slow);
        r.answer.first_token = Some(stamp);
        r.seq = i as u64;
    }
    let mut fold = RunFold::new(&run).unwrap();
    for r in &records {
        fold.push(r);
    }
    let summary = fold.finish(&[]);
    assert_eq!(summary.contamination.len(), 1, "{:?}", summary.contamination);
    let effect = summary.contamination[0].effect.as_ref().unwrap();
    assert_eq!(effect["kind"], "slow_start");
    assert_eq!(effect["requests"], 20, "two users, from 1 s to 2 s");
    let p95 = |of: &str| effect["ttft_ms"][of]["p95"].as_f64().unwrap();
    assert!(p95("with") > 150.0 && p95("without") < 50.0, "{effect}");
    assert!(summary.knee.reason.starts_with("no sweep"), "{:?}", summary.knee);
}

#[test]
fn an_even_stream_is_a_good_experience() {
    let stage = fold(&run(2, &["ttft_p95<100ms", "tpot<10ms"]), &steady_load());
    let seen = stage.experience;
    assert_eq!((seen.stalls.n, seen.stalls.stalls, seen.reader.waiting_share), (162, 0, Some(0.0)));
    assert_eq!((seen.fluidity.first_token_ms, seen.fluidity.token_ms), (100.0, 10.0));
    assert_eq!((seen.fluidity.fluid_share, seen.fluidity.excluded), (Some(1.0), 0));
}

#[test]
fn a_queue_that_fills_is_told() {
    let run = run(40, &[]);
    let mut fold = RunFold::new(&run).unwrap();
    for i in 0..240 {
        let jitter = i * 7_919 % 23;
        let mut r = if i < 40 { ok(1000 + i, 60 + jitter, 2) } else { ok(1100 + i * 20, 200 + jitter, 2) };
        r.seq = i as u64;
        fold.push(&r);
    }
    let summary = fold.finish(&[]);
    let effect = summary.contamination[0].effect.as_ref().unwrap();
    assert_eq!((&effect["kind"], &effect["requests"]), (&"filling".into(), &40.into()), "{effect}");
}

#[test]
fn a_mix_is_told_by_its_parts_too() {
    let mut run = run(2, &["ttft<60ms"]);
    let workload = |name: &str| Workload { name: name.to_owned(), ..run.plan.workloads[0].clone() };
    run.plan.workloads = ["short", "long", "other"].map(workload).to_vec();
    let share = |(name, weight): (&str, f64)| Share { workload: name.to_owned(), weight };
    run.plan.stages[0].mix = [("long", 1.0), ("short", 4.0)].map(share).to_vec();
    let mut records = steady_load();
    for (i, r) in records.iter_mut().enumerate() {
        if i % 5 == 0 {
            *r = Record { workload: 1, ..ok(i as i64 % 100 * 100, 80, 2) };
        }
    }
    records.push(Record { warmup: true, workload: 1, ..ok(0, 9000, 1) });
    let stage = fold(&run, &records);
    assert_eq!((stage.workload.as_str(), stage.requests.sent, stage.parts.len()), ("long+short", 200, 2));
    let [long, short] = &stage.parts[..] else { panic!("{:?}", stage.parts) };
    assert_eq!((long.workload.as_str(), long.share, long.share_sent), ("long", 0.2, Some(0.2)));
    assert_eq!((short.requests.sent, short.requests.warmup, long.requests.warmup), (160, 0, 1));
    assert_eq!((long.latency_ms["ttft"].p50, short.latency_ms["ttft"].p50), (Some(80.0), Some(40.0)));
    assert_eq!((long.goodput.attainment, short.goodput.attainment), (Some(0.0), Some(1.0)));
    let sum =
        |of: fn(&Throughput) -> Option<f64>| of(&long.throughput).unwrap() + of(&short.throughput).unwrap();
    near(stage.throughput.requests_per_s, sum(|t| t.requests_per_s));
    near(stage.throughput.output_tokens_per_s, sum(|t| t.output_tokens_per_s));
    let n = stage.latency_ms["ttft"].n;
    assert_eq!(n, long.latency_ms["ttft"].n + short.latency_ms["ttft"].n);
}

#[test]
fn a_ramp_of_the_rate_is_judged_as_a_whole() {
    let mut run = run(2, &[]);
    run.plan.stages[0].load = Load::Open {
        rate: 1.0,
        rate_to: Some(9.0),
        rate_steps: None,
        arrival: ttft_model::Arrival::Poisson,
        max_in_flight: None,
    };
    let stage = fold(&run, &steady_load());
    assert_eq!((stage.window, stage.latency_ms["ttft"].n), (WindowChoice::Whole, 200));
    assert!(stage.window_reason.unwrap().contains("its rate changes all the time"));
}
