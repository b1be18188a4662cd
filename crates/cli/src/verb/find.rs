//! `ttft find`: the highest load that keeps the objectives.

mod args;
mod seeker;

use anyhow::Context;
use ttft_judge::Axis;
use ttft_judge::find::{Answer, Bounds, Options, Outcome, Search};
use ttft_model::Plan;
use ttft_plan::file::{Draft, Overlay, Part};

pub(crate) use args::Args;

use self::args::LevelRange;
use self::seeker::Seeker;
use super::run::play::{Played, play};
use super::run::recorder::Ending;
use super::run::sources;
use crate::endpoint::{Putter, dialect_of_url, given};
use crate::exit::Exit;
use crate::verb::report::summarise;
use crate::{output, usage};

/// The answer's file in the run folder.
const FIND: &str = "find.json";

/// Users that are searched unless the command line says otherwise.
const USERS: LevelRange = LevelRange { low: 1.0, high: 256.0 };

/// Searches, from arguments to the answer.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let slos = ttft_judge::objectives(&args.slo).map_err(usage)?;
    let bounds = bounds(args);
    let options = Options {
        per_level: args.requests_per_level,
        in_all: args.max_requests,
        resolution: args.resolution,
        ..Options::default()
    };
    let search = Search::new(bounds, &slos, options).map_err(usage)?;
    let plan = plan(args)?;
    let mut seeker = Seeker::new(search, &plan, bounds.axis, args);
    let played = play(plan, args.out.as_deref(), &mut seeker)?;
    finish(args, &played, &seeker.answer())
}

fn bounds(args: &Args) -> Bounds {
    match (args.concurrency, args.rate) {
        (_, Some(LevelRange { low, high })) => Bounds { axis: Axis::Rate, low, high },
        (users, None) => {
            let LevelRange { low, high } = users.unwrap_or(USERS);
            Bounds { axis: Axis::Concurrency, low, high }
        }
    }
}

/// A plan without stages: the search adds them.
fn plan(args: &Args) -> anyhow::Result<Plan> {
    let mut flags = Overlay::default();
    args.endpoint.lay(&mut flags)?;
    args.prompt.lay(&mut flags)?;
    args.timeouts.lay(&mut flags)?;
    args.sources.lay(&mut flags)?;
    let mut put = Putter { flags: &mut flags, part: Part::Run };
    put.say("slo", "--slo", given(&args.slo))?;
    put.say("name", "--name", Some(args.name.as_deref().unwrap_or("find")))?;
    put.say("seed", "--seed", args.seed)?;
    put.say("warmup", "--warmup", args.warmup)?;
    put.part = Part::Endpoint;
    put.say("connections", "--connections", args.connections.as_ref())?;
    put.part = Part::Workload;
    put.say("cache", "--cache", args.cache.as_ref())?;
    let mut draft = Draft::new();
    draft.lay(&flags).map_err(usage)?;
    let mut plan = draft.plan(&dialect_of_url).map_err(usage)?;
    plan.stages.clear();
    sources::check(&plan.sources)?;
    Ok(plan)
}

fn finish(args: &Args, played: &Played, answer: &Answer) -> anyhow::Result<Exit> {
    let path = &played.path;
    let summary = summarise(path)?;
    let written = ttft_store::write_json(&path.join(ttft_store::names::SUMMARY), &summary)
        .and_then(|()| ttft_store::write_json(&path.join(FIND), answer));
    output::show(args.json, answer, |style| ttft_show::find_text(answer, style))?;
    let shown = path.display().to_string();
    let shown = ttft_show::escape(&shown);
    output::note(&format!("\nkept in {shown}; `ttft report {shown}` shows every level"));
    written.context("the results are kept, but the answer could not be written")?;
    let ok: u64 = summary.stages.iter().map(|stage| stage.requests.ok).sum();
    Ok(match (answer.outcome, answer.met) {
        _ if played.ending == Ending::Signal => Exit::Interrupted,
        _ if ok == 0 || played.ending == Ending::Trouble => Exit::NotMeasured,
        (Outcome::BelowSmallest, _) => Exit::Failed,
        (_, Some(_)) => Exit::Ok,
        (_, None) => Exit::NotMeasured,
    })
}
