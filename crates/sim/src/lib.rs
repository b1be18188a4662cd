//! A simulated LLM engine, served over a real socket in real time, with a log of the truth.
//!
//! It stands where vLLM would: the same paths, event shapes, error bodies and metrics page, and an engine with
//! continuous batching behind them (or fixed times, for checks of accuracy). It shares no code with the
//! client: what reads the answers elsewhere must not be what wrote them here.
//!
//! One thread does everything: an epoll loop owns the sockets, a pure engine says which token is due when, and
//! each token is one write. A prompt's tokens are its words, plus the few of the chat template.

#![forbid(unsafe_code)]

mod alarm;
mod connection;
mod engine;
mod errand;
mod error;
mod exchange;
mod fault;
mod http;
mod instant;
mod listener;
mod metrics;
mod options;
mod profile;
mod question;
mod random;
mod serve;
mod server;
mod sim;
mod truth;
#[cfg(feature = "virtual-time")]
mod virtual_time;
mod words;

pub use error::Error;
pub use fault::Faults;
pub use options::SimOptions;
pub use profile::{Batching, Cold, OutputLength, Pace, Pressure, Profile, Timed};
pub use sim::{Sim, SimStats};
#[cfg(feature = "virtual-time")]
pub use virtual_time::{Played, Shape, Trip, VirtualEngine};
