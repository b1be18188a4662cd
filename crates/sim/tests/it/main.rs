//! The simulated engine over a real socket, seen by a client that knows only bytes.

mod client;
mod faults;
mod protocol;
mod truth;
