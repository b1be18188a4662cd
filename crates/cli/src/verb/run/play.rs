//! A plan into a run folder: everything is reached and made ready, played, and kept.

use std::path::{Path, PathBuf};

use ttft_drive::{Ask, Job, Stop, start_directed};
use ttft_kernel::Anchor;
use ttft_model::{CachePolicy, Load, Nanos, Plan};
use ttft_plan::dataset::{TimeUnit, Trace};
use ttft_store::redact::Secrets;
use ttft_store::{Place, RunFolder, StoreError};

use super::guide::Guide;
use super::ready::Ready;
use super::recorder::{self, Ending};
use super::{facts, scrape, sources};
use crate::endpoint::check_open_files;
use crate::{output, signals};

/// Where run folders go unless `--out` names one.
const RUNS: &str = "runs";

/// A run that is over.
pub(crate) struct Played {
    /// Its folder.
    pub path: PathBuf,
    pub ending: Ending,
}

/// Plays a plan, and what its guide adds to it, into a run folder.
pub(crate) fn play(mut plan: Plan, out: Option<&Path>, guide: &mut dyn Guide) -> anyhow::Result<Played> {
    let ready = Ready::of(&mut plan)?;
    check_open_files(most_connections(&plan))?;
    let workers = ready.workers(&plan);
    let anchor = Anchor::establish();
    let facts = facts::of_run(&plan, &anchor);
    let place = match out {
        Some(path) => Place::Exactly(path),
        None => Place::Under(Path::new(RUNS)),
    };
    let mut folder = RunFolder::create(place, &plan, &facts).map_err(|error| match error {
        StoreError::NotEmpty { .. } => crate::usage(error),
        other => other.into(),
    })?;
    let mut secrets = Secrets::of(&plan);
    for key in ready.keys() {
        folder.keep_out(key);
        secrets.add(key);
    }
    let path = folder.path().to_owned();
    announce(&plan, &ready.asks, &path);
    let watched = sources::watched(&plan, ready.reached(), &secrets)?;
    let (scraping, at_edge) = scrape::start(watched, Nanos(facts.zero_monotonic_ns))?;

    let stop = Stop::default();
    signals::listen(stop.clone());
    let Ready { routes, asks, sims, .. } = ready;
    let (running, director) = start_directed(Job { plan, routes, asks, workers, at_edge }, stop);
    let ending = recorder::record(&running, director, guide, folder, facts, &secrets, scraping)?;
    running.join();
    // The engine's own figures are its log's matter.
    drop(sims);
    Ok(Played { path, ending })
}

/// Connections that may be open at once, as far as the plan tells.
fn most_connections(plan: &Plan) -> u64 {
    let of_stage = |load: &Load| match load {
        Load::Closed { concurrency, .. } => u64::from(*concurrency),
        Load::Open { max_in_flight, .. } | Load::Trace { max_in_flight, .. } => {
            u64::from(max_in_flight.unwrap_or(0))
        }
    };
    // What a stage has opened stays open while another endpoint is asked.
    let of_endpoint = |number: u32| {
        let stages = plan.stages.iter().filter(|stage| plan.endpoint_number(stage) == number);
        stages.map(|stage| of_stage(&stage.load)).max().unwrap_or(0)
    };
    (0..plan.endpoints.len() as u32).map(of_endpoint).sum()
}

/// What is about to happen, so that a wrong default is seen before the time is spent.
fn announce(plan: &Plan, asks: &[Ask], folder: &Path) {
    for (number, endpoint) in plan.endpoints.iter().enumerate() {
        let mut models: Vec<&str> = Vec::new();
        for ask in asks.iter().filter(|ask| ask.endpoint as usize == number) {
            let model = ask.model.as_deref().unwrap_or("-");
            if !models.contains(&model) {
                models.push(model);
            }
        }
        if !models.is_empty() {
            output::note(&format!(
                "{}  {} {}, dialect {}",
                ttft_show::escape(&ttft_store::redact::url(&endpoint.url)),
                if models.len() == 1 { "model" } else { "models" },
                ttft_show::escape(&models.join(", ")),
                endpoint.dialect,
            ));
        }
    }
    for (number, workload) in plan.workloads.iter().enumerate() {
        let Some(ask) = asks.iter().find(|ask| ask.workload as usize == number) else { continue };
        let cache = match workload.cache {
            CachePolicy::Cold => "cold",
            CachePolicy::Warm => "warm",
            CachePolicy::AsIs => "as it is",
        };
        let name = match plan.workloads.len() {
            1 => String::new(),
            _ => format!("workload {}: ", ttft_show::escape(&workload.name)),
        };
        output::note(&format!("{name}at most {} output tokens, prefix cache {cache}", workload.max_tokens));
        if let Some(trace) = ask.maker.trace() {
            announce_trace(trace, workload.cache);
        }
    }
    if plan.warmup > 0 {
        output::note(&format!(
            "{} warm-up {} first, not counted",
            plan.warmup,
            if plan.warmup == 1 { "request" } else { "requests" }
        ));
    }
    output::note(&format!("results go to {}", ttft_show::escape(&folder.display().to_string())));
}

/// What a replay is about to do: a wrong unit of time would show here.
fn announce_trace(trace: &Trace, cache: CachePolicy) {
    let arrivals = trace.arrivals();
    let unit = match trace.unit {
        TimeUnit::Millis => "milliseconds",
        TimeUnit::Seconds => "seconds",
        TimeUnit::Calendar => "dates",
    };
    output::note(&format!(
        "trace of {} requests over {:.1} s, {} requests/s at speed 1; {:.1} % share their instant with another, at \
         most {} at once; largest gap {:.1} s; timestamps taken as {unit}",
        trace.requests.len(),
        arrivals.span_ms / 1e3,
        arrivals.mean_rate_per_s.map_or("-".to_owned(), |rate| format!("{rate:.3}")),
        arrivals.equal_timestamps_share * 100.0,
        arrivals.max_burst,
        arrivals.largest_gap_ms / 1e3,
    ));
    if trace.shares_prefixes() && cache == CachePolicy::Cold {
        output::note(
            "its prompts share prefixes, which a cold cache hides: --cache as-is replays the sharing",
        );
    }
}
