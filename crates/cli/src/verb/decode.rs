//! `ttft decode`: recorded streams, offline.

mod text;

use std::path::PathBuf;

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
  curl -isN https://… > answer.http; ttft decode --headers answer.http

Reads timelines (JSON lines of reads with instants), captures, and raw bodies (no instants), with the \
HTTP head before them or without. How the dialect is told: by the path of the request if the recording \
has one, else by what the body looks like.")]
pub(crate) struct Args {
    /// Recordings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Stream dialect: a name, or a TOML file. By default told from the recording
    #[arg(long)]
    dialect: Option<String>,
    /// The files begin with an HTTP head; it is an error if one does not
    #[arg(long)]
    headers: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Decodes one recording, or a set of them.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let dialect = args.dialect.as_deref().map(load_dialect).transpose()?;
    let options = DecodeOptions { dialect, headers: args.headers };
    if let [file] = args.files.as_slice() {
        let answers = decode_answers(file, &options).map_err(usage)?;
        if let [answer] = answers.as_slice() {
            // Whoever wants JSON has the events there.
            let list = !args.json;
            output::show(args.json, answer, |_| text::answer(answer, list))?;
            return Ok(Exit::Ok);
        }
    }
    let set = decode_set(&args.files, &options).map_err(usage)?;
    output::show(args.json, &set, |_| text::set(&set))?;
    Ok(Exit::Ok)
}
