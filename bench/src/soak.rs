//! Does the client grow? Resident memory over a long steady load.

use std::time::Duration;

use clap::Args as ClapArgs;
use serde::Serialize;

use crate::CLIENT_CPU;
use crate::engine;
use crate::memory::{Sample, watch};
use crate::pinned::Pinned;
use crate::report::{Report, note};
use crate::table::Table;
use crate::ttft::{self, LoadTest};

/// What `soak` takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Length of the load
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// Streams at a time, each of 32 tokens at 50 a second
    #[arg(long, value_name = "N", default_value_t = 256)]
    streams: u64,
    /// Seconds between samples
    #[arg(long, value_name = "N", default_value_t = 30)]
    every: u64,
}

/// The samples and what they say.
#[derive(Debug, Serialize)]
struct Figures {
    requests: u64,
    failed: u64,
    samples: Vec<Sample>,
    /// Slope of the line through the second half of the samples.
    kib_per_minute: Option<f64>,
    /// The same, of each thousand requests.
    kib_per_1000_requests: Option<f64>,
}

/// Runs the load and prints the memory over time. It needs no quiet machine.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("run");
    let sim = engine::fixed(200.0, 20.0, None)?;
    let seconds = args.minutes * 60;
    let test = LoadTest { streams: args.streams, seconds: Some(seconds), tokens: 32, ..LoadTest::default() };
    let command = test.command(&format!("http://{}", sim.addr()), &out)?;
    let mut client = Pinned::start(command, CLIENT_CPU)?;
    let samples = watch(&mut client, Duration::from_secs(args.every.max(1)), |sample| {
        note(&format!("{:6.0} s  {} KiB", sample.at_s, sample.resident_kib));
    })?;
    sim.stop()?;

    let stage = ttft::stage(&out)?;
    let length_s = stage.windows.whole.duration_s;
    let steady: Vec<(f64, f64)> = samples
        .iter()
        .filter(|sample| sample.at_s > length_s / 2.0 && sample.at_s < length_s)
        .map(|sample| (sample.at_s / 60.0, sample.resident_kib as f64))
        .collect();
    let kib_per_minute = slope(&steady);
    let per_minute = stage.requests.sent as f64 / length_s * 60.0;
    let figures = Figures {
        requests: stage.requests.sent,
        failed: stage.requests.failed,
        kib_per_minute,
        kib_per_1000_requests: kib_per_minute.map(|kib| kib / per_minute * 1e3),
        samples,
    };
    Report::new("soak: resident memory of the client under a steady load", text(&figures), &figures)
}

fn text(figures: &Figures) -> String {
    let mut table = Table::new(&["s", "resident KiB"]);
    for sample in &figures.samples {
        table.row([format!("{:.0}", sample.at_s), sample.resident_kib.to_string()]);
    }
    format!(
        "{}\n{} requests, {} failed; growth over the second half {} KiB/min, {} KiB per 1,000 requests\n",
        table.text(),
        figures.requests,
        figures.failed,
        crate::table::figure(figures.kib_per_minute, 1),
        crate::table::figure(figures.kib_per_1000_requests, 2),
    )
}

/// The slope of the least-squares line; `None` of fewer than three points.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let over: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let under: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (under > 0.0).then(|| over / under)
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn the_slope_of_a_line() {
        let line = slope(&[(0.0, 5.0), (1.0, 7.0), (2.0, 9.0)]);
        assert!(line.is_some_and(|slope| (slope - 2.0).abs() < 1e-12));
        assert_eq!(slope(&[(0.0, 5.0), (1.0, 7.0)]), None);
    }
}
