//! What no type can say: plans that contradict themselves, never end, or do nothing.

use std::collections::BTreeSet;

use ttft_model::{Arrival, CachePolicy, Lengths, Load, Nanos, Plan, Prompt, Share, Span, Stage, Workload};

use super::error::{FileError, likely};

/// Pixels of all images of a request: one image of the largest size, some 250 MB of body.
const MOST_PIXELS: u64 = 8192 * 8192;

/// Steps of a ramp.
const MOST_STEPS: u32 = 10_000;

/// Threads that send. More than the cores of any machine are of no use.
const MOST_WORKERS: u32 = 1024;

/// What a million tokens may cost.
const DEAREST: f64 = 1e9;

/// The first reason why a plan cannot be run.
pub(super) fn check(plan: &Plan) -> Result<(), FileError> {
    names(plan).map_err(FileError::Contradiction)?;
    for workload in &plan.workloads {
        of_workload(workload).map_err(FileError::Contradiction)?;
    }
    for stage in &plan.stages {
        let of_stage = || {
            references(plan, stage)?;
            load(&stage.load)?;
            trace(plan, stage)?;
            end(plan, stage)
        };
        of_stage().map_err(|why| FileError::Contradiction(format!("stage {}: {why}", stage.name)))?;
    }
    budget(plan).map_err(FileError::Contradiction)?;
    of_run(plan).map_err(FileError::Contradiction)
}

fn names(plan: &Plan) -> Result<(), String> {
    let endpoints = plan.endpoints.iter().map(|endpoint| endpoint.name.as_str());
    let workloads = plan.workloads.iter().map(|workload| workload.name.as_str());
    for (kind, names) in [("endpoints", endpoints.collect::<Vec<_>>()), ("workloads", workloads.collect())] {
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
            return Err(format!("two {kind} are called `{twice}`: give each a `name` of its own"));
        }
    }
    Ok(())
}

fn of_workload(workload: &Workload) -> Result<(), String> {
    let name = &workload.name;
    if workload.max_tokens == 0 {
        return Err(format!("workload {name}: `max_tokens` 0 asks for no answer"));
    }
    match workload.session.as_ref().map(|session| &session.turns) {
        Some(Lengths::Fixed(0)) => {
            return Err(format!("workload {name}: a conversation has at least one turn"));
        }
        Some(Lengths::Recorded) if !matches!(workload.prompt, Prompt::File(_)) => {
            return Err(format!(
                "workload {name}: recorded turns are those of a data set (`dataset`, --dataset); made-up \
                 conversations take a number"
            ));
        }
        _ => {}
    }
    if workload.prefix.is_some_and(|prefix| prefix.tokens > Lengths::LONGEST) {
        return Err(format!("workload {name}: `prefix.tokens` is more than {}", Lengths::LONGEST));
    }
    if let Some(images) = workload.images {
        let each = u64::from(images.size.width) * u64::from(images.size.height);
        if u64::from(images.count) * each > MOST_PIXELS {
            let most = MOST_PIXELS / each.max(1);
            return Err(format!("workload {name}: a request can have {most} images of {}", images.size));
        }
    }
    Ok(())
}

fn references(plan: &Plan, stage: &Stage) -> Result<(), String> {
    let unknown = |kind: &str, name: &str, known: Vec<&str>| {
        let known_ones = known.join(", ");
        let meant =
            likely(name, known).map_or(format!("there are {known_ones}"), |m| format!("did you mean `{m}`?"));
        format!("no {kind} is called `{name}`; {meant}")
    };
    for Share { workload, weight } in &stage.mix {
        if plan.workload(workload).is_none() {
            let known = plan.workloads.iter().map(|workload| workload.name.as_str()).collect();
            return Err(unknown("workload", workload, known));
        }
        if !(*weight > 0.0 && weight.is_finite()) {
            return Err(format!("the weight of `{workload}` in `mix` is {weight}; it is a number above 0"));
        }
    }
    match &stage.endpoint {
        Some(name) if plan.endpoints.iter().all(|endpoint| endpoint.name != *name) => {
            Err(unknown("endpoint", name, plan.endpoints.iter().map(|e| e.name.as_str()).collect()))
        }
        _ => Ok(()),
    }
}

fn load(load: &Load) -> Result<(), String> {
    let is_rate = |rate: f64| (1e-6..=1e7).contains(&rate);
    match load {
        Load::Closed { concurrency: 0, .. } => Err("`concurrency` 0 would send nothing".to_owned()),
        Load::Open { rate, .. } if !is_rate(*rate) => {
            Err(format!("`rate` is {rate:e}; it is requests a second, from 1e-6 to 1e7"))
        }
        Load::Open { rate_to: Some(rate), .. } if !is_rate(*rate) => {
            Err(format!("`rate_to` is {rate:e}; it is requests a second, from 1e-6 to 1e7"))
        }
        Load::Open { rate_to: None, rate_steps: Some(_), .. } => {
            Err("`rate_steps` needs `rate_to`, the rate of the last step".to_owned())
        }
        Load::Open { rate_steps: Some(steps), .. } if !(2..=MOST_STEPS).contains(steps) => {
            Err(format!("`rate_steps` is {steps}; it is from 2 to {MOST_STEPS}"))
        }
        Load::Open { arrival: Arrival::Gamma(shape), .. } if !(1e-3..=1e6).contains(shape) => {
            Err(format!("the shape of `gamma` is {shape:e}; it is from 0.001 to 1e6, and 1 is poisson"))
        }
        Load::Trace { speed, .. } if !(1e-6..=1e6).contains(speed) => {
            Err(format!("`speed` is {speed:e}; it is a factor from 1e-6 to 1e6: 2 is twice as fast"))
        }
        Load::Open { max_in_flight: Some(0), .. } | Load::Trace { max_in_flight: Some(0), .. } => {
            Err("`max_in_flight` 0 would send nothing".to_owned())
        }
        _ => Ok(()),
    }
}

/// A replay needs the prompts of its own trace.
fn trace(plan: &Plan, stage: &Stage) -> Result<(), String> {
    let Load::Trace { path, format, .. } = &stage.load else { return Ok(()) };
    let [Share { workload, .. }] = &stage.mix[..] else {
        return Err("a trace has lengths of its own, and does not go with `mix`".to_owned());
    };
    let Some((_, workload)) = plan.workload(workload) else { return Ok(()) };
    if workload.prompt != (Prompt::Trace { path: path.clone(), format: format.clone() }) {
        return Err(format!(
            "it replays {path}, but the prompts of its workload {} are not of that trace: leave `workload` out",
            workload.name
        ));
    }
    if workload.cache == CachePolicy::Warm {
        return Err(
            "a trace does not go with a warm cache: \"as-is\" has its prefixes shared as recorded".to_owned()
        );
    }
    Ok(())
}

fn end(plan: &Plan, stage: &Stage) -> Result<(), String> {
    let (requests, duration) = (stage.stop.requests, stage.stop.duration);
    if requests == Some(0) {
        return Err("`requests` 0 would send nothing".to_owned());
    }
    if duration.is_some_and(is_nothing) {
        return Err("`duration` 0 would send nothing".to_owned());
    }
    let is_trace = matches!(stage.load, Load::Trace { .. });
    if requests.is_none() && duration.is_none() && !is_trace {
        return Err("it would never end: give it `requests` or `duration`".to_owned());
    }
    if plan.precision.is_some() && requests.is_none() && !is_trace {
        return Err("`precision` needs `requests`, the most that may be sent to reach it".to_owned());
    }
    match (&stage.load, duration) {
        (Load::Open { rate_to: Some(_), .. }, None) => {
            Err("a ramp of `rate` needs `duration`, the time in which it is gone through".to_owned())
        }
        (Load::Closed { ramp_up, .. }, Some(duration)) if *ramp_up > duration => Err(format!(
            "its users begin over {ramp_up}, but it ends after {duration}: the load asked for is never reached"
        )),
        _ => Ok(()),
    }
}

fn is_nothing(span: Span) -> bool {
    span.0 <= Nanos::ZERO
}

fn budget(plan: &Plan) -> Result<(), String> {
    let budget = &plan.budget;
    for (key, price) in [("price_in", budget.price_in), ("price_out", budget.price_out)] {
        if price.is_some_and(|price| !(0.0..=DEAREST).contains(&price)) {
            return Err(format!("`budget.{key}` is no price: it is what a million tokens cost, at most 1e9"));
        }
    }
    if let Some(most) = budget.max_cost {
        if budget.price_in.is_none() || budget.price_out.is_none() {
            return Err(
                "`budget.max_cost` needs `price_in` and `price_out`, what a million tokens cost".to_owned()
            );
        }
        if !(most > 0.0 && most.is_finite()) {
            return Err(format!("`budget.max_cost` {most} allows nothing"));
        }
    }
    if budget.max_total_tokens == Some(0) {
        return Err("`budget.max_total_tokens` 0 allows nothing".to_owned());
    }
    Ok(())
}

fn of_run(plan: &Plan) -> Result<(), String> {
    if let Some(share) = plan.precision.filter(|share| !(*share > 0.0 && *share < 1.0)) {
        return Err(format!(
            "`precision` is {share}; it is a share of the p95 between 0 and 1, such as \"5%\""
        ));
    }
    match plan.client.workers {
        Some(0) => return Err("`client.workers` 0 would send nothing".to_owned()),
        Some(workers) if workers > MOST_WORKERS => {
            return Err(format!("`client.workers` is {workers}; there can be {MOST_WORKERS}"));
        }
        _ => {}
    }
    let times = &plan.timeouts;
    let times = [
        ("connect", times.connect),
        ("first_token", times.first_token),
        ("idle", times.idle),
        ("total", times.total),
    ];
    match times.into_iter().find(|(_, time)| is_nothing(*time)) {
        Some((key, _)) => Err(format!("`timeouts.{key}` 0 leaves no time for an answer")),
        None => Ok(()),
    }
}
