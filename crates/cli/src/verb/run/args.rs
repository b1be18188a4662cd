//! What `ttft run` takes.

use std::path::PathBuf;

use ttft_model::{Arrival, SaveStreams, Span};
use ttft_plan::dataset::Format;

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
  ttft run --plan runs/2026-11-30T16-20-05Z-run/plan.toml

A stage ends at --requests or --duration, whichever comes first; with neither after 10 s.
Ctrl-C ends a run in order and keeps everything.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub prompt: PromptArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub timeouts: TimeoutArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Take a word for a token: do not ask the server first how many tokens it counts (two short requests, when
    /// prompts are made of words and --prompt-tokens or --trace says how long)
    #[arg(long, help_heading = "Prompt and answer")]
    pub no_calibrate: bool,
    /// Objective, METRIC<VALUE or METRIC_pNN<VALUE, such as 'ttft_p95<2s'; may be repeated. A missed one makes
    /// the exit code 1
    #[arg(long, help_heading = RUN, value_name = "SLO")]
    pub slo: Vec<String>,
    /// Repeat the run of this plan file; only URL, model, key, headers, name, out and seed may be given beside it
    #[arg(long, help_heading = RUN, value_name = "FILE", conflicts_with_all = FIXED_BY_A_PLAN)]
    pub plan: Option<PathBuf>,
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

/// What a plan says, and flags beside it cannot.
const FIXED_BY_A_PLAN: [&str; 43] = [
    "dialect",
    "http",
    "insecure",
    "ca",
    "resolve",
    "request_id_header",
    "prompt",
    "prompt_tokens",
    "dataset",
    "tokenizer",
    "prefix_groups",
    "prefix_tokens",
    "prefix_pick",
    "images",
    "image_size",
    "max_tokens",
    "ignore_eos",
    "body_json",
    "concurrency",
    "rate",
    "arrival",
    "max_in_flight",
    "trace",
    "trace_format",
    "speed",
    "smooth",
    "no_calibrate",
    "requests",
    "duration",
    "ramp_up",
    "warmup",
    "drain",
    "connections",
    "streams_per_connection",
    "cache",
    "workers",
    "realtime",
    "save_streams",
    "timeout_connect",
    "timeout_first_token",
    "timeout_idle",
    "timeout_total",
    "slo",
];

/// How much is asked, when.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Closed loop: this many users, each of which waits for its answers; a list makes a stage of each
    /// [default: 1,8,16,32]
    #[arg(long, short, value_name = "N,…", value_delimiter = ',', value_parser = count, conflicts_with = "rate")]
    pub concurrency: Vec<u64>,
    /// Open loop: this many requests a second, however slow the answers; a list makes a stage of each
    #[arg(long, short, value_name = "R,…", value_delimiter = ',', value_parser = parse_rate, allow_negative_numbers = true, group = "open")]
    pub rate: Vec<f64>,
    /// Gaps of an open loop: constant, poisson, or gamma:SHAPE (below 1 is burstier)
    #[arg(long, value_parser = parse_arrival, default_value = "poisson", requires = "rate", conflicts_with = "concurrency")]
    pub arrival: Arrival,
    /// Arrivals over this many in flight wait; the wait shows in send_lag
    #[arg(long, value_name = "N", value_parser = count, requires = "open", conflicts_with = "concurrency")]
    pub max_in_flight: Option<u64>,
    /// Trace replay: requests of the recorded lengths at the recorded times (Mooncake jsonl, Azure csv, BurstGPT
    /// csv); equal hash-id prefixes share their words, which a cold cache does not show: see --cache
    #[arg(long, value_name = "FILE", group = "open", conflicts_with_all = ["concurrency", "prompt", "prompt_tokens", "dataset", "ramp_up"])]
    pub trace: Option<String>,
    /// The trace's format [default: told from its content]; guidellm is seconds where mooncake is milliseconds
    #[arg(long, value_name = "F", requires = "trace")]
    pub trace_format: Option<Format>,
    /// So many times as fast as recorded; a list makes a stage of each [default: 1]
    #[arg(long, value_name = "X,…", value_delimiter = ',', value_parser = parse_speed, requires = "trace")]
    pub speed: Vec<f64>,
    /// Spread the requests of one recorded instant evenly to the next one
    #[arg(long, requires = "trace")]
    pub smooth: bool,
    /// Requests of a stage
    #[arg(long, short = 'n', value_name = "N", value_parser = count)]
    pub requests: Option<u64>,
    /// Time of a stage
    #[arg(long, short, value_name = "TIME")]
    pub duration: Option<Span>,
    /// The users of a closed loop begin evenly over this time
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "rate")]
    pub ramp_up: Span,
    /// Requests sent first, kept and marked, never counted; 0 switches it off
    #[arg(long, value_name = "N", value_parser = count, default_value = "10")]
    pub warmup: u64,
    /// How long requests under way may still run at a stage's end
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub drain: Span,
    /// Connections: reuse, new (one for each request), or per-user
    #[arg(long, value_parser = ["reuse", "new", "per-user"], default_value = "reuse")]
    pub connections: String,
    /// HTTP/2 streams that may share a connection
    #[arg(long, value_name = "N", value_parser = count, default_value = "8")]
    pub streams_per_connection: u64,
    /// What the server's prefix cache may hold: cold (a unique salt at the front of each prompt), warm, or as-is
    #[arg(long, value_parser = ["cold", "warm", "as-is"], default_value = "cold")]
    pub cache: String,
    /// Worker threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = count)]
    pub workers: Option<u64>,
    /// Ask for real-time scheduling (SCHED_FIFO) of the workers
    #[arg(long)]
    pub realtime: bool,
    /// Keep answers as they came, in the run folder's streams/: errors, all, or the first N of each stage; `ttft
    /// decode` reads them
    #[arg(long, value_name = "WHICH", value_parser = parse_save)]
    pub save_streams: Option<SaveStreams>,
}

fn parse_save(text: &str) -> Result<SaveStreams, String> {
    match text {
        "errors" => Ok(SaveStreams::Errors),
        "all" => Ok(SaveStreams::All),
        n => count(n).map(SaveStreams::First).map_err(|_| "there are errors, all, and a number".to_owned()),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e7 => Ok(rate),
        _ => Err("it is requests a second, above 0, for instance 2 or 0.5".to_owned()),
    }
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed > 0.0 && speed <= 1e6 => Ok(speed),
        _ => Err("it is a factor above 0: 2 is twice as fast".to_owned()),
    }
}

fn parse_arrival(text: &str) -> Result<Arrival, String> {
    match text {
        "constant" => Ok(Arrival::Constant),
        "poisson" => Ok(Arrival::Poisson),
        other => match other.strip_prefix("gamma:").and_then(|shape| shape.parse::<f64>().ok()) {
            Some(shape) if shape > 0.0 && shape.is_finite() => Ok(Arrival::Gamma(shape)),
            _ => Err("there are constant, poisson and gamma:SHAPE, for instance gamma:0.5".to_owned()),
        },
    }
}
