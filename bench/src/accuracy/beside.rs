//! Other load testers on the same cases. They send no id that their own record keeps, so percentiles are compared,
//! not requests; the mean of the error needs no pairs.

use serde::Serialize;
use ttft_judge::quantile::of_sorted;

use crate::accuracy::case::{Case, TTFT_MS};
use crate::noise::{Noise, NoiseMeter};
use crate::peers::{Load, Peer};
use crate::table::{Table, figure};
use crate::{engine, truth};

/// Rounds that are enough for a comparison.
const ROUNDS: u64 = 4;
/// Servebench takes minutes beyond this.
const SERVEBENCH_STREAMS: u64 = 1_000;

/// What a tool reported less the truth, in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    tool: &'static str,
    name: String,
    requests: usize,
    mean: f64,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    noise: Noise,
}

/// Whether the tool can do the case and is there.
pub(super) fn applies(peer: Peer, case: &Case) -> bool {
    let plain = case.spinners == 0 && !case.new_connections;
    let able = match peer {
        Peer::Sglang => true,
        Peer::Servebench => case.streams <= SERVEBENCH_STREAMS,
        Peer::Oha | Peer::Wrk => false,
    };
    plain && able && peer.is_installed()
}

/// Runs the tool on the case.
pub(super) fn measure(peer: Peer, case: &Case) -> anyhow::Result<Option<Row>> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("truth.jsonl");
    let meter = NoiseMeter::start()?;
    let sim = engine::fixed(TTFT_MS, 1e3 / case.per_s as f64, Some(&log))?;
    let load = Load {
        streams: case.streams,
        requests: case.streams * case.rounds.min(ROUNDS),
        tokens: case.tokens,
        details: true,
    };
    peer.run(load, &format!("http://{}", sim.addr()), folder.path())?;
    sim.stop()?;
    let noise = meter.finish()?;
    let Some(mut reported) = peer.reported_ttft(folder.path())? else { return Ok(None) };
    let mut real: Vec<f64> = truth::read(&log)?.iter().map(|truth| truth.ttft_ns() as f64 / 1e6).collect();
    reported.sort_by(f64::total_cmp);
    real.sort_by(f64::total_cmp);
    let error = |p: f64| Some(of_sorted(&reported, p)? - of_sorted(&real, p)?);
    Ok(Some(Row {
        tool: peer.name(),
        name: case.name(),
        requests: reported.len(),
        mean: mean(&reported) - mean(&real),
        p50: error(0.5),
        p95: error(0.95),
        p99: error(0.99),
        noise,
    }))
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len().max(1) as f64
}

/// The rows as a table; nothing of none.
pub(super) fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "tool",
        "streams × tokens/s",
        "requests",
        "mean error ms",
        "p50 − p50 ms",
        "p95 − p95 ms",
        "p99 − p99 ms",
        "others, worst core %",
    ]);
    for row in rows {
        table.row([
            row.tool.to_owned(),
            row.name.clone(),
            row.requests.to_string(),
            figure(Some(row.mean), 2),
            figure(row.p50, 2),
            figure(row.p95, 2),
            figure(row.p99, 2),
            figure(Some(row.noise.worst()), 1),
        ]);
    }
    format!(
        "Other load testers: their percentiles less the true ones. They send no id that could be joined, so this is \
         the difference of distributions, in milliseconds.\n\n{}\n",
        table.text()
    )
}
