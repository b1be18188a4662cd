//! The simulated engine over a real socket, seen by a client that knows only bytes.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod client;
mod faults;
mod protocol;
mod truth;
