//! Runs that never were: records drawn from a fixed sequence, folded by `judge`.

use std::collections::BTreeMap;

use ttft_judge::server::{Levels, SourceStage};
use ttft_judge::{RunFold, Summary};
use ttft_model::{
    ApiKey, Channel, ClockInfo, Endpoint, ErrorClass, Failure, Load, Nanos, Outcome, Plan, Prompt, Record,
    Run, Share, Span, Stage, StageWindow, Stamp, StampSource, Stop, Timeouts, TokenSource, Workload,
};
use ttft_sources::{Distribution, Format, Measured, Quantile, Reading, Role, Window};

/// What the answers of a stage are like.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// Median TTFT.
    pub(super) ttft_ms: f64,
    /// Sigma of its logarithm.
    pub(super) spread: f64,
    /// Client's lag.
    pub(super) read_lag_ms: f64,
    pub(super) first_coalesced: bool,
    pub(super) one_read: bool,
    pub(super) counted: bool,
    /// From the first token to the first that is no reasoning.
    pub(super) reasoning_ms: i64,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            ttft_ms: 210.0,
            spread: 0.2,
            read_lag_ms: 0.035,
            first_coalesced: false,
            one_read: false,
            counted: true,
            reasoning_ms: 0,
        }
    }
}

/// One stage.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) name: String,
    pub(super) load: Load,
    pub(super) answer: Answer,
    pub(super) requests: u32,
    pub(super) failed: Vec<Record>,
    pub(super) send_lag_ms: i64,
    pub(super) cpu_percent: f64,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            name: "main".to_owned(),
            load: Load::closed(1),
            answer: Answer::default(),
            requests: 0,
            failed: Vec::new(),
            send_lag_ms: 0,
            cpu_percent: 12.0,
        }
    }
}

const TOKENS: i64 = 64;
const GAP_NS: i64 = 11_800_000;

fn ns(ms: f64) -> Nanos {
    Nanos((ms * 1e6).round() as i64)
}

impl Answer {
    /// An ok answer that was begun at that nanosecond.
    pub(super) fn record(&self, started: i64, ttft_ms: f64) -> Record {
        let kernel = |at: Nanos| Some(Stamp { kernel: Some(at), user: at + ns(self.read_lag_ms) });
        let first = Nanos(started) + ns(ttft_ms);
        let last = if self.one_read { first } else { first + Nanos((TOKENS - 1) * GAP_NS) };
        let mut r = Record { id_echoed: true, token_source: TokenSource::Usage, ..Record::default() };
        (r.phases.scheduled, r.phases.started) = (Nanos(started), Nanos(started));
        r.connection.reused = true;
        r.phases.sent_first = Some(Nanos(started + 42_000));
        r.phases.sent = r.phases.sent_first;
        r.phases.headers = kernel(Nanos(started + 6_000_000));
        r.answer.first_token = kernel(first);
        r.answer.first_answer = kernel(first + Nanos::from_millis(self.reasoning_ms));
        r.answer.last_token = kernel(last);
        for i in 0..TOKENS {
            let at =
                if self.one_read { first } else { first + Nanos(i * GAP_NS + (i * 7919 % 13) * 100_000) };
            r.answer.events.push(at, u32::from(self.counted), Channel::Text, self.one_read && i > 0);
        }
        if self.counted {
            (r.answer.usage.output, r.answer.usage.input) = (Some(TOKENS as u64), Some(512));
        } else {
            r.token_source = TokenSource::None;
        }
        let facts = &mut r.answer.facts;
        (facts.streamed, facts.terminator, facts.finish) = (true, true, true);
        (facts.first_token_coalesced, facts.all_in_one_read) = (self.first_coalesced, self.one_read);
        r.answer.outcome = Some(Outcome::Ok);
        r.answer.ended = kernel(last + Nanos(150_000));
        r.finished = last + Nanos(400_000);
        r
    }
}

/// A request that failed, the `i`-th.
pub(super) fn fail(i: i64, class: ErrorClass, status: Option<u16>, message: &str) -> Record {
    let mut r = Record { status, ..Record::default() };
    (r.phases.scheduled, r.phases.started) = (Nanos(i * 70_000_000), Nanos(i * 70_000_000));
    r.finished = r.phases.started + Nanos(3_000_000);
    r.answer.outcome = Some(Outcome::Error);
    r.answer.failure = Some(Failure::new(class, message));
    r
}

/// Standard normal numbers from a fixed sequence: twelve even ones make a good one.
struct Normal(u64);

impl Normal {
    fn next(&mut self) -> f64 {
        let mut sum = 0.0;
        for _ in 0..12 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum - 6.0
    }
}

/// The records of a stage, its users one after another, and its window.
fn records(made: &Made, stage: u32) -> (Vec<Record>, StageWindow) {
    let users = match made.load {
        Load::Closed { concurrency, .. } => concurrency,
        Load::Open { .. } | Load::Trace { .. } => 24,
    };
    let mut normal = Normal(7);
    let mut free = vec![0i64; users as usize];
    let mut all = made.failed.clone();
    for seq in 0..made.requests {
        let user = (seq % users) as usize;
        let mut r =
            made.answer.record(free[user], made.answer.ttft_ms * (made.answer.spread * normal.next()).exp());
        r.phases.scheduled = r.phases.started - Nanos::from_millis(made.send_lag_ms);
        free[user] = r.finished.0;
        all.push(r);
    }
    for r in &mut all {
        r.stage = stage;
    }
    let end = all.iter().map(|r| r.finished.0).max().unwrap_or(1);
    let dry = free.iter().copied().min().filter(|at| *at > 0).unwrap_or(end);
    let window = StageWindow {
        stage,
        start: Nanos::ZERO,
        reached: Nanos::ZERO,
        dry: Some(Nanos(dry)),
        end: Some(Nanos(end)),
        worker_cpu_ns: vec![(end as f64 * made.cpu_percent / 100.0) as i64],
        max_in_flight: users,
        ..StageWindow::default()
    };
    (all, window)
}

/// What an engine's page told of a stage: means in milliseconds, its quantiles beyond the last bucket.
pub(super) fn engine(stage: u32, count: f64, ttft_ms: f64, queue_ms: f64) -> SourceStage {
    let times = |ms: f64| {
        let bucket = |ms: f64| Some(Quantile::At { value: ms / 1e3, lower: ms / 2e3, upper: ms / 5e2 });
        let quantiles = [bucket(ms), bucket(ms), Some(Quantile::AtLeast(0.5)), Some(Quantile::AtLeast(0.5))];
        Measured::Distribution(Distribution { count, mean: Some(ms / 1e3), quantiles, seconds: true })
    };
    let values = BTreeMap::from([
        ("ttft", times(ttft_ms)),
        ("queue_time", times(queue_ms)),
        ("prefill_time", times(ttft_ms - queue_ms - 4.0)),
    ]);
    let reading = Reading {
        engine: Some("vllm".to_owned()),
        title: "vLLM".to_owned(),
        role: Some(Role::Engine),
        version: Some("0.13 or later (V1)".to_owned()),
        format: Format::Prometheus,
        series: 120,
        values: BTreeMap::new(),
        from: BTreeMap::new(),
        notes: BTreeMap::new(),
        window: Some(Window { seconds: Some(20.0), reset_detected: false, other_process: false, values }),
        hosts: Vec::new(),
        devices: None,
        marks: Vec::new(),
        also: Vec::new(),
    };
    let waiting = if queue_ms > 100.0 { 32.0 } else { 0.0 };
    let values = BTreeMap::from([("running", 16.0), ("waiting", waiting), ("kv_cache_usage_ratio", 0.4)]);
    SourceStage {
        stage,
        source: "http://10.0.0.7:8000/metrics".to_owned(),
        reading: Some(reading),
        levels: vec![Levels { at: Nanos::ZERO, values }],
        missed: 0,
    }
}

/// The summary of a run of these stages.
pub(super) fn run(stages: &[Made], slo: &[&str]) -> Summary {
    run_with(stages, slo, &[])
}

/// The same, with what a server told.
pub(super) fn run_with(stages: &[Made], slo: &[&str], sources: &[SourceStage]) -> Summary {
    let made: Vec<_> = stages.iter().enumerate().map(|(i, made)| records(made, i as u32)).collect();
    let span = |s: i64| Span(Nanos::from_millis(s * 1000));
    let stage = |made: &Made| Stage {
        name: made.name.clone(),
        mix: Share::whole("short"),
        load: made.load.clone(),
        stop: Stop { requests: Some(made.requests.into()), duration: None },
        ..Stage::default()
    };
    let run = Run {
        schema: "ttft.run/1".to_owned(),
        version: "0.1.0".to_owned(),
        name: "demo".to_owned(),
        command: vec!["ttft".to_owned(), "run".to_owned()],
        host: "client-1".to_owned(),
        kernel: "6.1.0".to_owned(),
        cpus: 2,
        clock: ClockInfo {
            receive: StampSource::Kernel,
            transmit: true,
            wall_steps: 0,
            note: "kernel receive stamps (SO_TIMESTAMPING)".to_owned(),
            realtime: false,
        },
        zero_unix_ns: 1_767_323_045_000_000_000,
        zero_monotonic_ns: 0,
        ended_ns: Some(62_400_000_000),
        interrupted: false,
        stopped_by: None,
        server: Some("uvicorn".to_owned()),
        governor: None,
        stages: made.iter().map(|(_, window)| window.clone()).collect(),
        plan: Plan {
            name: "demo".to_owned(),
            seed: 1,
            warmup: 10,
            drain: span(10),
            slo: slo.iter().map(|&text| text.to_owned()).collect(),
            endpoints: vec![Endpoint {
                url: "http://10.0.0.7:8000/v1/chat/completions".to_owned(),
                model: Some("Qwen/Qwen2.5-7B-Instruct".to_owned()),
                api_key: ApiKey::None,
                ..Endpoint::default()
            }],
            timeouts: Timeouts { connect: span(5), first_token: span(60), idle: span(30), total: span(600) },
            workloads: vec![Workload {
                name: "short".to_owned(),
                prompt: Prompt::Tokens(512),
                max_tokens: TOKENS as u32,
                ..Workload::default()
            }],
            stages: stages.iter().map(stage).collect(),
            ..Plan::default()
        },
    };
    let mut fold = RunFold::new(&run).unwrap();
    for record in made.iter().flat_map(|(records, _)| records) {
        fold.push(record);
    }
    for _ in stages {
        fold.push(&Record { warmup: true, ..Record::default() });
    }
    fold.finish(sources)
}
