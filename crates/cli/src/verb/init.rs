//! `ttft init`: a commented plan file to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use ttft_plan::file::TEMPLATE;

use crate::exit::Exit;
use crate::{output, usage};

/// Write a commented plan file, to be run with `ttft run --plan`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft init                           writes ttft.toml: every key with what it does and its default
  ttft init nightly.toml
  ttft init - | less                  to standard output
  ttft run --plan ttft.toml --dry-run

A plan file is read only where it is named by --plan. The plan.toml of a run folder is one as well: it repeats the run.")]
pub(crate) struct Args {
    /// The file; `-` is standard output
    #[arg(default_value = "ttft.toml")]
    file: PathBuf,
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
    /// Print JSON on standard output: the file's name and its text
    #[arg(long)]
    json: bool,
}

/// Writes the file.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let name = args.file.display().to_string();
    let is_file = name != "-";
    if is_file {
        write(args)?;
    }
    match (args.json, is_file) {
        (true, _) => output::print(&output::json_text(
            &serde_json::json!({ "file": is_file.then_some(&name), "text": TEMPLATE }),
        )?)?,
        (false, true) => {
            output::note(&format!("{name} written; edit it, then: ttft run --plan {name}"));
        }
        (false, false) => output::print(TEMPLATE)?,
    }
    Ok(Exit::Ok)
}

fn write(args: &Args) -> anyhow::Result<()> {
    let path = &args.file;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(args.force).create_new(!args.force);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            usage(anyhow!("{} is there already: name another, or overwrite it with --force", path.display()))
        }
        _ => usage(anyhow::Error::new(error).context(format!("cannot write {}", path.display()))),
    })?;
    file.write_all(TEMPLATE.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}
