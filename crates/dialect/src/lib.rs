//! Stream framing and dialects: bytes in, meaning out.
//!
//! A dialect is data: a folder with `dialect.toml` says how to ask and how to read the answer. This crate knows
//! nothing of sockets or clocks; stamps come in as values, beside the bytes.

#![forbid(unsafe_code)]

mod dialect;
mod error;
mod request;
mod transcript;

pub use dialect::Dialect;
pub use error::Error;
pub use request::{BodyTemplate, Prompt, RequestSpec};
pub use transcript::{End, Options, Transcript};
