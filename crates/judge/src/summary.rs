//! `summary.json`, schema `ttft.summary/1`: everything that is said of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ttft_model::{CachePolicy, Endpoint, ErrorClass, Load, Plan, Run, StampSource};

use crate::arrivals::Arrivals;
use crate::decompose::Decomposition;
use crate::reconcile::Reconcile;
use crate::server::Server;
use crate::{
    Client, Distribution, Experience, Finding, Goodput, Knee, Level, Repeats, Sessions, Stream, WindowFigures,
};

/// The schema's name.
pub const SCHEMA: &str = "ttft.summary/1";

/// A run, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run's own facts.
    pub run: RunHead,
    /// One entry a stage.
    pub stages: Vec<StageSummary>,
    /// Levels that were played several times, with how far their figures lie apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Repeats>,
    /// The knees of a sweep.
    #[serde(default)]
    pub knee: Knee,
    /// Why TTFT is what it is.
    #[serde(default)]
    pub diagnosis: Vec<Finding>,
    /// What else was going on.
    #[serde(default)]
    pub contamination: Vec<Finding>,
}

impl Summary {
    /// Puts the stages of a run together.
    pub fn new(run: &Run, stages: Vec<StageSummary>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            run: RunHead::new(run),
            stages,
            repeats: Vec::new(),
            knee: Knee::default(),
            diagnosis: Vec::new(),
            contamination: Vec::new(),
        }
    }

    /// What contaminates the run so that its figures are bent or worse.
    pub fn unclean(&self) -> impl Iterator<Item = &Finding> {
        self.contamination.iter().filter(|finding| finding.level >= Level::Warn)
    }

    /// Whether every objective of every stage held; `None` when there are none or nothing could be judged.
    pub fn slo_met(&self) -> Option<bool> {
        let mut results = self.stages.iter().flat_map(|s| &s.goodput.slo).filter_map(|r| r.met).peekable();
        results.peek()?;
        Some(results.all(|met| met))
    }
}

/// What a reader needs of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// The run's name.
    pub name: String,
    /// Tool version.
    pub version: String,
    /// When it began: wall clock, UTC, RFC 3339.
    pub started: String,
    /// Its length in seconds; null if it was killed.
    pub duration_s: Option<f64>,
    /// It was stopped before its end.
    pub interrupted: bool,
    /// Why it stopped early.
    pub stopped_by: Option<String>,
    /// Where requests went.
    pub url: String,
    /// The stream's dialect.
    pub dialect: String,
    /// The model asked for.
    pub model: Option<String>,
    /// All endpoints, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointHead>,
    /// The models of all stages, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The engine, when something told it.
    #[serde(default)]
    pub engine: Option<String>,
    /// The `server` header of the first answer.
    pub server: Option<String>,
    /// Host name of the client.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// Cores that the client may use.
    pub cpus: u32,
    /// Where receive instants come from.
    pub clock: StampSource,
    /// The clock in words.
    pub clock_note: String,
    /// Steps of the wall clock during the run.
    pub wall_steps: u32,
    /// The command line, secrets left out.
    pub command: Vec<String>,
    /// Seed of all random choices.
    pub seed: u64,
}

/// One of several endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointHead {
    /// Its name.
    pub name: String,
    /// Where requests went.
    pub url: String,
    /// The stream's dialect.
    pub dialect: String,
}

/// The models of all stages in the order of their first use; none where there is but one.
fn several_models(plan: &Plan) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for model in plan.stages.iter().filter_map(|stage| plan.model_of(stage)) {
        if !models.iter().any(|known| known == model) {
            models.push(model.to_owned());
        }
    }
    if models.len() > 1 { models } else { Vec::new() }
}

/// All endpoints; none where there is but one.
fn several_endpoints(plan: &Plan) -> Vec<EndpointHead> {
    let head = |endpoint: &Endpoint| EndpointHead {
        name: endpoint.name.clone(),
        url: endpoint.url.clone(),
        dialect: endpoint.dialect.clone(),
    };
    if plan.endpoints.len() > 1 { plan.endpoints.iter().map(head).collect() } else { Vec::new() }
}

impl RunHead {
    fn new(run: &Run) -> Self {
        Self {
            name: run.name.clone(),
            version: run.version.clone(),
            started: rfc3339(run.zero_unix_ns.div_euclid(1_000_000_000)),
            duration_s: run.ended_ns.map(|ns| ns as f64 / 1e9),
            interrupted: run.interrupted,
            stopped_by: run.stopped_by.clone(),
            url: run.plan.endpoint().url.clone(),
            dialect: run.plan.endpoint().dialect.clone(),
            model: run.plan.endpoint().model.clone(),
            endpoints: several_endpoints(&run.plan),
            models: several_models(&run.plan),
            engine: None,
            server: run.server.clone(),
            host: run.host.clone(),
            kernel: run.kernel.clone(),
            cpus: run.cpus,
            clock: run.clock.receive,
            clock_note: run.clock.note.clone(),
            wall_steps: run.clock.wall_steps,
            command: run.command.clone(),
            seed: run.plan.seed,
        }
    }
}

/// One stage, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageSummary {
    /// Its name.
    pub name: String,
    /// Its load.
    pub load: Load,
    /// The workload's name; of a mix, those of all, with `+` between them.
    pub workload: String,
    /// Prefix-cache policy of the workload.
    pub cache: CachePolicy,
    /// Output tokens asked for.
    pub max_tokens: u32,
    /// The endpoint's name, where the plan has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The model asked for.
    pub model: Option<String>,
    /// Requests of the whole stage by what became of them.
    pub requests: Requests,
    /// Which window `latency_ms`, `throughput`, `tokens`, `goodput` and `stream` are of: requests that started in it,
    /// rates over it.
    pub window: WindowChoice,
    /// Why it is not the steady one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_reason: Option<String>,
    /// Why the stage ended before its requests were sent and its time was over, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// Where several workloads are mixed: each by itself, over the same window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartSummary>,
    /// Metrics of ok requests, all in milliseconds.
    pub latency_ms: BTreeMap<String, Distribution>,
    /// Rates.
    pub throughput: Throughput,
    /// Tokens a request.
    pub tokens: Tokens,
    /// How the stage did against the objectives.
    pub goodput: Goodput,
    /// Conversations by turn, where the workload has any.
    #[serde(default, skip_serializing_if = "Sessions::is_empty")]
    pub sessions: Sessions,
    /// What a person at the other end would notice of the streams.
    #[serde(default)]
    pub experience: Experience,
    /// What the streams were like.
    pub stream: Stream,
    /// How an open loop's requests started, against what was asked for; null of other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Whether the client itself can be trusted.
    pub client: Client,
    /// The server's own figures over the stage.
    #[serde(default)]
    pub server: Server,
    /// The client's TTFT against the server's.
    #[serde(default)]
    pub reconcile: Reconcile,
    /// The mean TTFT in parts that add up to it.
    #[serde(default)]
    pub decomposition: Decomposition,
    /// Rates over both windows.
    pub windows: Windows,
}

/// One workload of a stage that mixes several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartSummary {
    /// The workload's name.
    pub workload: String,
    /// Its prefix-cache policy.
    pub cache: CachePolicy,
    /// Output tokens asked for.
    pub max_tokens: u32,
    /// The share of the stage's requests that it was to have.
    pub share: f64,
    /// The share that it had.
    pub share_sent: Option<f64>,
    /// Its requests by what became of them.
    pub requests: Requests,
    /// Metrics of its ok requests, all in milliseconds.
    pub latency_ms: BTreeMap<String, Distribution>,
    /// Its rates.
    pub throughput: Throughput,
    /// Its tokens a request.
    pub tokens: Tokens,
    /// How it did against the objectives.
    pub goodput: Goodput,
}

impl PartSummary {
    /// From the summary of its requests alone; `of` is how many the stage sent.
    pub(crate) fn new(part: StageSummary, share: f64, of: u64) -> Self {
        Self {
            share_sent: (of > 0).then(|| part.requests.sent as f64 / of as f64),
            share,
            workload: part.workload,
            cache: part.cache,
            max_tokens: part.max_tokens,
            requests: part.requests,
            latency_ms: part.latency_ms,
            throughput: part.throughput,
            tokens: part.tokens,
            goodput: part.goodput,
        }
    }
}

/// Requests by what became of them. A retried request counts once for each attempt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// All but warm-up.
    pub sent: u64,
    /// Ended as they should.
    pub ok: u64,
    /// Failed: neither ok nor cut off by the end of the run.
    pub failed: u64,
    /// Arrivals of an open loop that were due but never sent: the limit in flight was reached.
    pub unsent: u64,
    /// Warm-up, counted nowhere else.
    pub warmup: u64,
    /// By outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// By class of error.
    pub errors: BTreeMap<String, u64>,
    /// The same with what was said most often, most frequent class first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureGroup>,
}

/// The failures of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    /// The class.
    pub class: ErrorClass,
    /// How many.
    pub n: u64,
    /// The HTTP status of most of them, when one came.
    pub status: Option<u16>,
    /// The message of most of them; may hold hostile text.
    pub message: String,
    /// How many said just that.
    pub message_n: u64,
}

/// Which window figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowChoice {
    /// From the moment the asked load was reached until the first worker ran dry.
    Steady,
    /// All of the stage.
    Whole,
}

/// Both windows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Windows {
    /// From the moment the asked load was reached until the first worker ran dry.
    pub steady: WindowFigures,
    /// All of the stage.
    pub whole: WindowFigures,
}

/// Rates over the chosen window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Throughput {
    /// Ok requests per second.
    pub requests_per_s: Option<f64>,
    /// Their output tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Their input tokens per second.
    pub input_tokens_per_s: Option<f64>,
    /// Output tokens per second as one user sees them: 1 / median TPOT.
    pub output_tokens_per_s_per_user: Option<f64>,
}

/// Tokens a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Of the prompt.
    pub input: TokenCounts,
    /// Of the prompt, found in the server's cache.
    pub cached: TokenCounts,
    /// Generated, reasoning included.
    pub output: TokenCounts,
    /// Generated reasoning.
    pub reasoning: TokenCounts,
    /// Where output counts come from: `usage`, `tokenizer`, `none`, or `mixed`.
    pub source: String,
}

/// One kind of tokens over the ok requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCounts {
    /// All of them; null when nobody counted.
    pub total: Option<u64>,
    /// A request.
    pub per_request: Distribution,
}

/// An instant in seconds since 1970 as RFC 3339 in UTC.
fn rfc3339(unix_s: i64) -> String {
    let (days, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    // Days to a date by eras of 400 years, in a year that begins in March (H. Hinnant, `civil_from_days`).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(unix_s), text);
        }
    }
}
