//! `ttft report`: the summary of a run that is on disk, finished or not.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ttft_judge::{RunFold, Summary};
use ttft_store::{Events, read_run};

use crate::exit::Exit;
use crate::{output, usage};

/// Show the summary of a run again; also of one that was killed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft report runs/2026-11-30T16-20-05Z-run
  ttft report runs/* --json")]
pub(crate) struct Args {
    /// Run folders
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Print summaries as JSON, one document a run
    #[arg(long)]
    json: bool,
}

/// Shows each run.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    for path in &args.runs {
        let summary = summarise(path).map_err(usage)?;
        output::show(args.json, &summary, |style| ttft_show::summary_text(&summary, style))?;
    }
    Ok(Exit::Ok)
}

/// Sums up a run from its folder: the one way to a summary, for a run just ended as for an old one.
pub(crate) fn summarise(path: &Path) -> anyhow::Result<Summary> {
    let facts = path.join(ttft_store::names::RUN);
    if !facts.exists() {
        bail!("{} is no run folder: it has no {}", path.display(), ttft_store::names::RUN);
    }
    let stored = read_run(path)?;
    let mut fold = RunFold::new(&stored.run)?;
    let mut requests = stored.requests(Events::Load)?;
    while let Some(batch) =
        requests.next_batch().with_context(|| format!("cannot read {}", path.display()))?
    {
        for record in &batch {
            fold.push(record);
        }
    }
    if requests.truncated_bytes() > 0 {
        output::note(&format!(
            "{}: the last {} bytes are an unfinished batch and are passed over",
            path.display(),
            requests.truncated_bytes()
        ));
    }
    Ok(fold.finish())
}
