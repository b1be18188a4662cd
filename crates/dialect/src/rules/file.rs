//! The TOML form of a dialect.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::Meaning;
use crate::framing::Framing;

/// A `dialect.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DialectFile {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) request: RequestFile,
    pub(crate) stream: Spanned<StreamFile>,
    #[serde(rename = "rule")]
    pub(crate) rules: Vec<Spanned<RuleFile>>,
}

/// How to ask.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestFile {
    pub(crate) path: Spanned<String>,
    #[serde(default)]
    pub(crate) auth: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Spanned<String>,
}

/// How the answer is cut, and how it ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamFile {
    pub(crate) framing: Framing,
    /// Bytes, blanks left out, that tell a recording of this dialect.
    #[serde(default)]
    pub(crate) signs: Vec<String>,
    #[serde(default)]
    pub(crate) end_data: Vec<String>,
    #[serde(default)]
    pub(crate) end_events: Vec<String>,
    #[serde(default)]
    pub(crate) finish_ends: bool,
    #[serde(default)]
    pub(crate) comment_data: Vec<String>,
    #[serde(default)]
    pub(crate) ping_events: Vec<String>,
    #[serde(default)]
    pub(crate) error_events: Vec<String>,
    #[serde(default)]
    pub(crate) error_fields: Vec<String>,
}

/// What one value means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleFile {
    /// A pointer, or a list of alternatives.
    pub(crate) at: Spanned<Value>,
    pub(crate) is: Meaning,
    #[serde(default, rename = "in")]
    pub(crate) scope: Option<Scope>,
    #[serde(default)]
    pub(crate) only: Option<Value>,
    #[serde(default)]
    pub(crate) not: Option<Value>,
    #[serde(default)]
    pub(crate) when: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) unless: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) cumulative: bool,
    #[serde(default)]
    pub(crate) fallback: bool,
    #[serde(default)]
    pub(crate) unit: Option<Unit>,
}

/// Which texts a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Stream,
    Document,
    Both,
}

/// The unit of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    S,
    Ms,
    Us,
    Ns,
}

impl Unit {
    pub(crate) const fn in_ms(self) -> f64 {
        match self {
            Self::S => 1e3,
            Self::Ms => 1.0,
            Self::Us => 1e-3,
            Self::Ns => 1e-6,
        }
    }
}

/// The line, from 1, of a position in a text.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    text.as_bytes().iter().take(position).filter(|b| **b == b'\n').count() + 1
}
