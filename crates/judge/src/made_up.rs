//! Runs that never were, with a server's figures beside them: evidence for tests of opinions.

use std::collections::BTreeMap;

use ttft_model::{ErrorClass, Load, Nanos, Record, Span, Stage, StageWindow, Stamp, Stop};
use ttft_sources::{Distribution, Format, Measured, Quantile, Reading, Role, Window};

use crate::fold::tests::{failed, ok, run};
use crate::server::{Levels, SourceStage};
use crate::{RunFold, Summary};

/// One closed stage: each user's requests follow each other without a pause.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) users: u32,
    pub(crate) each: u32,
    /// TTFT of the client, which scatters a little around it.
    pub(crate) ttft_ms: f64,
    /// Between tokens; an answer has ten.
    pub(crate) gap_ms: f64,
    pub(crate) rtt_ms: f64,
    /// Done to each record, with its number.
    pub(crate) edit: fn(&mut Record, u32),
    /// Requests that found the server gone, in the middle.
    pub(crate) gone: u32,
    pub(crate) sources: Vec<Told>,
}

/// What one source told of a stage.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) engine: &'static str,
    pub(crate) role: Role,
    /// Requests that it counted more than were sent.
    pub(crate) more: f64,
    /// Means, in milliseconds.
    pub(crate) times: Vec<(&'static str, f64)>,
    pub(crate) numbers: Vec<(&'static str, f64)>,
    pub(crate) levels: Vec<(&'static str, f64)>,
    pub(crate) reset: bool,
    pub(crate) lost: bool,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            users: 1,
            each: 40,
            ttft_ms: 100.0,
            gap_ms: 6.0,
            rtt_ms: 0.1,
            edit: |_, _| {},
            gone: 0,
            sources: Vec::new(),
        }
    }
}

/// An engine that tells TTFT, queue and prefill.
pub(crate) fn engine(ttft: f64, queue: f64, prefill: f64) -> Told {
    Told {
        engine: "vllm",
        role: Role::Engine,
        more: 0.0,
        times: vec![("ttft", ttft), ("queue_time", queue), ("prefill_time", prefill), ("decode_time", 54.0)],
        numbers: vec![("preemptions", 0.0)],
        levels: vec![("running", 1.0), ("waiting", 0.0), ("kv_cache_usage_ratio", 0.1)],
        reset: false,
        lost: false,
    }
}

impl Made {
    fn records(&self, stage: u32) -> (Vec<Record>, StageWindow) {
        let mut records = Vec::new();
        let ns = |ms: f64| Nanos((ms * 1e6).round() as i64);
        let mut end = 0;
        for user in 0..self.users {
            let mut started = Nanos(i64::from(user) * 10_000);
            for i in 0..self.each {
                let number = i * self.users + user;
                let jitter = 0.02 * (f64::from(number * 7_919 % 101) / 50.0 - 1.0);
                let first = started + ns(self.ttft_ms * (1.0 + jitter));
                let mut r = ok(0, 0, 0);
                (r.phases.scheduled, r.phases.started) = (started, started);
                r.phases.sent_first = Some(started + Nanos(20_000));
                r.phases.sent = r.phases.sent_first;
                (r.stage, r.seq, r.status) = (stage, u64::from(number), Some(200));
                let stamp = |at: Nanos| Some(Stamp { kernel: Some(at), user: at + Nanos(20_000) });
                (r.answer.first_token, r.answer.last_token) =
                    (stamp(first), stamp(first + ns(9.0 * self.gap_ms)));
                for (k, at) in r.answer.events.at.iter_mut().enumerate() {
                    *at = first + ns(k as f64 * self.gap_ms);
                }
                r.finished = first + ns(9.0 * self.gap_ms);
                let us = (self.rtt_ms * 1e3) as u32;
                r.tcp_first = Some(ttft_model::TcpFacts {
                    rtt_us: us,
                    min_rtt_us: us,
                    retransmits: 0,
                    out_of_order: 0,
                });
                (self.edit)(&mut r, number);
                started = r.finished;
                end = end.max(r.finished.0);
                records.push(r);
            }
        }
        for i in 0..self.gone {
            let mut r = failed(end / 2_000_000 + i64::from(i), ErrorClass::ConnectRefused, "refused");
            r.stage = stage;
            records.push(r);
        }
        let window = StageWindow {
            stage,
            start: Nanos::ZERO,
            reached: Nanos::ZERO,
            dry: Some(Nanos(end)),
            end: Some(Nanos(end)),
            worker_cpu_ns: vec![1_000_000],
            max_in_flight: self.users,
            ..StageWindow::default()
        };
        (records, window)
    }
}

impl Told {
    fn source(&self, stage: u32, requests: u64) -> SourceStage {
        let count = requests as f64 + self.more;
        let distribution = |ms: f64| {
            let s = ms / 1e3;
            let at = |value: f64| Some(Quantile::At { value, lower: value * 0.8, upper: value * 1.2 });
            Measured::Distribution(Distribution {
                count,
                mean: Some(s),
                quantiles: [at(s), at(s), at(s), Some(Quantile::AtLeast(s))],
                seconds: true,
            })
        };
        let mut values: BTreeMap<&'static str, Measured> =
            self.times.iter().map(|(name, ms)| (*name, distribution(*ms))).collect();
        values.extend(self.numbers.iter().map(|(name, value)| (*name, Measured::Number(*value))));
        let reading = Reading {
            engine: Some(self.engine.to_owned()),
            title: self.engine.to_owned(),
            role: Some(self.role),
            version: None,
            format: Format::Prometheus,
            series: 9,
            values: BTreeMap::new(),
            from: BTreeMap::new(),
            notes: BTreeMap::new(),
            window: Some(Window {
                seconds: Some(9.0),
                reset_detected: self.reset,
                other_process: false,
                values,
            }),
            hosts: Vec::new(),
            devices: None,
            marks: Vec::new(),
            also: Vec::new(),
        };
        let levels = Levels { at: Nanos::ZERO, values: self.levels.iter().copied().collect() };
        SourceStage {
            stage,
            source: format!("http://h/{}", self.engine),
            reading: (!self.lost).then_some(reading),
            levels: vec![levels; 3],
            missed: u32::from(self.lost),
        }
    }
}

/// The summary of a run of these stages.
pub(crate) fn summary(stages: &[Made]) -> Summary {
    let mut run = run(1, &[]);
    let made: Vec<_> = stages.iter().enumerate().map(|(i, made)| made.records(i as u32)).collect();
    run.stages = made.iter().map(|(_, window)| window.clone()).collect();
    run.plan.stages = stages
        .iter()
        .map(|made| Stage {
            name: format!("c{}", made.users),
            load: Load::Closed { concurrency: made.users, ramp_up: Span(Nanos::ZERO), think_time: None },
            stop: Stop { requests: Some(u64::from(made.users * made.each)), ..run.plan.stages[0].stop },
            ..run.plan.stages[0].clone()
        })
        .collect();
    let mut fold = RunFold::new(&run).unwrap();
    made.iter().flat_map(|(records, _)| records).for_each(|r| fold.push(r));
    let sources: Vec<SourceStage> = stages
        .iter()
        .enumerate()
        .flat_map(|(i, made)| {
            let sent = u64::from(made.users * made.each);
            made.sources.iter().map(move |told| told.source(i as u32, sent))
        })
        .collect();
    fold.finish(&sources)
}
