//! Stream framing and dialects: bytes in, meaning out.
//!
//! A dialect is data: a folder with `dialect.toml` says how to ask and how to read the answer. This crate knows
//! nothing of sockets or clocks; stamps come in as values, beside the bytes.

#![forbid(unsafe_code)]

mod dialect;
mod error;
mod framing;
mod json;
mod recognise;
mod request;
mod rules;
mod timeline;
mod transcript;

pub use dialect::Dialect;
pub use error::{Error, Problem};
pub use framing::Framing;
pub use request::{BodyTemplate, Prompt, RequestSpec};
pub use timeline::{
    DecodeOptions, Decoded, DecodedEvent, DecodedSet, Sample, Spread, TimingsMs, decode_answers,
    decode_bytes, decode_file, decode_set, differences, test_sample, test_samples,
};
pub use transcript::{End, Options, Texts, Transcript};
