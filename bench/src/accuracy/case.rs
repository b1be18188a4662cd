//! One case: so many streams at such a pace, measured.

use serde::Serialize;
use ttft_store::Events;

use crate::accuracy::joined::{Errors, join};
use crate::noise::{Noise, NoiseMeter};
use crate::pinned::Pinned;
use crate::spread::Spread;
use crate::ttft::LoadTest;
use crate::{CLIENT_CPU, engine, truth};

/// Time to first token of the engine in all cases.
pub(crate) const TTFT_MS: f64 = 200.0;

/// The load of one case.
pub(crate) struct Case {
    pub(super) streams: u64,
    pub(super) per_s: u64,
    /// Output tokens of a request: fewer where an answer takes long or many are needed, so that every case ends soon.
    pub(super) tokens: u64,
    /// Requests of each stream, one after the other.
    pub(super) rounds: u64,
    /// Processes that burn the client's core meanwhile.
    pub(super) spinners: usize,
    /// A connection for each request, whose making is inside `ttft`.
    pub(super) new_connections: bool,
}

/// The last one is beyond what one core can do, on purpose.
pub(crate) const CASES: [Case; 9] = [
    Case { streams: 1, per_s: 50, tokens: 16, rounds: 50, spinners: 0, new_connections: false },
    Case { streams: 16, per_s: 50, tokens: 32, rounds: 20, spinners: 0, new_connections: false },
    Case { streams: 256, per_s: 50, tokens: 32, rounds: 10, spinners: 0, new_connections: false },
    Case { streams: 1_000, per_s: 50, tokens: 32, rounds: 10, spinners: 0, new_connections: false },
    Case { streams: 4_000, per_s: 10, tokens: 12, rounds: 6, spinners: 0, new_connections: false },
    Case { streams: 10_000, per_s: 5, tokens: 8, rounds: 5, spinners: 0, new_connections: false },
    Case { streams: 256, per_s: 50, tokens: 32, rounds: 10, spinners: 0, new_connections: true },
    Case { streams: 500, per_s: 50, tokens: 32, rounds: 10, spinners: 2, new_connections: false },
    Case { streams: 4_000, per_s: 50, tokens: 32, rounds: 6, spinners: 0, new_connections: false },
];

impl Case {
    /// Its name on the command line and in tables.
    pub(crate) fn name(&self) -> String {
        let busy = if self.spinners > 0 { "-busy" } else { "" };
        let new = if self.new_connections { "-new" } else { "" };
        format!("{}x{}{busy}{new}", self.streams, self.per_s)
    }
}

/// What came of one case. Errors and lags are in microseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) sent: u64,
    pub(crate) failed: u64,
    #[serde(flatten)]
    pub(crate) errors: Errors,
    /// How late the client read its first tokens, 99th percentile.
    pub(crate) read_lag_p99: Option<f64>,
    pub(crate) client_cpu_percent: Option<f64>,
    pub(crate) verdict: &'static str,
    pub(crate) reasons: Vec<String>,
    /// How late the engine wrote first tokens against its own profile: inside the truth, not in the errors.
    pub(crate) engine_late: Spread,
    /// Output events per second over the steady window.
    pub(crate) events_per_s: Option<f64>,
    pub(crate) noise: Noise,
}

/// Runs one case and judges it.
pub(crate) fn measure(case: &Case) -> anyhow::Result<Row> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("truth.jsonl");
    let meter = NoiseMeter::start()?;
    let sim = engine::fixed(TTFT_MS, 1e3 / case.per_s as f64, Some(&log))?;
    let spinners = (0..case.spinners).map(|_| spinner()).collect::<anyhow::Result<Vec<_>>>()?;
    let test = LoadTest {
        streams: case.streams,
        requests: Some(case.streams * case.rounds),
        tokens: case.tokens,
        new_connections: case.new_connections,
        ..LoadTest::default()
    };
    let url = format!("http://{}", sim.addr());
    let finished = test.run(&url, &folder.path().join("run"))?;
    drop(spinners);
    sim.stop()?;
    let noise = meter.finish()?;

    let truth = truth::read(&log)?;
    let joined = join(finished.run()?.requests(Events::Skip)?, &truth)?;
    let stage = finished.stage()?;
    let client = stage.client;
    Ok(Row {
        name: case.name(),
        sent: stage.requests.sent,
        failed: stage.requests.failed,
        errors: Errors::of(&joined),
        read_lag_p99: client.read_lag_ms.p99.map(|ms| ms * 1e3),
        client_cpu_percent: client.cpu_percent,
        verdict: client.verdict.name(),
        reasons: client.reasons,
        engine_late: Spread::of(truth.iter().map(|truth| truth.ttft_ns() - (TTFT_MS * 1e6) as i64)),
        events_per_s: stage.windows.steady.output_tokens_per_s,
        noise,
    })
}

/// A process that wants the client's core for itself.
fn spinner() -> anyhow::Result<Pinned> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.arg("spin");
    Pinned::start(command, CLIENT_CPU)
}
