//! Whole runs, against the simulated engine and against servers that misbehave to order.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod closed;
mod directed;
mod edges;
mod open;
mod run;
mod scripted;
mod shapes;
mod stops;
mod timeouts;
