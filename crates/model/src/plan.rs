//! Everything that a run will do, resolved and validated. Written to `plan.toml` as it is.

use serde::{Deserialize, Serialize};

use crate::{Lengths, Span};

mod asking;
mod defaults;
mod resolve;
mod sources;
mod stage;
mod think;

pub use asking::{ImageSize, Images, ParseImageSizeError, ParsePickError, Pick, Prefixes, Session};
pub use resolve::{ParseResolveError, Resolve};
pub use sources::{NVIDIA_SMI, Sources};
pub use stage::{Arrival, Load, Share, Stage, StageError, Stop};
pub use think::{ParseThinkError, Think};

/// A whole load test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// A short name, part of the run folder's name.
    pub name: String,
    /// Seed of every random choice: arrivals, prompts, salts.
    pub seed: u64,
    /// Requests sent first, kept and marked, never counted.
    pub warmup: u32,
    /// How long requests under way may still run when a stage's time is over.
    pub drain: Span,
    /// Silence before each stage but the first, so that one does not disturb the next.
    pub settle: Span,
    /// A stage ends early when the 95 % interval of its TTFT p95 is narrower than this share of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// What the run may use up.
    pub budget: Budget,
    /// Objectives such as `ttft_p95<2s`.
    pub slo: Vec<String>,
    /// Where requests go; the first one unless a stage names another. Never empty.
    pub endpoints: Vec<Endpoint>,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// This side's machine.
    pub client: Client,
    /// What is scraped beside the load.
    #[serde(default)]
    pub sources: Sources,
    /// What is asked.
    pub workloads: Vec<Workload>,
    /// How much of it, one stage after another.
    pub stages: Vec<Stage>,
}

impl Plan {
    /// The endpoint that is meant when none is named.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoints[0]
    }

    /// The endpoint of a stage; the first one if it names none, or one that is not there.
    pub fn endpoint_of(&self, stage: &Stage) -> &Endpoint {
        &self.endpoints[self.endpoint_number(stage) as usize]
    }

    /// The number of that endpoint.
    pub fn endpoint_number(&self, stage: &Stage) -> u32 {
        let named = stage.endpoint.as_deref();
        self.endpoints.iter().position(|e| Some(e.name.as_str()) == named).unwrap_or(0) as u32
    }

    /// The model that a stage asks for.
    pub fn model_of<'a>(&'a self, stage: &'a Stage) -> Option<&'a str> {
        stage.model.as_deref().or(self.endpoint_of(stage).model.as_deref())
    }

    /// The workload of that name, and its number.
    pub fn workload(&self, name: &str) -> Option<(u32, &Workload)> {
        let at = self.workloads.iter().position(|workload| workload.name == name)?;
        Some((at as u32, &self.workloads[at]))
    }
}

/// What a run may use up. It stops, keeping all results, before it would exceed any of these.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Tokens read and generated, all requests together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// Price of a million input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_in: Option<f64>,
    /// Price of a million output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_out: Option<f64>,
    /// Most that all requests together may cost, in the currency of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// Where requests go and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Endpoint {
    /// Its name in stages and reports.
    pub name: String,
    /// The full URL that requests are sent to.
    pub url: String,
    /// Name of the stream dialect.
    pub dialect: String,
    /// The model's name, as sent.
    pub model: Option<String>,
    /// Where the key comes from; the key itself is never here.
    pub api_key: ApiKey,
    /// Extra request headers. Values that look secret are redacted when a plan is written.
    pub headers: Vec<Header>,
    /// How connections are used.
    pub connections: Connections,
    /// Protocol version.
    pub http: HttpVersion,
    /// Do not verify certificates.
    pub insecure: bool,
    /// A PEM file of extra roots.
    pub ca: Option<String>,
    /// Addresses to use instead of asking the resolver.
    pub resolve: Vec<Resolve>,
    /// HTTP/2 streams that may share one connection.
    pub streams_per_connection: u32,
    /// Header that carries each request's own id.
    #[serde(default = "defaults::request_id_header")]
    pub request_id_header: String,
}

/// An extra header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Where the API key comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiKey {
    /// No key is sent.
    None,
    /// From this environment variable, if it is set.
    Env(String),
    /// From this file, without the line end.
    File(String),
}

/// How connections are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// Any idle connection is taken again.
    Reuse,
    /// A new connection for every request.
    New,
    /// Each user of a closed loop keeps its own.
    PerUser,
}

/// Which protocol to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.1, the precise mode.
    #[serde(rename = "1.1")]
    H1,
    /// HTTP/2: by ALPN over TLS, by prior knowledge without.
    #[serde(rename = "2")]
    H2,
}

/// How long each phase may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Name, TCP and TLS together.
    pub connect: Span,
    /// From the start to the first token.
    pub first_token: Span,
    /// Between two reads of a stream.
    pub idle: Span,
    /// The whole request.
    pub total: Span,
}

/// This side's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Worker threads; by default one for each core that this process may use.
    #[serde(default)]
    pub workers: Option<u32>,
    /// Ask for `SCHED_FIFO`.
    #[serde(default)]
    pub realtime: bool,
    /// Which answers are kept as they came, in `streams/`.
    #[serde(default)]
    pub save_streams: Option<SaveStreams>,
}

/// Which answers are kept as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaveStreams {
    /// Those that failed.
    Errors,
    /// All but the warm-up's.
    All,
    /// The first of each stage, this many.
    First(u64),
}

impl SaveStreams {
    /// Whether that answer is kept.
    pub fn wants(self, record: &crate::Record) -> bool {
        match self {
            Self::Errors => record.outcome().is_failure(),
            Self::All => !record.warmup,
            Self::First(n) => !record.warmup && record.seq < n,
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Its name in reports.
    pub name: String,
    /// Where prompts come from.
    pub prompt: Prompt,
    /// Output tokens asked for; the most of them, where `output` says more.
    pub max_tokens: u32,
    /// Output tokens of each request, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Lengths>,
    /// How many words make the tokens of a made-up prompt.
    pub calibration: Calibration,
    /// A `tokenizer.json`: by it made-up prompts have exactly the asked lengths, and answers are counted where the
    /// server does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Beginnings that prompts share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefixes>,
    /// Conversations of several turns; without it every request stands alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Images sent with each prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Images>,
    /// Ask the engine to go on to `max_tokens` even if the model would stop.
    pub ignore_eos: bool,
    /// What may be found in the server's prefix cache.
    pub cache: CachePolicy,
    /// JSON object merged into every request body.
    pub body_json: Option<String>,
}

/// How many words make the tokens of a made-up prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calibration {
    /// A word is taken for a token.
    #[default]
    None,
    /// To be measured before the run, by what the server counts.
    Measure,
    /// As it was measured: the server counts `overhead + tokens_per_word · words`.
    Measured {
        /// Tokens of one more word.
        tokens_per_word: f64,
        /// Tokens of a prompt without words: the chat template, the salt.
        overhead: f64,
    },
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// The same text for all.
    Text(String),
    /// Words made up, about this many tokens.
    Tokens(u32),
    /// Words made up, of lengths that differ.
    Lengths(Lengths),
    /// Taken in turn from this file, whatever its format.
    File(String),
    /// As long as a trace says, with the prefixes that it says are shared; or its own texts.
    Trace {
        /// The trace.
        path: String,
        /// Its format; by default told from the content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
    },
}

/// What may be found in the server's prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CachePolicy {
    /// Nothing: a unique salt stands at the front of every prompt.
    Cold,
    /// Everything: the same prompts are sent in the warm-up.
    Warm,
    /// Whatever happens to be there.
    AsIs,
}
