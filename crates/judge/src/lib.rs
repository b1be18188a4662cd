//! Statistics and opinion over records.
//!
//! Pure arithmetic: records and the run's facts go in, a [`Summary`] comes out. Nothing here reads a clock, a file
//! or a socket, and nothing formats text for people beyond the sentences of a finding.

#![forbid(unsafe_code)]

pub mod arrivals;
pub mod check;
mod client;
mod contamination;
#[cfg(test)]
mod coverage;
mod decompose;
mod diagnose;
mod distribution;
mod drift;
mod error;
pub mod experience;
pub mod find;
mod finding;
mod fold;
#[cfg(test)]
mod golden;
mod goodput;
pub mod interval;
mod knee;
#[cfg(test)]
mod made_up;
pub mod metrics;
mod phases;
pub mod precision;
pub mod quantile;
mod reconcile;
mod repeats;
pub mod rosetta;
mod samples;
mod say;
mod series;
pub mod server;
mod slo;
mod stream;
mod summary;
mod turns;
#[cfg(test)]
mod virtual_run;
mod window;

pub use client::{Client, Verdict};
pub use decompose::{Decomposition, Part};
pub use distribution::{Bound, Distribution, Interval, Intervals};
pub use error::Error;
pub use experience::Experience;
pub use finding::{Cause, Confidence, Finding, Level};
pub use fold::{RunFold, StageFold};
pub use goodput::{Goodput, SloResult};
pub use knee::{Axis, CrossCheck, Knee, KneePoint};
pub use phases::{Phase, phases};
pub use reconcile::{Agreement, Gateway, Pair, PerRequest, Reconcile};
pub use repeats::{Between, Repeats};
pub use samples::Samples;
pub use slo::{Comparison, Slo, Statistic, Subject, objectives};
pub use stream::Stream;
pub use summary::{
    EndpointHead, FailureGroup, PartSummary, Requests, RunHead, SCHEMA, StageSummary, Summary, Throughput,
    TokenCounts, Tokens, WindowChoice, Windows,
};
pub use turns::{Sessions, Turn};
pub use window::{Little, WindowFigures};
