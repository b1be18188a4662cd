//! What `ttft run` takes.

use std::path::PathBuf;

use ttft_model::{Arrival, SaveStreams, Span, Think};
use ttft_plan::dataset::Format;
use ttft_plan::file::{Ramp, share};

use super::sources::SourceArgs;
use crate::endpoint::{EndpointArgs, PromptArgs, TimeoutArgs, count};

/// Test an endpoint under load
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft run                                              the built-in simulated engine, a small sweep
  ttft run http://localhost:8000 --concurrency 1,8,16,32,64 --requests 200
  ttft run http://localhost:8000 --rate 2,4,8 --duration 60s --slo 'ttft_p95<2s'
  ttft run https://gateway.example/v1 --model big --api-key-env GATEWAY_KEY --prompt-tokens 4k
  ttft run http://localhost:8000 --trace conversation_trace.jsonl --cache as-is --duration 10m
  ttft run http://localhost:8000 --workload short:prompt-tokens=200 \\
      --workload long:prompt-tokens=8k --mix short=9,long=1 --rate 4 --duration 2m
  ttft run https://gateway.example/v1 --model small,big -c 1,8,32 --repeat 3 --shuffle --settle 5s
  ttft run https://api.example/v1 -c 4 -n 1000 --precision 5% \\
      --price-in 3 --price-out 15 --max-cost 2
  ttft run --plan ttft.toml --set stages.0.concurrency=8 --dry-run
  ttft run --plan runs/2026-11-30T16-20-05Z-run/plan.toml

A stage ends at --requests or --duration, whichever comes first; with neither after 10 s.
Ctrl-C ends a run in order and keeps everything. While it runs, TTFT is the median of the 100 answers that \
ended last.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub prompt: PromptArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub timeouts: TimeoutArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    /// A workload of a name, in the words of these flags: short:prompt-tokens=200,max-tokens=50; may be repeated, and
    /// stages are made of each unless --mix says otherwise
    #[arg(long, help_heading = "Prompt and answer", value_name = "NAME:KEY=VALUE,…")]
    pub workload: Vec<String>,
    /// Take a word for a token: do not ask the server first how many tokens it counts (two short requests, when
    /// prompts are made of words and --prompt-tokens or --trace says how long)
    #[arg(long, help_heading = "Prompt and answer")]
    pub no_calibrate: bool,
    /// Objective, METRIC<VALUE or METRIC_pNN<VALUE, such as 'ttft_p95<2s'; may be repeated. A missed one makes
    /// the exit code 1
    #[arg(long, help_heading = RUN, value_name = "SLO")]
    pub slo: Vec<String>,
    /// Exit with 1 when anything contaminated the run: cache hits, a cold start, others' traffic, a restart, …
    #[arg(long, help_heading = RUN)]
    pub require_clean: bool,
    /// Plan file: one that `ttft init` wrote, or the plan.toml of a run, to repeat it. Other flags go over what it
    /// says, see docs/plans.md; a ttft.toml is read only if it is named here
    #[arg(long, help_heading = RUN, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// One value of the plan, over all else, such as stages.0.concurrency=8 or endpoints.big.url=http://h:1; may
    /// be repeated
    #[arg(long, help_heading = RUN, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Print what would be done, with an estimate of tokens, cost and time, and send nothing
    #[arg(long, help_heading = RUN)]
    pub dry_run: bool,
    /// Short name of the run, part of its folder's name
    #[arg(long, help_heading = RUN)]
    pub name: Option<String>,
    /// Folder for the results, new or empty [default: a new one under runs/]
    #[arg(long, help_heading = RUN, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, help_heading = RUN, value_name = "N")]
    pub seed: Option<u64>,
    /// Print summary.json on standard output, and text on standard error
    #[arg(long, help_heading = RUN)]
    pub json: bool,
}

/// Heading of what concerns the run as a whole.
const RUN: &str = "Run";

/// How much is asked, when.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Closed loop: this many users, each of which waits for its answers; a list makes a stage of each
    /// [default: 1,8,16,32]
    #[arg(long, short, value_name = "N,…", value_delimiter = ',', value_parser = some, conflicts_with = "rate")]
    pub concurrency: Vec<u64>,
    /// Open loop: this many requests a second, however slow the answers; a list makes a stage of each. 2..20 is a
    /// ramp over the stage's --duration, 2..20/5 one in 5 steps
    #[arg(long, short, value_name = "R,…", value_delimiter = ',', value_parser = parse_rate, allow_negative_numbers = true)]
    pub rate: Vec<Rate>,
    /// Gaps of an open loop: constant, poisson, or gamma:SHAPE (below 1 is burstier) [default: poisson]
    #[arg(long, value_parser = parse_arrival, conflicts_with = "concurrency")]
    pub arrival: Option<Arrival>,
    /// Arrivals over this many in flight wait; the wait shows in send_lag
    #[arg(long, value_name = "N", value_parser = some, conflicts_with = "concurrency")]
    pub max_in_flight: Option<u64>,
    /// Trace replay: requests of the recorded lengths at the recorded times (Mooncake jsonl, Azure csv, BurstGPT
    /// csv); equal hash-id prefixes share their words, which a cold cache does not show: see --cache
    #[arg(long, value_name = "FILE", conflicts_with_all = ["concurrency", "rate", "prompt", "prompt_tokens", "dataset", "ramp_up", "turns"])]
    pub trace: Option<String>,
    /// The trace's format [default: told from its content]; guidellm is seconds where mooncake is milliseconds
    #[arg(long, value_name = "F")]
    pub trace_format: Option<Format>,
    /// So many times as fast as recorded; a list makes a stage of each [default: 1]
    #[arg(long, value_name = "X,…", value_delimiter = ',', value_parser = parse_speed)]
    pub speed: Vec<f64>,
    /// Spread the requests of one recorded instant evenly to the next one
    #[arg(long)]
    pub smooth: bool,
    /// Requests of a stage
    #[arg(long, short = 'n', value_name = "N", value_parser = some)]
    pub requests: Option<u64>,
    /// Time of a stage
    #[arg(long, short, value_name = "TIME")]
    pub duration: Option<Span>,
    /// The users of a closed loop begin evenly over this time
    #[arg(long, value_name = "TIME", conflicts_with = "rate")]
    pub ramp_up: Option<Span>,
    /// Each user of a closed loop waits for so long between an answer and its next request: 2s, uniform:1s:3s or
    /// exp:2s
    #[arg(long, value_name = "TIME", conflicts_with = "rate")]
    pub think_time: Option<Think>,
    /// Several workloads at once, with their weights: short=9,long=1. Each has its own statistics
    #[arg(long, value_name = "NAME=W,…", value_delimiter = ',', value_parser = parse_weight)]
    pub mix: Vec<(String, f64)>,
    /// Play all stages so many times, one whole pass after another
    #[arg(long, value_name = "N", value_parser = some)]
    pub repeat: Option<u64>,
    /// Play the stages of each pass in an order drawn by the seed, so that what drifts does not look like a trend
    #[arg(long)]
    pub shuffle: bool,
    /// Silence before each stage but the first
    #[arg(long, value_name = "TIME")]
    pub settle: Option<Span>,
    /// End a stage when the 95 % interval of its TTFT p95 is narrower than this share of it, such as 5%; --requests
    /// is the most that may be sent
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub precision: Option<f64>,
    /// Requests sent first, kept and marked, never counted; 0 switches it off [default: 10]
    #[arg(long, value_name = "N", value_parser = count)]
    pub warmup: Option<u64>,
    /// How long requests under way may still run at a stage's end [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub drain: Option<Span>,
    /// Connections: reuse, new (one for each request), or per-user [default: reuse]
    #[arg(long, value_parser = ["reuse", "new", "per-user"])]
    pub connections: Option<String>,
    /// HTTP/2 streams that may share a connection [default: 8]
    #[arg(long, value_name = "N", value_parser = some)]
    pub streams_per_connection: Option<u64>,
    /// What the server's prefix cache may hold: cold (a unique salt at the front of each prompt), warm, or as-is
    /// [default: cold]
    #[arg(long, value_parser = ["cold", "warm", "as-is"])]
    pub cache: Option<String>,
    /// Worker threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = some)]
    pub workers: Option<u64>,
    /// Ask for real-time scheduling (SCHED_FIFO) of the workers
    #[arg(long)]
    pub realtime: bool,
    /// Keep answers as they came, in the run folder's streams/: errors, all, or the first N of each stage; `ttft
    /// decode` reads them
    #[arg(long, value_name = "WHICH", value_parser = parse_save)]
    pub save_streams: Option<SaveStreams>,
}

/// What the run may use up.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArgs {
    /// Stop, in order, before all requests together have read and generated more tokens than this
    #[arg(long, value_name = "N", value_parser = some)]
    pub max_total_tokens: Option<u64>,
    /// What a million input tokens cost; the estimate is shown before the run
    #[arg(long, value_name = "PRICE", value_parser = parse_price)]
    pub price_in: Option<f64>,
    /// What a million output tokens cost
    #[arg(long, value_name = "PRICE", value_parser = parse_price)]
    pub price_out: Option<f64>,
    /// Stop, in order, before the run costs more than this
    #[arg(long, value_name = "MONEY", value_parser = parse_price)]
    pub max_cost: Option<f64>,
}

fn parse_save(text: &str) -> Result<SaveStreams, String> {
    match text {
        "errors" => Ok(SaveStreams::Errors),
        "all" => Ok(SaveStreams::All),
        n => count(n).map(SaveStreams::First).map_err(|_| "there are errors, all, and a number".to_owned()),
    }
}

/// A rate, or a ramp of it, as it was written.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Rate {
    /// Requests a second.
    Steady(f64),
    /// `2..20`, or `2..20/5`.
    Ramp(String),
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    let ramp: Ramp = text.parse()?;
    Ok(if ramp.to.is_some() { Rate::Ramp(text.trim().to_owned()) } else { Rate::Steady(ramp.from) })
}

/// A count above 0, for clap.
fn some(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("it is 1 or more".to_owned()),
        n => Ok(n),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let is_share = |share: &f64| *share > 0.0 && *share < 1.0;
    share(text).filter(is_share).ok_or_else(|| "it is a share such as 5% or 0.05".to_owned())
}

fn parse_weight(text: &str) -> Result<(String, f64), String> {
    let pair = text.split_once('=');
    match pair.and_then(|(name, weight)| Some((name.trim(), weight.trim().parse::<f64>().ok()?))) {
        Some((name, weight)) if weight > 0.0 && weight.is_finite() && !name.is_empty() => {
            Ok((name.to_owned(), weight))
        }
        _ => Err("write it as NAME=WEIGHT, for instance short=9,long=1".to_owned()),
    }
}

fn parse_price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price >= 0.0 && price.is_finite() => Ok(price),
        _ => Err("it is an amount of money, such as 2.5".to_owned()),
    }
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed > 0.0 && speed <= 1e6 => Ok(speed),
        _ => Err("it is a factor above 0: 2 is twice as fast".to_owned()),
    }
}

/// How gaps are distributed, for clap.
pub(crate) fn parse_arrival(text: &str) -> Result<Arrival, String> {
    match text {
        "constant" => Ok(Arrival::Constant),
        "poisson" => Ok(Arrival::Poisson),
        other => match other.strip_prefix("gamma:").and_then(|shape| shape.parse::<f64>().ok()) {
            Some(shape) if shape > 0.0 && shape.is_finite() => Ok(Arrival::Gamma(shape)),
            _ => Err("there are constant, poisson and gamma:SHAPE, for instance gamma:0.5".to_owned()),
        },
    }
}
