//! The search for the highest load that meets objectives.
//!
//! A state machine without a clock or a socket: it says at which level to measure how many requests, is shown what
//! came, and ends with an answer that is an interval. Load is doubled until an objective is missed for sure, then the
//! gap is halved; at each level requests are added until its side is clear, by tests whose error is bounded over all
//! looks at all levels. Requests that bring a stage's load up are left out, and those that depend on their neighbours
//! count for fewer. A level at the very limit never becomes clear: when it has had all its requests, the answer widens
//! around it. The two levels that the answer rests on are played again, at another time, before it is given.

mod answer;
mod level;
mod objective;
mod search;
mod sequential;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

pub use answer::{Answer, LevelReport, ObjectiveReport, Outcome};
pub use level::Watch;
pub use search::{Action, Bounds, Options, Search};
pub use sequential::Says;

/// What an [`Answer`] calls itself in files.
pub const SCHEMA: &str = "ttft.find/1";
