//! What is known of a run as a whole; written to `run.json`.

use serde::{Deserialize, Serialize};

use crate::{Nanos, Plan, StampSource};

/// A run's own facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// `ttft.run/1`.
    pub schema: String,
    /// Tool version.
    pub version: String,
    /// The run's name.
    pub name: String,
    /// The command line, secrets left out.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Cores that this process may use.
    pub cpus: u32,
    /// The clocks.
    pub clock: ClockInfo,
    /// Wall clock (nanoseconds since 1970) of the axis' zero.
    pub zero_unix_ns: i64,
    /// The monotonic clock's own reading at the axis' zero, to join with other files of the same host.
    pub zero_monotonic_ns: i64,
    /// When the run ended, on the axis; `None` while it runs or if it was killed.
    pub ended_ns: Option<i64>,
    /// It was stopped before its end.
    pub interrupted: bool,
    /// Why it stopped early, when it did.
    #[serde(default)]
    pub stopped_by: Option<String>,
    /// The `server` header of the first answer.
    #[serde(default)]
    pub server: Option<String>,
    /// How this machine's cores choose their frequency, where it tells: one word, or several if they differ.
    #[serde(default)]
    pub governor: Option<String>,
    /// The stages begun so far.
    pub stages: Vec<StageWindow>,
    /// The plan.
    pub plan: Plan,
}

/// Which clock the run's receive instants come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockInfo {
    /// Where receive instants come from.
    pub receive: StampSource,
    /// Whether transmit stamps are had.
    pub transmit: bool,
    /// Steps of the wall clock seen during the run.
    pub wall_steps: u32,
    /// In words, for reports.
    pub note: String,
    /// Whether real-time scheduling was granted.
    pub realtime: bool,
}

/// The instants that bound one stage, on the axis of the run, and what the client used for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StageWindow {
    /// Index into the plan's stages.
    pub stage: u32,
    /// The stage began.
    pub start: Nanos,
    /// The asked load was reached (after the ramp).
    pub reached: Nanos,
    /// The first user found no more work, or the last arrival was due; `None` while it runs.
    pub dry: Option<Nanos>,
    /// The last request ended; `None` while it runs.
    pub end: Option<Nanos>,
    /// CPU time of each worker thread over the stage, in nanoseconds.
    pub worker_cpu_ns: Vec<i64>,
    /// Most requests in flight at one instant.
    pub max_in_flight: u32,
    /// Arrivals that were due but never sent, since no place came free under the limit in flight.
    #[serde(default)]
    pub unsent: u64,
    /// Why it ended before its requests were sent and its time was over, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
}
