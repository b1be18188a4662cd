//! `ttft`: load tests of services that stream LLM answers, with an honest time to first token.

#![forbid(unsafe_code)]
#![allow(clippy::doc_markdown, reason = "doc comments of arguments are help texts, shown as they are")]

mod endpoint;
mod exit;
mod model;
mod output;
mod progress;
mod recording;
mod scraped;
mod signals;
mod simulator;
mod verb;

use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::verb::{check, dataset, decode, dialects, find, init, metrics, report, run, sim, trace};

/// Load tests of services that stream LLM answers, with an honest time to first token.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
First steps:
  ttft run                            test the built-in simulated engine
  ttft check http://localhost:8000    one request: what does this endpoint do?
  ttft run http://localhost:8000 --concurrency 1,8,16,32 --requests 200
  ttft init                           a commented plan file, for ttft run --plan

Exit codes: 0 ok, 1 the measured thing failed, 2 usage, 3 could not measure, 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(Box<run::Args>),
    Check(Box<check::Args>),
    Find(Box<find::Args>),
    Init(init::Args),
    Report(report::Args),
    Decode(decode::Args),
    Dataset(dataset::Args),
    Dialects(dialects::Args),
    Metrics(metrics::Args),
    Sim(sim::Args),
    Trace(trace::Args),
}

fn main() -> std::process::ExitCode {
    ttft_kernel::outlive_file_size_limit();
    let result = match Cli::parse().verb {
        Verb::Run(args) => run::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Find(args) => find::run(&args),
        Verb::Init(args) => init::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Decode(args) => decode::run(&args),
        Verb::Dataset(args) => dataset::run(&args),
        Verb::Dialects(args) => dialects::run(&args),
        Verb::Metrics(args) => metrics::run(&args),
        Verb::Sim(args) => sim::run(args),
        Verb::Trace(args) => trace::run(&args),
    };
    exit::report(result).into()
}

/// An error of usage: exit code 2.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    error.into().context(Exit::Usage)
}
