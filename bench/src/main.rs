//! `ttft-bench`: how right and how fast the load tester is on this machine.
//!
//! Each benchmark puts a simulated engine on one core and `ttft run` on another, and judges what the client says
//! by what the engine's own log says. Linux only: it reads `/proc` and pins processes to cores.

#![forbid(unsafe_code)]

mod accuracy;
mod cpu;
mod engine;
mod machine;
mod memory;
mod noise;
mod peers;
mod pinned;
mod quiet;
mod report;
mod scale;
mod soak;
mod spin;
mod spread;
mod start;
mod table;
mod throughput;
mod truth;
mod ttft;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::quiet::Patience;

/// The core of the simulated engine, and of this process.
const SERVER_CPU: usize = 0;
/// The core of the client under test.
const CLIENT_CPU: usize = 1;

/// Benchmarks of ttft: engine on core 0, client on core 1
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
    /// Write the figures to this file too
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Seconds to wait, all in all, for others to leave the two cores; then it measures all the same, and says so
    #[arg(long, global = true, value_name = "N", default_value_t = 600)]
    wait: u32,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Reported against true time to first token, request by request
    Accuracy(accuracy::Args),
    /// CPU time of a one-token request and of an event, beside other load testers
    Throughput(throughput::Args),
    /// Resident memory of an open stream
    Memory(memory::Args),
    /// Resident memory over a long steady load
    Soak(soak::Args),
    /// Memory and time of a report, and of a run, of millions of requests
    Scale(scale::Args),
    /// From exec to the first request on the wire
    Start(start::Args),
    /// Burn this process's core until killed
    #[command(hide = true)]
    Spin,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    if matches!(cli.what, What::Spin) {
        spin::forever();
    }
    ttft_kernel::raise_open_files();
    ttft_kernel::pin_to_cpu(SERVER_CPU)?;
    let mut patience = Patience::new(cli.wait);
    let report = match cli.what {
        What::Accuracy(args) => accuracy::run(&args, &mut patience)?,
        What::Throughput(args) => throughput::run(&args, &mut patience)?,
        What::Memory(args) => memory::run(&args, &mut patience)?,
        What::Soak(args) => soak::run(&args)?,
        What::Scale(args) => scale::run(&args)?,
        What::Start(args) => start::run(&args, &mut patience)?,
        What::Spin => return Ok(()),
    };
    report.publish(cli.json.as_deref())
}
