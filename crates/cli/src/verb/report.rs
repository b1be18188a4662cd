//! `ttft report`: the summary of a run that is on disk, finished or not, or its figures in other tools' words.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::PossibleValuesParser;
use ttft_judge::rosetta::{self, Peer, Rosetta, RosettaFold};
use ttft_judge::{RunFold, Summary};
use ttft_model::Record;
use ttft_store::{Events, StoredRun, read_run};

use crate::exit::Exit;
use crate::{output, scraped, usage};

/// The name that stands for all tools.
const ALL: &str = "all";

/// Show the summary of a run again; also of one that was killed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft report runs/2026-11-30T16-20-05Z-run
  ttft report runs/* --json
  ttft report RUN --as vllm,guidellm    what these tools would have said of the same streams
  ttft report RUN --as all
  ttft report RUN --require-clean        fails if anything contaminated the run")]
pub(crate) struct Args {
    /// Run folders
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Show TTFT, TPOT and ITL as these tools define them, beside ours; `all` for every one
    #[arg(
        long = "as",
        value_name = "TOOL",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(rosetta::names().chain([ALL]))
    )]
    tools: Vec<String>,
    /// Exit with 1 when anything contaminated a run: cache hits, a cold start, others' traffic, a restart, …
    #[arg(long, conflicts_with = "tools")]
    require_clean: bool,
    /// Print summaries as JSON, one document a run
    #[arg(long)]
    json: bool,
}

/// Shows each run.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let peers = peers(&args.tools)?;
    let mut exit = Exit::Ok;
    for path in &args.runs {
        if peers.is_empty() {
            let summary = summarise(path).map_err(usage)?;
            output::show(args.json, &summary, |style| ttft_show::summary_text(&summary, style))?;
            if args.require_clean && !is_clean(&summary) {
                exit = Exit::Failed;
            }
        } else {
            let told = translate(path, &peers).map_err(usage)?;
            output::show(args.json, &told, |style| ttft_show::rosetta_text(&told, style))?;
        }
    }
    Ok(exit)
}

/// Whether nothing contaminated the run; says what did.
pub(crate) fn is_clean(summary: &Summary) -> bool {
    let found: Vec<&str> = summary.unclean().map(|finding| finding.what.as_str()).collect();
    if !found.is_empty() {
        output::note(&format!(
            "not clean, as --require-clean asks: {}",
            ttft_show::escape(&found.join("; "))
        ));
    }
    found.is_empty()
}

/// The tools of these names, each once, in the order asked.
fn peers(names: &[String]) -> anyhow::Result<Vec<Peer>> {
    let mut wanted: Vec<&str> = Vec::new();
    for name in names {
        let more: Vec<&str> = if name == ALL { rosetta::names().collect() } else { vec![name] };
        for name in more {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
    }
    let found: Result<Vec<Peer>, _> = wanted.into_iter().map(rosetta::peer).collect();
    found.map_err(usage)
}

/// Sums up a run from its folder: the one way to a summary, for a run just ended as for an old one.
pub(crate) fn summarise(path: &Path) -> anyhow::Result<Summary> {
    let stored = open(path)?;
    let mut fold = RunFold::new(&stored.run)?;
    each_record(path, &stored, |record| fold.push(record))?;
    let scraped = scraped::read(path)?;
    let mut summary = fold.finish(&scraped.stages);
    summary.run.engine = scraped.engine;
    Ok(summary)
}

/// A run in the words of other tools.
fn translate(path: &Path, peers: &[Peer]) -> anyhow::Result<Rosetta> {
    let stored = open(path)?;
    let mut fold = RosettaFold::new(&stored.run, peers);
    each_record(path, &stored, |record| fold.push(record))?;
    Ok(fold.finish())
}

pub(crate) fn open(path: &Path) -> anyhow::Result<StoredRun> {
    let facts = path.join(ttft_store::names::RUN);
    if !facts.exists() {
        bail!("{} is no run folder: it has no {}", path.display(), ttft_store::names::RUN);
    }
    Ok(read_run(path)?)
}

pub(crate) fn each_record(
    path: &Path,
    stored: &StoredRun,
    mut push: impl FnMut(&Record),
) -> anyhow::Result<()> {
    let mut requests = stored.requests(Events::Load)?;
    while let Some(batch) =
        requests.next_batch().with_context(|| format!("cannot read {}", path.display()))?
    {
        batch.iter().for_each(&mut push);
    }
    if requests.truncated_bytes() > 0 {
        output::note(&format!(
            "{}: the last {} bytes are an unfinished batch and are passed over",
            path.display(),
            requests.truncated_bytes()
        ));
    }
    Ok(())
}
