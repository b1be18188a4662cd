//! Plans for tests, and what came of them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use ttft_dialect::Dialect;
use ttft_drive::{Ask, Job, Message, RequestMaker, Route, Running, Stop, start};
use ttft_model::{
    ApiKey, Endpoint, Load, Nanos, Plan, Prompt, Record, Span, Stage, StageWindow, Timeouts, Workload,
};
use ttft_sim::{Profile, Sim, SimOptions};
use ttft_wire::{ConnectOptions, Target, TlsOptions, tls_config};

/// No run takes longer.
const LIMIT: Duration = Duration::from_secs(50);

pub(crate) fn ms(ms: i64) -> Span {
    Span(Nanos::from_millis(ms))
}

pub(crate) fn closed(concurrency: u32) -> Load {
    Load::closed(concurrency)
}

pub(crate) fn stage(load: Load, requests: Option<u64>, duration: Option<Span>) -> Stage {
    let stop = ttft_model::Stop { requests, duration };
    Stage { name: "a stage".to_owned(), load, stop, ..Stage::default() }
}

/// A plan of these stages, with generous timeouts and no warm-up.
pub(crate) fn plan(addr: SocketAddr, stages: Vec<Stage>) -> Plan {
    Plan {
        seed: 7,
        warmup: 0,
        drain: ms(20_000),
        endpoints: vec![Endpoint {
            url: format!("http://{addr}/v1/chat/completions"),
            model: Some("m".to_owned()),
            api_key: ApiKey::None,
            streams_per_connection: 100,
            ..Endpoint::default()
        }],
        timeouts: Timeouts {
            connect: ms(20_000),
            first_token: ms(30_000),
            idle: ms(30_000),
            total: ms(40_000),
        },
        workloads: vec![Workload {
            prompt: Prompt::Text("say something".to_owned()),
            max_tokens: 4,
            ignore_eos: true,
            ..Workload::default()
        }],
        stages,
        ..Plan::default()
    }
}

/// All that a run told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub records: Vec<Record>,
    pub windows: Vec<StageWindow>,
    /// `warm-up` and `stage N`, in order, and `records` where some came.
    pub news: Vec<String>,
    pub interrupted: bool,
    /// Why the budget was spent.
    pub spent: Option<String>,
}

pub(crate) fn begin(plan: Plan, workers: u32) -> Running {
    start(job(plan, workers), Stop::default())
}

/// All that is needed to play a plan: every workload, of every model that an endpoint or a stage names, everywhere.
pub(crate) fn job(plan: Plan, workers: u32) -> Job {
    let route = |endpoint: &Endpoint| Route {
        dialect: Dialect::builtin(&endpoint.dialect).unwrap(),
        connect: ConnectOptions {
            tls: tls_config(&TlsOptions { insecure: true, ca: None, http: endpoint.http }).unwrap(),
            http: endpoint.http,
            timeout: plan.timeouts.connect.0.to_std(),
            streams_per_connection: endpoint.streams_per_connection,
        },
    };
    let routes: Vec<Route> = plan.endpoints.iter().map(route).collect();
    let mut asks = Vec::new();
    for (number, endpoint) in plan.endpoints.iter().enumerate() {
        let named = plan.stages.iter().filter_map(|stage| stage.model.clone());
        for model in named.chain(endpoint.model.clone()).collect::<BTreeSet<String>>() {
            let endpoint = Endpoint { model: Some(model.clone()), ..endpoint.clone() };
            for (workload, asked) in plan.workloads.iter().enumerate() {
                let dialect = &routes[number].dialect;
                let maker = RequestMaker::new(dialect, &endpoint, asked, None, plan.seed, 1).unwrap();
                asks.push(Ask {
                    endpoint: number as u32,
                    model: Some(model.clone()),
                    workload: workload as u32,
                    target: Target::parse(&endpoint.url).unwrap(),
                    maker: Arc::new(maker),
                });
            }
        }
    }
    Job { routes, asks, workers, plan, at_edge: None }
}

/// Listens to a run until it is over.
pub(crate) fn finish(running: Running) -> Told {
    let mut told = Told::default();
    loop {
        match running.messages.recv_timeout(LIMIT) {
            Ok(Message::Stream(_)) => {}
            Ok(Message::Uncounted(one)) => told.records.push(one.count()),
            Ok(Message::Records(records)) => {
                told.news.push("records".to_owned());
                told.records.extend(records);
            }
            Ok(Message::WarmUp { .. }) => told.news.push("warm-up".to_owned()),
            Ok(Message::StageBegan { stage, .. }) => told.news.push(format!("stage {stage}")),
            Ok(Message::Settling { next, .. }) => told.news.push(format!("settling before {next}")),
            Ok(Message::BudgetSpent(why)) => told.spent = Some(why),
            Ok(Message::StageEnded(window)) => told.windows.push(window),
            Ok(Message::Ended { interrupted, .. }) => {
                told.interrupted = interrupted;
                running.join();
                told.news.dedup();
                return told;
            }
            Ok(Message::Failed(why)) => panic!("the run failed: {why}"),
            Err(RecvTimeoutError::Timeout) => panic!("the run hangs"),
            Err(RecvTimeoutError::Disconnected) => panic!("the run ended without a word"),
        }
    }
}

pub(crate) fn play(plan: Plan, workers: u32) -> Told {
    finish(begin(plan, workers))
}

/// An engine whose tokens come at fixed times, whatever the load.
pub(crate) fn engine(ttft_ms: f64, itl_ms: f64) -> Sim {
    let profile = Profile::load("fixed").unwrap().with_times(Some(ttft_ms), Some(itl_ms)).unwrap();
    Sim::start(SimOptions::new(profile)).unwrap()
}

/// The numbers of the records, in order of sending.
pub(crate) fn numbers(records: &[Record]) -> Vec<u64> {
    let mut numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
    numbers.sort_unstable();
    numbers
}
