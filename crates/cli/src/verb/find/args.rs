//! What `ttft find` takes.

use std::path::PathBuf;

use ttft_model::{Arrival, Span};

use crate::endpoint::{EndpointArgs, PromptArgs, TimeoutArgs, count};
use crate::verb::run::sources::SourceArgs;

/// Find the highest load that keeps the objectives
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft find --slo 'ttft_p95<2s'                                    of the built-in simulated engine
  ttft find http://localhost:8000 --slo 'ttft_p95<2s' --slo 'tpot_p99<50ms'
  ttft find http://localhost:8000 --slo 'ttft<1s' --slo 'goodput>0.95' --concurrency 1..512
  ttft find http://localhost:8000 --slo 'ttft_p95<2s' --rate 0.5..50 --max-time 20m

The load is doubled until an objective is missed for sure, then the gap is halved. At each level requests are added \
until its side is clear, by tests that may be looked at as often as needed: the chance that any level is judged \
wrongly is at most 5 %. The answer is an interval: the limit is at least the one level and below the other.

Exit codes: 0 found (or the largest level still meets them), 1 missed at the smallest level already, 2 usage, \
3 could not tell, 130 interrupted.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub prompt: PromptArgs,
    #[command(flatten)]
    pub timeouts: TimeoutArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Objective, such as 'ttft_p95<2s', 'tpot_p99<50ms', 'error_rate<1%'; several are kept all at once. With
    /// 'goodput>0.95' that share of requests must keep each objective on a request, such as 'ttft<1s'
    #[arg(long, help_heading = SEARCH, value_name = "SLO", required = true)]
    pub slo: Vec<String>,
    /// Search over users of a closed loop [default: 1..256]
    #[arg(long, short, help_heading = SEARCH, value_name = "LOW..HIGH", value_parser = users, conflicts_with = "rate")]
    pub concurrency: Option<LevelRange>,
    /// Search over requests a second of an open loop
    #[arg(long, short, help_heading = SEARCH, value_name = "LOW..HIGH", value_parser = rates)]
    pub rate: Option<LevelRange>,
    /// Gaps of an open loop: constant, poisson, or gamma:SHAPE
    #[arg(long, help_heading = SEARCH, value_parser = crate::verb::run::args::parse_arrival, default_value = "poisson", requires = "rate")]
    pub arrival: Arrival,
    /// Requests at one level, at most, beside those that bring the load up
    #[arg(long, help_heading = SEARCH, value_name = "N", value_parser = at_least_100, default_value = "2000")]
    pub requests_per_level: u64,
    /// The two ends of the answer are no farther apart than this, if that can be had
    #[arg(long, help_heading = SEARCH, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub resolution: f64,
    /// Requests in all
    #[arg(long, help_heading = SEARCH, value_name = "N", value_parser = count)]
    pub max_requests: Option<u64>,
    /// Time in all; the stage under way is ended, and the answer is what is known then
    #[arg(long, help_heading = SEARCH, value_name = "TIME")]
    pub max_time: Option<Span>,
    /// Requests sent first, kept and marked, never counted; 0 switches it off [default: 10]
    #[arg(long, help_heading = SEARCH, value_name = "N", value_parser = count)]
    pub warmup: Option<u64>,
    /// What the server's prefix cache may hold: cold (a unique salt at the front of each prompt), warm, or as-is
    /// [default: cold]
    #[arg(long, help_heading = SEARCH, value_parser = ["cold", "warm", "as-is"])]
    pub cache: Option<String>,
    /// Connections: reuse, new (one for each request), or per-user [default: reuse]
    #[arg(long, help_heading = SEARCH, value_parser = ["reuse", "new", "per-user"])]
    pub connections: Option<String>,
    /// Short name of the run, part of its folder's name
    #[arg(long, help_heading = SEARCH)]
    pub name: Option<String>,
    /// Folder for the results, new or empty [default: a new one under runs/]
    #[arg(long, help_heading = SEARCH, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, help_heading = SEARCH, value_name = "N")]
    pub seed: Option<u64>,
    /// Print the answer as JSON on standard output, and text on standard error
    #[arg(long, help_heading = SEARCH)]
    pub json: bool,
}

const SEARCH: &str = "Search";

/// From one level to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LevelRange {
    pub low: f64,
    pub high: f64,
}

fn users(text: &str) -> Result<LevelRange, String> {
    let of = |text: &str| ttft_model::parse_count(text).map(|n| n as f64).map_err(|e| e.to_string());
    between(text, of)
}

fn rates(text: &str) -> Result<LevelRange, String> {
    let of = |text: &str| match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e7 => Ok(rate),
        _ => Err(format!("`{text}` is no rate; it is requests a second, above 0")),
    };
    between(text, of)
}

fn between(text: &str, of: impl Fn(&str) -> Result<f64, String>) -> Result<LevelRange, String> {
    let (low, high) = text.split_once("..").ok_or("write it as LOW..HIGH, for instance 1..256".to_owned())?;
    Ok(LevelRange { low: of(low.trim())?, high: of(high.trim())? })
}

fn share(text: &str) -> Result<f64, String> {
    let (digits, scale) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    match digits.trim().parse::<f64>().map(|share| share * scale) {
        Ok(share) if (0.001..=1.0).contains(&share) => Ok(share),
        _ => Err("it is a share from 0.1% to 100%".to_owned()),
    }
}

fn at_least_100(text: &str) -> Result<u64, String> {
    match count(text)? {
        few @ ..100 => Err(format!("{few} requests make no level clear; give it at least 100")),
        n => Ok(n),
    }
}
