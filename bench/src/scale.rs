//! Millions of requests: what a report of them needs, and what a run of them does.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::bail;
use clap::Args as ClapArgs;
use serde::Serialize;
use ttft_kernel::mono_now;
use ttft_model::{
    Channel, ClockInfo, Load, Nanos, Outcome, Plan, Record, Run, Share, Stage, StageWindow, Stamp,
    StampSource, TokenSource, Workload,
};
use ttft_store::{Place, RUN_SCHEMA, RunFolder};

use crate::CLIENT_CPU;
use crate::engine;
use crate::memory::{Sample, watch};
use crate::pinned::Pinned;
use crate::report::{Report, note};
use crate::table::Table;
use crate::ttft::{LoadTest, binary};

/// What `scale` takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Requests in the made-up run folder that is reported
    #[arg(long, value_name = "N", default_value_t = 5_000_000)]
    requests: u64,
    /// Output events of each of them
    #[arg(long, value_name = "N", default_value_t = 8)]
    events: u64,
    /// Stages that they are divided over
    #[arg(long, value_name = "N", default_value_t = 1)]
    stages: u32,
    /// Also make a run of so many requests against an engine that answers at once; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 0)]
    run: u64,
}

/// What a process needed.
#[derive(Debug, Serialize)]
struct Needed {
    what: &'static str,
    requests: u64,
    seconds: f64,
    peak_mib: Option<f64>,
    /// Of the folder.
    mib: f64,
}

/// Makes the folder, reports it, and runs the run.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let made = folder.path().join("made");
    note(&format!("writing {} requests of {} events", args.requests, args.events));
    write(args, &made)?;
    let mut command = Command::new(binary()?);
    command.arg("report").arg(&made).arg("--json");
    let mut all = vec![measure("report", command, args.requests, &made)?];
    std::fs::remove_dir_all(&made)?;
    if args.run > 0 {
        let out = folder.path().join("run");
        let sim = engine::instant(1)?;
        let test = LoadTest { streams: 64, requests: Some(args.run), tokens: 1, ..LoadTest::default() };
        let command = test.command(&format!("http://{}", sim.addr()), &out)?;
        all.push(measure("run and report", command, args.run, &out)?);
        sim.stop()?;
    }
    let mut table = Table::new(&["what", "requests", "s", "peak MiB", "folder MiB"]);
    for one in &all {
        table.row([
            one.what.to_owned(),
            one.requests.to_string(),
            format!("{:.1}", one.seconds),
            crate::table::figure(one.peak_mib, 0),
            format!("{:.0}", one.mib),
        ]);
    }
    Report::new("scale: memory and time of very many requests", table.text(), &all)
}

/// Runs a command to its end, with its time and the most memory that it had.
fn measure(what: &'static str, mut command: Command, requests: u64, folder: &Path) -> anyhow::Result<Needed> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = mono_now();
    let mut child = Pinned::start(command, CLIENT_CPU)?;
    let samples = watch(&mut child, Duration::from_millis(50), |_: &Sample| {})?;
    let seconds = (mono_now() - start).as_secs_f64();
    let peak = samples.iter().map(|sample| sample.peak_kib).max();
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    let mib = bytes as f64 / f64::from(1 << 20);
    Ok(Needed { what, requests, seconds, peak_mib: peak.map(|kib| kib as f64 / 1024.0), mib })
}

/// A run folder as the store writes it, of requests whose times vary a little.
fn write(args: &Args, out: &Path) -> anyhow::Result<()> {
    let stages = args.stages.max(1);
    let each = args.requests / u64::from(stages);
    let mut run = facts(stages);
    let mut folder = RunFolder::create(Place::Exactly(out), &run.plan, &run)?;
    let mut at = Nanos::ZERO;
    for stage in 0..stages {
        let start = at;
        let mut batch = Vec::new();
        for seq in 0..each {
            // 20,000 a second.
            at = at + Nanos(50_000);
            batch.push(record(stage, seq, at, args.events));
            if batch.len() == 4096 {
                put(&mut folder, &batch)?;
                batch.clear();
            }
        }
        put(&mut folder, &batch)?;
        let end = Some(at);
        run.stages.push(StageWindow {
            stage,
            start,
            reached: start,
            dry: end,
            end,
            ..StageWindow::default()
        });
    }
    run.ended_ns = Some(at.0);
    folder.finish(&run)?;
    Ok(())
}

/// Adds rows; a full disk is an error.
fn put(folder: &mut RunFolder, batch: &[Record]) -> anyhow::Result<()> {
    match folder.append(batch)?.stop_reason() {
        Some(why) => bail!("{why}"),
        None => Ok(()),
    }
}

fn facts(stages: u32) -> Run {
    let stage = |i: u32| Stage {
        name: format!("c{}", 64 + i),
        mix: Share::whole("w"),
        load: Load::closed(64 + i),
        ..Stage::default()
    };
    Run {
        schema: RUN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: "scale".to_owned(),
        command: Vec::new(),
        host: "host".to_owned(),
        kernel: "kernel".to_owned(),
        cpus: 2,
        governor: None,
        clock: ClockInfo {
            receive: StampSource::Kernel,
            transmit: true,
            wall_steps: 0,
            note: String::new(),
            realtime: false,
        },
        zero_unix_ns: 0,
        zero_monotonic_ns: 0,
        ended_ns: None,
        interrupted: false,
        stopped_by: None,
        server: None,
        stages: Vec::new(),
        plan: Plan {
            name: "scale".to_owned(),
            workloads: vec![Workload { name: "w".to_owned(), ..Workload::default() }],
            stages: (0..stages).map(stage).collect(),
            ..Plan::default()
        },
    }
}

/// A request of which every instant is a different one, so that no column is cheaper than in a real run.
fn record(stage: u32, seq: u64, started: Nanos, events: u64) -> Record {
    // Weyl's sequence: even over the range, and never the same twice.
    let noise = |salt: u64| (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt << 40) >> 44) as i64;
    let stamp = |at: Nanos, salt: u64| {
        Some(Stamp { kernel: Some(at), user: at + Nanos(10_000 + noise(salt) % 5_000) })
    };
    let mut r = Record { stage, seq, token_source: TokenSource::Usage, ..Record::default() };
    let sent = started + Nanos(20_000 + noise(1) % 9_000);
    (r.phases.scheduled, r.phases.started) = (started, started);
    (r.phases.connected, r.phases.sent_first, r.phases.sent) = (Some(started), Some(sent), Some(sent));
    r.connection.reused = true;
    r.connection.http = 1;
    r.status = Some(200);
    let first = started + Nanos(900_000 + noise(2));
    r.phases.headers = stamp(first - Nanos(100_000), 3);
    let mut at = first;
    for event in 0..events {
        at = first + Nanos(event as i64 * (300_000 + noise(4) / 9));
        r.answer.events.push(at, 1, Channel::Text, false);
    }
    r.answer.first_byte = stamp(first, 5);
    r.answer.first_event = stamp(first, 5);
    r.answer.first_token = stamp(first, 5);
    r.answer.first_answer = r.answer.first_token;
    r.answer.last_token = stamp(at, 6);
    r.answer.ended = stamp(at + Nanos(5_000), 7);
    r.answer.usage.input = Some(100 + seq % 50);
    r.answer.usage.output = Some(events);
    r.answer.outcome = Some(Outcome::Ok);
    r.answer.facts.streamed = true;
    r.answer.facts.terminator = true;
    r.finished = at + Nanos(6_000);
    r
}
