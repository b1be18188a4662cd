//! Other tools' figures from our records: each peer's time to first token, time per token and percentiles by that
//! peer's own rules, beside ours.
//!
//! The rules are data, one file a peer in `peers/`. All peers are computed from the same instants, so that only their
//! definitions differ: what their own clients would add or lose is not imitated.

mod convention;
mod definition;
mod fold;
mod measure;
#[cfg(test)]
mod tests;

pub use convention::Convention;
pub use definition::{Peer, PeerError, names, peer};
pub use fold::{Figures, ROSETTA_SCHEMA, Rosetta, RosettaFold, RosettaRow, RosettaStage, TokenFigure};
