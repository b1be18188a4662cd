//! A peer's rules as its file in `peers/` states them.

use serde::Deserialize;
use ttft_model::Channel;

use super::Convention;

/// The peers that are built in: name and file.
const FILES: &[(&str, &str)] = &[
    ("vllm", include_str!("../../../../peers/vllm.toml")),
    ("vllm-rs", include_str!("../../../../peers/vllm-rs.toml")),
    ("aiperf", include_str!("../../../../peers/aiperf.toml")),
    ("guidellm", include_str!("../../../../peers/guidellm.toml")),
    ("sglang", include_str!("../../../../peers/sglang.toml")),
    ("inference-perf", include_str!("../../../../peers/inference-perf.toml")),
    ("genai-bench", include_str!("../../../../peers/genai-bench.toml")),
    ("evalscope", include_str!("../../../../peers/evalscope.toml")),
    ("llmperf", include_str!("../../../../peers/llmperf.toml")),
    ("mlperf", include_str!("../../../../peers/mlperf.toml")),
    ("hf-benchmarker", include_str!("../../../../peers/hf-benchmarker.toml")),
    ("llmeter", include_str!("../../../../peers/llmeter.toml")),
    ("mlc-endpoints", include_str!("../../../../peers/mlc-endpoints.toml")),
    ("jmeter", include_str!("../../../../peers/jmeter.toml")),
    ("k6-sse", include_str!("../../../../peers/k6-sse.toml")),
];

/// Names of the peers that are built in, in the order in which they are shown.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The peer of that name.
pub fn peer(name: &str) -> Result<Peer, PeerError> {
    let file = FILES.iter().find(|(known, _)| *known == name);
    let (name, text) = file.ok_or_else(|| PeerError::Unknown {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
    })?;
    Peer::parse(name, text)
}

/// Why there is no such peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// None of that name is built in.
    #[error("no tool is called `{name}`; known are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// All known names.
        known: String,
    },
    /// Its file cannot be understood.
    #[error("rules of `{name}`: {reason}")]
    File {
        /// The peer.
        name: String,
        /// What is wrong, in the parser's words.
        reason: String,
    },
}

/// One tool: what it calls the first token, and how it counts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The name it is asked for by.
    #[serde(skip)]
    pub name: String,
    /// Its name in words.
    pub title: String,
    /// The version whose rules these are.
    pub version: String,
    /// Where its source says so.
    pub source: String,
    /// In one line, why its figures differ from ours.
    pub why: String,
    /// What the record cannot tell exactly.
    #[serde(default)]
    pub approximate: Vec<String>,
    /// How it takes percentiles.
    pub percentiles: Convention,
    /// Where its clock starts.
    pub(super) start: Start,
    /// What it takes for the first token.
    pub(super) first: First,
    /// The channels that are output to it.
    pub(super) counts: Vec<Channel>,
    /// Where its clock ends.
    pub(super) end: End,
    /// What it takes for the number of tokens.
    pub(super) tokens: Count,
    /// Its TPOT of a one-token answer.
    #[serde(default)]
    pub(super) one_token: OneToken,
    /// With fewer tokens an answer has no TTFT.
    #[serde(default)]
    pub(super) ttft_needs_tokens: u64,
    /// Answers whose output took less are dropped.
    #[serde(default)]
    pub(super) drop_output_under_ms: f64,
    /// Its figures about tokens.
    pub(super) figures: Vec<FigureRule>,
    /// Other settings or servers under which it says something else.
    #[serde(default, rename = "variant")]
    pub(super) variants: Vec<Variant>,
}

/// What differs in a variant.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    pub(super) label: String,
    pub(super) why: String,
    counts: Option<Vec<Channel>>,
    tokens: Option<Count>,
}

/// Where a clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Start {
    /// The load shape wanted the request.
    Scheduled,
    /// Before a connection is taken or made.
    Started,
    /// At the first byte written.
    SentFirst,
}

/// What is taken for the first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum First {
    /// The response head.
    Headers,
    /// The first event of any kind.
    Event,
    /// The first event with output that counts.
    Output,
}

/// Where a clock ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// The last event with output that counts.
    LastCounted,
    /// The usage event, if it comes after the output.
    Usage,
    /// The stream's terminator.
    Ended,
    /// The end of the exchange.
    Finished,
}

/// What is taken for the number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Count {
    /// The server's usage.
    Usage,
    /// The server's usage, or else the number of events.
    UsageOrEvents,
    /// Those of the output that counts, as a tokenizer of that text would say.
    Counted,
}

/// What a one-token answer's TPOT is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OneToken {
    /// Nothing.
    #[default]
    None,
    /// Zero.
    Zero,
}

/// A figure about tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureRule {
    /// The peer's name for it.
    pub(super) name: String,
    pub(super) rule: Rule,
    /// Each request weighs as much as it has tokens.
    #[serde(default)]
    pub(super) weighted: bool,
}

/// How a figure is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rule {
    /// (end − first) / (n − 1).
    AfterFirst,
    /// (end − start) / n.
    Whole,
    /// (end − first) / tokens after the first chunk.
    LaterTokens,
    /// Each gap between chunks.
    Gaps,
    /// Each gap between tokens, those of one chunk having its time: zeros within a chunk.
    TokenGaps,
}

impl Rule {
    /// In a formula.
    pub(super) const fn formula(self) -> &'static str {
        match self {
            Self::AfterFirst => "(end - first) / (n - 1)",
            Self::Whole => "(end - start) / n",
            Self::LaterTokens => "(end - first) / tokens after the first chunk",
            Self::Gaps => "each gap between chunks",
            Self::TokenGaps => "each gap between tokens, 0 within a chunk",
        }
    }
}

impl Peer {
    /// Reads a peer's file.
    pub fn parse(name: &str, text: &str) -> Result<Self, PeerError> {
        let mut peer: Self = toml::from_str(text)
            .map_err(|error| PeerError::File { name: name.to_owned(), reason: error.to_string() })?;
        name.clone_into(&mut peer.name);
        Ok(peer)
    }

    /// The rules themselves and those of each variant, with its label.
    pub(super) fn readings(&self) -> Vec<(Option<String>, Self)> {
        let variants = self.variants.iter().map(|variant| {
            let mut peer = self.clone();
            peer.why.clone_from(&variant.why);
            peer.counts = variant.counts.clone().unwrap_or(peer.counts);
            peer.tokens = variant.tokens.unwrap_or(peer.tokens);
            (Some(variant.label.clone()), peer)
        });
        [(None, self.clone())].into_iter().chain(variants).collect()
    }
}
