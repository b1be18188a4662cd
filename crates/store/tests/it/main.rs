//! The run folder as its users see it: written, killed, filled up, read back.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

mod cut;
#[cfg(unix)]
mod full_disk;
mod round_trip;
mod sample;
mod secrets;
