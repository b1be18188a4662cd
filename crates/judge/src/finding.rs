//! A claim about what was measured, with its evidence and what to do about it.

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// It bends the figures, or will under load.
    Warn,
    /// It makes figures wrong, or the endpoint useless for them.
    Bad,
}

macro_rules! causes {
    ($($variant:ident $name:literal $meaning:literal),+ $(,)?) => {
        /// What a finding blames: a word that programs can rely on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Cause {
            $(#[doc = $meaning] $variant),+
        }

        impl Cause {
            /// The name used in every file and report.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

causes! {
    Queue "queue" "requests wait in the engine for a place in the batch",
    KvCache "kv_cache" "the KV cache is full: requests wait for blocks, or are thrown out and computed again",
    Prefill "prefill" "the engine is busy reading prompts",
    DecodeInterference "decode_interference" "prompts and decoding slow each other down",
    FrontEnd "front_end" "the server's own front end: HTTP, tokenizing, handing over to the engine",
    Network "network" "round trips, connections, or lost segments",
    Gateway "gateway" "what stands between this client and the engine delays or holds back the stream",
    Client "client" "this client",
    ColdStart "cold_start" "the first requests are slower than the others",
    StartBurst "start_burst" "all users begin at once",
    Drift "drift" "TTFT changed in the course of a stage",
    CacheHits "cache_hits" "prompts were found in the server's prefix cache",
    OutputDrift "output_drift" "answers became longer or shorter",
    ForeignTraffic "foreign_traffic" "others used the server",
    Restart "restart" "the server began anew",
    CpuGovernor "cpu_governor" "this machine saves power",
}

/// How sure a finding is of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The client's figures hint at it; others fit too.
    Low,
    /// It fits what is known, and little else does.
    Medium,
    /// The server's own figures say so, or nothing else can be.
    High,
}

impl Confidence {
    /// The name used in every file and report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What it blames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// How sure that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The claim, in one line. May hold text of the server.
    pub what: String,
    /// The figures behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The figures behind it for machines: with and without what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<serde_json::Value>,
}

impl Finding {
    /// A claim alone.
    pub fn new(level: Level, what: impl Into<String>) -> Self {
        Self {
            level,
            cause: None,
            confidence: None,
            what: what.into(),
            evidence: None,
            remedy: None,
            effect: None,
        }
    }

    /// With what it blames, and how surely.
    #[must_use]
    pub fn blames(mut self, cause: Cause, confidence: Confidence) -> Self {
        (self.cause, self.confidence) = (Some(cause), Some(confidence));
        self
    }

    /// With the figures behind it.
    #[must_use]
    pub fn because(mut self, evidence: impl Into<String>) -> Self {
        self.evidence = Some(evidence.into());
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// With its figures for machines.
    #[must_use]
    pub fn effect(mut self, effect: serde_json::Value) -> Self {
        self.effect = Some(effect);
        self
    }
}
