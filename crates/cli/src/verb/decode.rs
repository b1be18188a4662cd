//! `ttft decode`: recorded streams, offline.

use std::path::PathBuf;

use anyhow::Context;
use ttft_dialect::{DecodeOptions, decode_answers, decode_set};

use crate::endpoint::load_dialect;
use crate::exit::Exit;
use crate::{output, usage};

/// Decode recorded streams: what came when, and how it ended
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft decode stream.sse
  ttft decode input.timeline.jsonl --json
  ttft decode streams/*.jsonl --json             several files: a set with its own statistics

Reads timelines (JSON lines of reads with instants), captures, and raw bodies (no instants).")]
pub(crate) struct Args {
    /// Recordings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Stream dialect: a name, or a TOML file. By default told from the recording
    #[arg(long)]
    dialect: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Decodes one recording, or a set of them.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let dialect = args.dialect.as_deref().map(load_dialect).transpose()?;
    let options = DecodeOptions { dialect };
    let text = match args.files.as_slice() {
        [file] => {
            let mut answers = decode_answers(file, &options).map_err(usage)?;
            if answers.len() == 1 {
                json(&answers.remove(0))?
            } else {
                json(&decode_set(&args.files, &options)?)?
            }
        }
        files => json(&decode_set(files, &options).map_err(usage)?)?,
    };
    // The text form is the same tree, for now without a table of events.
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn json(value: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value).context("cannot write JSON")?))
}
