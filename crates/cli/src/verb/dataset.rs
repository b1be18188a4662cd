//! `ttft dataset`: what a file of prompts or a trace holds.

mod text;

use std::path::PathBuf;

use ttft_plan::dataset::{Format, survey};

use crate::exit::Exit;
use crate::{output, usage};

/// Say what a file of prompts or a trace holds
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft dataset AzureLLMInferenceTrace_code.csv
  ttft dataset conversation_trace.jsonl --json
  ttft dataset trace.jsonl --format guidellm      timestamps in seconds, not milliseconds

Reads Mooncake jsonl, Azure csv (2023 and 2024), BurstGPT csv, ShareGPT json, OpenAI messages jsonl, the \
jsonl of AIPerf, GuideLLM and vLLM, and plain text; also packed by gzip. The format is told from the content. \
What is wrong with a file is named with its lines.")]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its format: mooncake, azure, burstgpt, sharegpt, messages, aiperf, guidellm, vllm, prompts or text. By
    /// default told from the content
    #[arg(long, value_name = "F")]
    format: Option<Format>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads the file and says what it holds.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let survey = survey(&args.file, args.format).map_err(usage)?;
    output::show(args.json, &survey, |_| text::survey(&survey))?;
    // A file without one readable record holds nothing.
    Ok(if survey.requests == 0 { Exit::NotMeasured } else { Exit::Ok })
}
