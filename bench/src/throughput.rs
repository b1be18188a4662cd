//! What a request and an event cost on one core, beside other load testers at the same work.

use anyhow::Context;
use clap::Args as ClapArgs;
use serde::Serialize;

use crate::cpu::Cpu;
use crate::engine;
use crate::noise::{Noise, NoiseMeter};
use crate::peers::{Cost, Load, Peer};
use crate::quiet::Patience;
use crate::report::{Report, note};
use crate::table::{Table, figure};
use crate::ttft::LoadTest;

/// What `throughput` takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Leave the other tools out
    #[arg(long)]
    alone: bool,
    /// Times that a load is tried when others used the cores meanwhile; the quietest try counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    tries: u32,
}

/// What every tool is asked to do.
struct Work {
    name: &'static str,
    load: Load,
    events_per_write: u32,
}

/// The engine writes as fast as the sockets take it. With one event in a write both sides are bound by what the
/// kernel takes for a segment; with several in a write, the client is.
const WORKS: [Work; 3] = [
    Work {
        name: "one-token requests",
        load: Load { streams: 64, requests: 100_000, tokens: 1, details: false },
        events_per_write: 1,
    },
    Work {
        name: "events, one a write",
        load: Load { streams: 16, requests: 640, tokens: 2_000, details: false },
        events_per_write: 1,
    },
    Work {
        name: "events, eight a write",
        load: Load { streams: 16, requests: 1_280, tokens: 2_000, details: false },
        events_per_write: 8,
    },
];

/// What one tool took for one load, start-up and end left out by taking away a run of one round.
#[derive(Debug, Serialize)]
struct Row {
    tool: &'static str,
    load: &'static str,
    /// Requests or events per second.
    per_s: f64,
    /// CPU time of the whole process, µs for each request or event.
    cpu_us: f64,
    /// Of this, in the program itself; the rest is the kernel's.
    user_us: f64,
    /// CPU time of the worker thread alone; only of ttft.
    worker_us: Option<f64>,
    noise: Noise,
}

/// Measures ttft and the tools that are installed.
pub(crate) fn run(args: &Args, patience: &mut Patience) -> anyhow::Result<Report> {
    let mut rows = Vec::new();
    for work in WORKS {
        rows.push(quietest(args.tries, patience, || ttft(&work))?);
        for peer in Peer::ALL.into_iter().filter(|_| !args.alone) {
            if !peer.is_installed() {
                note(&format!("{}: not installed; see bench/peers/install", peer.name()));
                continue;
            }
            match quietest(args.tries, patience, || beside(peer, &work)) {
                Ok(row) => rows.push(row),
                Err(e) => note(&format!("{}: left out: {e:#}", peer.name())),
            }
        }
    }
    Report::new("throughput: one client on one core", text(&rows), &rows)
}

fn quietest(
    tries: u32,
    patience: &mut Patience,
    mut measure: impl FnMut() -> anyhow::Result<Row>,
) -> anyhow::Result<Row> {
    let mut best: Option<Row> = None;
    for _ in 0..tries.max(1) {
        patience.wait()?;
        let row = measure()?;
        note(&format!(
            "{}, {}: {:.2} µs each, others used {:.0} % of a core",
            row.tool,
            row.load,
            row.cpu_us,
            row.noise.worst()
        ));
        if best.as_ref().is_none_or(|best| row.noise.worst() < best.noise.worst()) {
            best = Some(row);
        }
        if best.as_ref().is_some_and(|best| !best.noise.is_noisy()) {
            break;
        }
    }
    best.context("nothing was measured")
}

/// How many units a run of that many requests has.
fn units(load: Load, requests: u64) -> f64 {
    // With one token a request is the unit; else each token is one event.
    (requests * load.tokens) as f64
}

fn ttft(work: &Work) -> anyhow::Result<Row> {
    let load = work.load;
    let sim = engine::instant(work.events_per_write)?;
    let url = format!("http://{}", sim.addr());
    let folder = tempfile::tempdir()?;
    let run = |requests: u64| {
        let test = LoadTest {
            streams: load.streams,
            requests: Some(requests),
            tokens: load.tokens,
            ..LoadTest::default()
        };
        test.run(&url, &folder.path().join(requests.to_string()))
    };
    let small = run(load.streams)?;
    let meter = NoiseMeter::start()?;
    let large = run(load.requests)?;
    let noise = meter.finish()?;
    let units = units(load, load.requests - load.streams);
    Ok(Row {
        tool: "ttft",
        load: work.name,
        per_s: units / (large.wall - small.wall).as_secs_f64(),
        cpu_us: (large.cpu - small.cpu).total().0 as f64 / 1e3 / units,
        user_us: (large.cpu - small.cpu).user.0 as f64 / 1e3 / units,
        worker_us: Some((large.worker_cpu()? - small.worker_cpu()?).0 as f64 / 1e3 / units),
        noise,
    })
}

fn beside(peer: Peer, work: &Work) -> anyhow::Result<Row> {
    let load = work.load;
    let sim = engine::instant(work.events_per_write)?;
    let url = format!("http://{}", sim.addr());
    let folder = tempfile::tempdir()?;
    let load = Load { requests: (load.requests / peer.slower()).max(4 * load.streams), ..load };
    let small = if peer.counts() {
        peer.run(Load { requests: load.streams, ..load }, &url, folder.path())?
    } else {
        Cost { requests: 0, wall: ttft_model::Nanos::ZERO, cpu: Cpu::default() }
    };
    let meter = NoiseMeter::start()?;
    let large = peer.run(load, &url, folder.path())?;
    let noise = meter.finish()?;
    let units = units(load, large.requests - small.requests);
    Ok(Row {
        tool: peer.name(),
        load: work.name,
        per_s: units / (large.wall - small.wall).as_secs_f64(),
        cpu_us: (large.cpu - small.cpu).total().0 as f64 / 1e3 / units,
        user_us: (large.cpu - small.cpu).user.0 as f64 / 1e3 / units,
        worker_us: None,
        noise,
    })
}

fn text(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "tool",
        "load",
        "per second",
        "CPU µs each",
        "of it user",
        "worker alone µs",
        "others on core 0 %",
        "core 1 %",
    ]);
    for row in rows {
        table.row([
            row.tool.to_owned(),
            row.load.to_owned(),
            figure(Some(row.per_s), 0),
            figure(Some(row.cpu_us), 2),
            figure(Some(row.user_us), 2),
            figure(row.worker_us, 2),
            figure(Some(row.noise.server_core), 1),
            figure(Some(row.noise.client_core), 1),
        ]);
    }
    format!(
        "{}\nOne-token requests: 64 connections. Events: 16 connections, answers of 2,000 tokens. The \
         engine writes as fast as it can. A run of one round is \
         taken away from each, so that start-up does not count; all work of the end does.\n",
        table.text()
    )
}
