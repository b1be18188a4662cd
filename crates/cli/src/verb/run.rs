//! `ttft run`: the load test.

pub(crate) mod args;
mod calibrate;
mod context;
mod dry;
mod facts;
pub(crate) mod guide;
mod lay;
pub(crate) mod play;
mod ready;
pub(crate) mod recorder;
mod scrape;
pub(crate) mod sources;
mod streams;
mod to_plan;
mod tokenize;
mod warm_up;

use std::path::Path;

use anyhow::Context;
use ttft_judge::Summary;

pub(crate) use args::Args;

use self::guide::Planned;
use self::play::play;
use self::recorder::Ending;
use crate::exit::Exit;
use crate::output;
use crate::verb::report::{is_clean, summarise};

/// Runs a load test from its arguments to its summary.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let plan = to_plan::plan(args)?;
    if args.dry_run {
        return dry::run(&plan, args.json);
    }
    dry::announce(&plan)?;
    let played = play(plan, args.out.as_deref(), &mut Planned)?;
    let summary = summarise(&played.path)?;
    finish(args, &played.path, &summary, played.ending)
}

fn finish(args: &Args, path: &Path, summary: &Summary, ending: Ending) -> anyhow::Result<Exit> {
    let written = ttft_store::write_json(&path.join(ttft_store::names::SUMMARY), summary);
    output::show(args.json, summary, |style| ttft_show::summary_text(summary, style))?;
    let shown = path.display().to_string();
    let shown = ttft_show::escape(&shown);
    output::note(&format!("\nkept in {shown}; `ttft report {shown}` shows this again"));
    written.context("the results are kept, but the summary could not be written")?;
    let unclean = args.require_clean && !is_clean(summary);
    let ok: u64 = summary.stages.iter().map(|stage| stage.requests.ok).sum();
    let blind = summary.stages.iter().find(|stage| stage.requests.sent > 0 && stage.requests.ok == 0);
    if let Some(stage) = blind.filter(|_| ok > 0) {
        let (name, sent) = (ttft_show::escape(&stage.name), stage.requests.sent);
        output::note(&format!("stage {name} measured nothing: none of its {sent} requests succeeded"));
    }
    Ok(match summary.slo_met() {
        _ if ending == Ending::Signal => Exit::Interrupted,
        _ if ok == 0 || blind.is_some() || ending == Ending::Trouble => Exit::NotMeasured,
        Some(false) => Exit::Failed,
        _ if unclean => Exit::Failed,
        _ => Exit::Ok,
    })
}
