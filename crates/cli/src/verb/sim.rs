//! `ttft sim`: the simulated engine as a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use ttft_kernel::{Anchor, raise_open_files};
use ttft_sim::{Faults, Profile, Sim, SimOptions};

use crate::exit::Exit;
use crate::{output, usage};

/// Serve a simulated LLM engine: real sockets, real time, continuous batching, faults on demand
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft sim --port 8000
  ttft sim --port 8000 --profile fixed --ttft-ms 200 --itl-ms 20 --truth truth.jsonl
  ttft sim --port 8000 --fault cut=5@0.1 --fault status=503@0.05

It speaks /v1/chat/completions, /v1/completions, /v1/models, /tokenize, /health and /metrics.
A request can ask for a fault of its own by the header `x-sim-fault: NAME=VALUE`.")]
pub(crate) struct Args {
    /// Port; 0 takes a free one, which is printed
    #[arg(long, short, default_value_t = 8000)]
    port: u16,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: std::net::IpAddr,
    /// How fast it is: a name (default, fixed, instant), or a TOML file
    #[arg(long, default_value = "default")]
    profile: String,
    /// Time to first token of a profile with fixed times, in ms
    #[arg(long, value_name = "MS")]
    ttft_ms: Option<f64>,
    /// Time between tokens of a profile with fixed times, in ms
    #[arg(long, value_name = "MS")]
    itl_ms: Option<f64>,
    /// Misbehave: NAME, NAME=VALUE, with @SHARE for a part of the requests; may be repeated. `--fault help` lists them
    #[arg(long, value_name = "FAULT")]
    fault: Vec<String>,
    /// Write what really happened, one JSON line a request
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Ask for this key
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// Serve only this model; may be repeated
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Seed of lengths, texts and faults
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Run on this core
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Tell each request's own times in the usage chunk, as vLLM does with --enable-per-request-metrics
    #[arg(long)]
    per_request_metrics: bool,
    /// Print one JSON object on standard output once it listens: its `url`
    #[arg(long)]
    json: bool,
}

/// Serves until the process is ended.
pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    if args.fault.iter().any(|fault| fault == "help") {
        let lines = Faults::all().iter().map(|(form, what)| format!("{form:<26} {what}"));
        output::print(&(lines.collect::<Vec<_>>().join("\n") + "\n"))?;
        return Ok(Exit::Ok);
    }
    let profile = Profile::load(&args.profile).map_err(usage)?;
    let profile = profile.with_times(args.ttft_ms, args.itl_ms).map_err(usage)?;
    let faults = Faults::parse(args.fault.iter().map(String::as_str)).map_err(usage)?;
    raise_open_files();
    let _anchor = Anchor::establish();
    let options = SimOptions {
        listen: SocketAddr::new(args.host, args.port),
        faults,
        truth: args.truth,
        api_key: args.api_key,
        models: args.model,
        seed: args.seed,
        cpu: args.cpu,
        per_request_metrics: args.per_request_metrics,
        ..SimOptions::new(profile)
    };
    Sim::run_here(options, |addr| {
        let url = format!("http://{addr}");
        output::note(&format!("listening on {url}"));
        if args.json {
            // Who started it and reads no more still has a server.
            let _ = output::print(&format!("{}\n", serde_json::json!({ "url": url })));
        }
    })?;
    Ok(Exit::Ok)
}
