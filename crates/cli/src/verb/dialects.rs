//! `ttft dialects`: the stream dialects, what one says, and whether its samples hold.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use ttft_dialect::{Dialect, Sample, test_samples};
use ttft_show::escape;

use crate::endpoint::load_dialect;
use crate::exit::Exit;
use crate::{output, usage};

/// List the stream dialects, show one, or test one of your own
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft dialects                        all that there are
  ttft dialects show gemini-sse        how one is written: a good start for another
  ttft dialects test my-dialect        dialect.toml and samples/ of that folder
  ttft run http://localhost:8000 --dialect my-dialect/dialect.toml

Exit code 1 if a sample does not come out as it must.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print a dialect's file
    Show {
        /// A name, or a TOML file
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Decode the samples of dialects and compare with what must come out
    Test {
        /// Folders with a dialect.toml and samples/, or with such folders in them
        #[arg(required = true, value_name = "FOLDER")]
        folders: Vec<PathBuf>,
    },
}

/// Does what is asked; lists the dialects if nothing is.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.action {
        None => list(args.json),
        Some(Action::Show { name }) => show(name, args.json),
        Some(Action::Test { folders }) => test(folders, args.json),
    }
}

fn list(json: bool) -> anyhow::Result<Exit> {
    let dialects: Vec<_> = Dialect::names().into_iter().filter_map(Dialect::builtin).collect();
    let all: Vec<Value> = dialects.iter().map(|dialect| facts(dialect)).collect();
    output::show(json, &all, |_| {
        let mut out = String::new();
        for dialect in &dialects {
            let (name, framing) = (dialect.name(), dialect.framing().name());
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:<20}  {framing:<15}  {}", dialect.title());
        }
        out
    })?;
    Ok(Exit::Ok)
}

fn facts(dialect: &Dialect) -> Value {
    json!({
        "name": dialect.name(),
        "title": dialect.title(),
        "framing": dialect.framing().name(),
        "path": dialect.path_template(),
    })
}

fn show(name: &str, json: bool) -> anyhow::Result<Exit> {
    let dialect = load_dialect(name)?;
    let mut form = facts(&dialect);
    form["toml"] = dialect.source().into();
    output::show(json, &form, |_| {
        // A dialect is a file of several lines; only what is between their ends could be hostile.
        let lines: Vec<_> = dialect.source().lines().map(escape).collect();
        format!("{}\n", lines.join("\n"))
    })?;
    Ok(Exit::Ok)
}

fn test(folders: &[PathBuf], json: bool) -> anyhow::Result<Exit> {
    let mut tested = Vec::new();
    for folder in folders {
        for folder in dialect_folders(folder)? {
            tested.push(test_samples(&folder).map_err(usage)?);
        }
    }
    let form: Vec<Value> = tested
        .iter()
        .map(|(dialect, samples)| json!({ "dialect": dialect.name(), "samples": samples }))
        .collect();
    output::show(json, &form, |_| {
        tested.iter().map(|(dialect, samples)| report(dialect.name(), samples)).collect()
    })?;
    let failed = tested.iter().any(|(_, samples)| samples.iter().any(|sample| !sample.problems.is_empty()));
    Ok(if failed { Exit::Failed } else { Exit::Ok })
}

/// The folder itself if it is a dialect's, else the dialects in it.
fn dialect_folders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if folder.join("dialect.toml").exists() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()));
    let mut found = Vec::new();
    for entry in entries.map_err(usage)? {
        let path = entry?.path();
        if path.join("dialect.toml").exists() {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(usage(anyhow::anyhow!("{} holds no dialect.toml", folder.display())));
    }
    Ok(found)
}

fn report(dialect: &str, samples: &[Sample]) -> String {
    let failed = samples.iter().filter(|sample| !sample.problems.is_empty()).count();
    let mut out = match (samples.len(), failed) {
        (0, _) => format!("{}: no samples\n", escape(dialect)),
        (all, 0) => format!("{}: {all} samples hold\n", escape(dialect)),
        (all, failed) => format!("{}: {failed} of {all} samples fail\n", escape(dialect)),
    };
    for sample in samples.iter().filter(|sample| !sample.problems.is_empty()) {
        for problem in &sample.problems {
            let _ = writeln!(out, "  {}: {}", escape(&sample.name), escape(problem));
        }
    }
    out
}
