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

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
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
        Self { level, what: what.into(), evidence: None, remedy: None, effect: None }
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
