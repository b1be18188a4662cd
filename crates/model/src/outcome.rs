//! How a request ended.

use serde::{Deserialize, Serialize};

use crate::ErrorClass;

/// How a request ended. Only [`Outcome::Ok`] enters the statistics of latency and throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The dialect's terminal signal came, with output, and no error anywhere.
    Ok,
    /// Something failed; see the failure's class.
    Error,
    /// The stream ended before its end was announced.
    Truncated,
    /// The stream ended as it should, but held no output.
    NoOutput,
    /// A deadline of ours passed.
    Timeout,
    /// The run was stopped while this request was under way.
    Cancelled,
}

impl Outcome {
    /// All outcomes, in the order in which reports show them.
    pub const ALL: [Self; 6] =
        [Self::Ok, Self::Error, Self::Truncated, Self::NoOutput, Self::Timeout, Self::Cancelled];

    /// The name used in every file and report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Truncated => "truncated",
            Self::NoOutput => "no_output",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// The outcome of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether it counts against the server: everything but ok and cancelled.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Ok | Self::Cancelled)
    }
}

/// What went wrong with one request, in the words of whoever said it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class, which carries the remedy.
    pub class: ErrorClass,
    /// The server's own error code, number or word, when it gave one.
    pub code: Option<String>,
    /// The message, cut to a sane length; may hold hostile text.
    pub message: String,
}

impl Failure {
    /// A failure with a message and no code.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, code: None, message: message.into() }
    }
}
