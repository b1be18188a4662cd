//! A plan into a run folder: everything is reached and made ready, played, and kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ttft_drive::{Job, RequestMaker, Stop, start_directed};
use ttft_kernel::{Anchor, cpu_count};
use ttft_model::{CachePolicy, Load, Nanos, Plan};
use ttft_plan::dataset::{TimeUnit, Trace};
use ttft_store::redact::Secrets;
use ttft_store::{Place, RunFolder, StoreError};

use super::guide::Guide;
use super::recorder::{self, Ending};
use super::{calibrate, facts, scrape, sources};
use crate::endpoint::{Reached, check_open_files, reach};
use crate::{model, output, signals, simulator};

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
    let sim = simulator::start(&plan.endpoint().url, plan.seed)?;
    let base = sim.as_ref().map(|sim| format!("http://{}", sim.addr()));
    let reached = reach(plan.endpoint(), &plan.timeouts, base.as_deref())?;
    model::choose(&reached, &mut plan.endpoints[0])?;
    if sim.is_none() {
        plan.endpoints[0].url.clone_from(&reached.url);
    }
    check_open_files(most_connections(&plan))?;

    calibrate::calibrate(&mut plan, &reached, sim.is_some())?;
    let makers = makers(&mut plan, &reached)?;
    let mut job = job(&plan, &reached, makers, sim.is_some());
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
    if let Some(key) = &reached.key {
        folder.keep_out(key);
    }
    let path = folder.path().to_owned();
    announce(&plan, &job.makers[0], &path);
    let watched = sources::watched(&plan.sources, plan.endpoint(), &reached)?;
    let (scraping, at_edge) = scrape::start(watched, Nanos(facts.zero_monotonic_ns))?;
    job.at_edge = at_edge;

    let stop = Stop::default();
    signals::listen(stop.clone());
    let (running, director) = start_directed(job, stop);
    let mut secrets = Secrets::of(&plan);
    secrets.add(reached.key.as_deref().unwrap_or_default());
    let ending = recorder::record(&running, director, guide, folder, facts, &secrets, scraping)?;
    running.join();
    // The engine's own figures are its log's matter.
    drop(sim);
    Ok(Played { path, ending })
}

/// What makes the requests of each workload. Only their files know how long the longest answers may be.
fn makers(plan: &mut Plan, reached: &Reached) -> anyhow::Result<Vec<Arc<RequestMaker>>> {
    let (warm, seed) = (u64::from(plan.warmup), plan.seed);
    let endpoint = plan.endpoint().clone();
    let mut makers = Vec::new();
    for workload in &mut plan.workloads {
        let maker = reached.maker(&endpoint, workload, seed, warm)?;
        workload.max_tokens = maker.max_tokens();
        makers.push(Arc::new(maker));
    }
    Ok(makers)
}

fn job(plan: &Plan, reached: &Reached, makers: Vec<Arc<RequestMaker>>, beside_simulator: bool) -> Job {
    // The simulated engine needs a core of its own to be on time.
    let cores = cpu_count().saturating_sub(usize::from(beside_simulator)).max(1) as u32;
    Job {
        plan: plan.clone(),
        target: reached.target.clone(),
        dialect: reached.dialect.clone(),
        makers,
        connect: reached.connect.clone(),
        workers: plan.client.workers.unwrap_or(cores).max(1),
        at_edge: None,
    }
}

/// Connections that may be open at once, as far as the plan tells.
fn most_connections(plan: &Plan) -> u64 {
    let of_stage = |load: &Load| match load {
        Load::Closed { concurrency, .. } => u64::from(*concurrency),
        Load::Open { max_in_flight, .. } | Load::Trace { max_in_flight, .. } => {
            u64::from(max_in_flight.unwrap_or(0))
        }
    };
    plan.stages.iter().map(|stage| of_stage(&stage.load)).max().unwrap_or(0)
}

/// What is about to happen, so that a wrong default is seen before the time is spent.
fn announce(plan: &Plan, maker: &RequestMaker, folder: &Path) {
    let workload = &plan.workloads[0];
    let cache = match workload.cache {
        CachePolicy::Cold => "cold",
        CachePolicy::Warm => "warm",
        CachePolicy::AsIs => "as it is",
    };
    output::note(&format!(
        "{}  model {}, dialect {}, at most {} output tokens, prefix cache {cache}, {} warm-up requests",
        ttft_show::escape(&ttft_store::redact::url(&plan.endpoint().url)),
        ttft_show::escape(plan.endpoints[0].model.as_deref().unwrap_or("-")),
        plan.endpoints[0].dialect,
        workload.max_tokens,
        plan.warmup,
    ));
    if let Some(trace) = maker.trace() {
        announce_trace(trace, workload.cache);
    }
    output::note(&format!("results go to {}", folder.display()));
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
