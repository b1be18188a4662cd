//! Metrics pages of engines and accelerators, read in one set of names.
//!
//! A [`Page`] is what a server answered, whatever its format: Prometheus text, `OpenMetrics`, the JSON of `TensorRT-LLM`, the
//! table of nvidia-smi. The [`Catalogue`] knows which series of which engine is what, from data in `engines/`, and gives
//! a [`Reading`]: canonical values with what each rests on. Two pages of one server give a window.
//!
//! Nothing here opens a file or a socket.

#![forbid(unsafe_code)]

mod canonical;
mod catalogue;
mod doubts;
mod engine;
mod error;
mod expect;
mod exposition;
mod histogram;
mod page;
mod reading;
mod select;
mod smi;
mod sniff;
mod trtllm;
mod window;

pub use canonical::{Shape, names, shape};
pub use catalogue::Catalogue;
pub use engine::{Engine, Role};
pub use error::Error;
pub use expect::differences;
pub use exposition::escape_label;
pub use histogram::{Distribution, PROBABILITIES, Quantile};
pub use page::{Format, Kind, Labels, Page, Series};
pub use reading::{Measured, Reading, Window};
pub use sniff::{MAX_PAGE, unpack};
