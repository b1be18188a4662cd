//! Resident memory of an open stream: the client with many streams, less the client with one.

mod sampler;

use clap::Args as ClapArgs;
use serde::Serialize;

use crate::CLIENT_CPU;
use crate::engine;
use crate::pinned::Pinned;
use crate::quiet::Patience;
use crate::report::Report;
use crate::table::Table;
use crate::ttft::LoadTest;

pub(crate) use sampler::{Sample, watch};

/// What `memory` takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Open streams, one measurement each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 10_000])]
    streams: Vec<u64>,
    /// Output tokens of a stream, at two a second
    #[arg(long, value_name = "N", default_value_t = 16)]
    tokens: u64,
}

/// One measurement, in KiB.
#[derive(Debug, Serialize)]
struct Row {
    streams: u64,
    /// The most that `ttft run` said were in flight.
    in_flight: u32,
    /// The largest sample while requests ran.
    resident_kib: u64,
    /// The largest over the process's life, its summary included.
    peak_kib: u64,
    kib_per_stream: f64,
}

/// Measures one stream, then each of the numbers asked for.
pub(crate) fn run(args: &Args, patience: &mut Patience) -> anyhow::Result<Report> {
    patience.wait()?;
    let alone = measure(1, args.tokens)?;
    let mut rows = Vec::new();
    for &streams in &args.streams {
        let mut row = measure(streams, args.tokens)?;
        row.kib_per_stream =
            (row.resident_kib as f64 - alone.resident_kib as f64) / streams.saturating_sub(1).max(1) as f64;
        rows.push(row);
    }
    let mut table = Table::new(&["streams", "in flight", "resident KiB", "peak KiB", "KiB a stream"]);
    for row in std::iter::once(&alone).chain(&rows) {
        table.row([
            row.streams.to_string(),
            row.in_flight.to_string(),
            row.resident_kib.to_string(),
            row.peak_kib.to_string(),
            if row.streams == 1 { "–".to_owned() } else { format!("{:.1}", row.kib_per_stream) },
        ]);
    }
    Report::new("memory: resident memory of the client", table.text(), &(alone, rows))
}

fn measure(streams: u64, tokens: u64) -> anyhow::Result<Row> {
    let folder = tempfile::tempdir()?;
    let sim = engine::fixed(200.0, 500.0, None)?;
    let out = folder.path().join("run");
    // Two requests a stream: buffers are as large as they get, and connections are used again.
    let test = LoadTest { streams, requests: Some(2 * streams), tokens, ..LoadTest::default() };
    let command = test.command(&format!("http://{}", sim.addr()), &out)?;
    let mut client = Pinned::start(command, CLIENT_CPU)?;
    let samples = watch(&mut client, std::time::Duration::from_millis(100), |_| ())?;
    sim.stop()?;
    let stage = crate::ttft::stage(&out)?;
    // The summary is made after the last request, so the samples of the load are those before it.
    let length_s = stage.windows.whole.duration_s;
    let during =
        samples.iter().filter(|sample| sample.at_s < length_s).map(|sample| sample.resident_kib).max();
    Ok(Row {
        streams,
        in_flight: stage.client.max_in_flight,
        resident_kib: during.unwrap_or(0),
        peak_kib: samples.iter().map(|sample| sample.peak_kib).max().unwrap_or(0),
        kib_per_stream: 0.0,
    })
}
