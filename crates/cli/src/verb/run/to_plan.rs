//! From arguments to a checked plan.

use std::path::Path;

use anyhow::{Context, anyhow};
use ttft_judge::Slo;
use ttft_model::{
    CachePolicy, Calibration, Client, Connections, Lengths, Load, Nanos, Plan, Prompt, Sources, Span, Stage,
    Stop, Workload,
};

use super::args::{Args, LoadArgs};
use crate::usage;

/// Stages of a run that names none.
const DEFAULT_CONCURRENCY: [u64; 4] = [1, 8, 16, 32];

/// Length of a stage that names neither requests nor time.
const DEFAULT_DURATION: Span = Span(Nanos::from_millis(10_000));

/// The plan of a run.
pub(super) fn plan(args: &Args) -> anyhow::Result<Plan> {
    let plan = match &args.plan {
        Some(path) => from_file(args, path)?,
        None => from_flags(args)?,
    };
    check(&plan)?;
    Ok(plan)
}

fn from_file(args: &Args, path: &Path) -> anyhow::Result<Plan> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the plan {}", path.display()))
        .map_err(usage)?;
    let mut plan: Plan = toml::from_str(&text).map_err(|e| not_a_plan(path, &text, &e))?;
    if let Some(url) = &args.endpoint.url {
        plan.endpoints[0].url.clone_from(url);
    }
    if args.endpoint.model.is_some() {
        plan.endpoints[0].model.clone_from(&args.endpoint.model);
    }
    if args.endpoint.api_key_env.is_some() || args.endpoint.api_key_file.is_some() {
        plan.endpoints[0].api_key = args.endpoint.api_key()?;
    }
    if args.endpoint.url.is_some() || args.endpoint.model.is_some() {
        // Another server counts tokens in its own way.
        for workload in &mut plan.workloads {
            if matches!(workload.calibration, Calibration::Measured { .. }) {
                workload.calibration = Calibration::Measure;
            }
        }
    }
    // What was redacted when the plan was written has to be given again.
    plan.endpoints[0].headers.retain(|header| header.value != ttft_store::redact::REDACTED);
    plan.endpoints[0].headers.extend(args.endpoint.headers()?);
    if let Some(name) = &args.name {
        plan.name.clone_from(name);
    }
    plan.sources = args.sources.sources(plan.sources)?;
    plan.seed = args.seed.unwrap_or(plan.seed);
    Ok(plan)
}

/// What is wrong with a plan, and where, in one line.
fn not_a_plan(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let line =
        error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    let at = line.map(|line| format!(", line {line}")).unwrap_or_default();
    usage(anyhow!("{}{at}: {}", path.display(), error.message()))
}

fn from_flags(args: &Args) -> anyhow::Result<Plan> {
    let load = &args.load;
    let cache = match load.cache.as_str() {
        "warm" => CachePolicy::Warm,
        "as-is" => CachePolicy::AsIs,
        _ => CachePolicy::Cold,
    };
    let mut endpoint = args.endpoint.endpoint()?;
    endpoint.connections = match load.connections.as_str() {
        "new" => Connections::New,
        "per-user" => Connections::PerUser,
        _ => Connections::Reuse,
    };
    endpoint.streams_per_connection = narrow(load.streams_per_connection, "--streams-per-connection")?.max(1);
    Ok(Plan {
        name: args.name.clone().unwrap_or_else(|| "run".to_owned()),
        seed: args.seed.unwrap_or(1),
        warmup: narrow(load.warmup, "--warmup")?,
        drain: load.drain,
        slo: args.slo.clone(),
        endpoints: vec![endpoint],
        timeouts: args.timeouts.timeouts(),
        client: Client {
            workers: load.workers.map(|n| narrow(n, "--workers")).transpose()?,
            realtime: load.realtime,
            save_streams: load.save_streams,
        },
        sources: args.sources.sources(Sources::default())?,
        workloads: vec![workload(args, cache)?],
        stages: stages(load)?,
        ..Plan::default()
    })
}

fn workload(args: &Args, cache: CachePolicy) -> anyhow::Result<Workload> {
    let mut workload = args.prompt.workload(cache)?;
    if let Some(path) = &args.load.trace {
        let format = args.load.trace_format.map(|format| format.name().to_owned());
        workload.prompt = Prompt::Trace { path: path.clone(), format };
        workload.output = workload.output.or(args.prompt.max_tokens.is_none().then_some(Lengths::Recorded));
    }
    let is_asked = args.load.trace.is_some() || args.prompt.prompt_tokens.is_some();
    if is_asked && !args.no_calibrate {
        workload.calibration = Calibration::Measure;
    }
    Ok(workload)
}

fn stages(load: &LoadArgs) -> anyhow::Result<Vec<Stage>> {
    let nothing = load.requests.is_none() && load.duration.is_none();
    let stop =
        Stop { requests: load.requests, duration: load.duration.or(nothing.then_some(DEFAULT_DURATION)) };
    let stage = |name: String, load: Load| Stage { name, load, stop, ..Stage::default() };
    let max_in_flight = load.max_in_flight.map(|n| narrow(n, "--max-in-flight")).transpose()?;
    if let Some(path) = &load.trace {
        // A trace has an end of its own.
        let stop = Stop { requests: load.requests, duration: load.duration };
        let format = load.trace_format.map(|format| format.name().to_owned());
        let replay = |speed: f64| {
            let (path, format, smooth) = (path.clone(), format.clone(), load.smooth);
            let shape = Load::Trace { path, format, speed, smooth, max_in_flight };
            Stage { stop, ..stage(format!("trace×{speed}"), shape) }
        };
        let speeds = if load.speed.is_empty() { &[1.0][..] } else { &load.speed };
        return Ok(speeds.iter().copied().map(replay).collect());
    }
    if !load.rate.is_empty() {
        let open = |rate: &f64| {
            let shape = Load::Open {
                rate: *rate,
                rate_to: None,
                rate_steps: None,
                arrival: load.arrival,
                max_in_flight,
            };
            stage(format!("r{rate}"), shape)
        };
        return Ok(load.rate.iter().map(open).collect());
    }
    let levels = if load.concurrency.is_empty() { &DEFAULT_CONCURRENCY[..] } else { &load.concurrency };
    let closed = |users: &u64| {
        let concurrency = narrow(*users, "--concurrency")?;
        Ok(stage(format!("c{users}"), Load::Closed { concurrency, ramp_up: load.ramp_up, think_time: None }))
    };
    levels.iter().map(closed).collect()
}

/// What no type can say.
fn check(plan: &Plan) -> anyhow::Result<()> {
    let bad = |text: String| Err(usage(anyhow!(text)));
    if plan.stages.is_empty() || plan.workloads.is_empty() {
        return bad("a plan needs at least one stage and one workload".to_owned());
    }
    for stage in &plan.stages {
        if let Some(share) = stage.mix.iter().find(|share| plan.workload(&share.workload).is_none()) {
            return bad(format!(
                "stage {} names workload {}, which is not there",
                stage.name, share.workload
            ));
        }
        match stage.load {
            Load::Closed { concurrency: 0, .. } => {
                return bad("--concurrency 0 would send nothing".to_owned());
            }
            Load::Open { rate, .. } if !(rate > 0.0 && rate <= 1e7) => {
                return bad(format!("--rate {rate} is no rate; it is requests a second, above 0"));
            }
            _ => {}
        }
        if let Load::Trace { path, format, speed, .. } = &stage.load {
            let Some((_, workload)) = plan.workload(&stage.mix[0].workload) else { continue };
            if !(*speed > 0.0 && *speed <= 1e6) {
                return bad(format!("--speed {speed} is no factor above 0"));
            }
            if workload.prompt != (Prompt::Trace { path: path.clone(), format: format.clone() }) {
                return bad(format!("stage {} replays {path}, its workload does not", stage.name));
            }
            if workload.cache == CachePolicy::Warm {
                return bad(
                    "--cache warm does not go with --trace: as-is has the prefixes shared as recorded"
                        .to_owned(),
                );
            }
        }
        if stage.stop.requests == Some(0) {
            return bad("--requests 0 would send nothing".to_owned());
        }
        let has_an_end = matches!(stage.load, Load::Trace { .. });
        if !has_an_end
            && stage.stop.requests.is_none()
            && stage.stop.duration.is_none_or(|d| d.0 <= Nanos::ZERO)
        {
            return bad(format!("stage {} would never end: give it requests or a duration", stage.name));
        }
    }
    for slo in &plan.slo {
        slo.parse::<Slo>().map_err(usage)?;
    }
    if plan.workloads.iter().any(|workload| workload.max_tokens == 0) {
        return bad("--max-tokens 0 asks for no answer".to_owned());
    }
    Ok(())
}

fn narrow(value: u64, flag: &str) -> anyhow::Result<u32> {
    u32::try_from(value).map_err(|_| usage(anyhow!("{flag} {value} is too large")))
}
