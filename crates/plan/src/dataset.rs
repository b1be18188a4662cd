//! Files of prompts and traces: read a record at a time, described, and turned into what a run sends.
//!
//! The format is told from the content, never from the file's name. Nothing is guessed where a guess could be wrong
//! by a factor of a thousand: see [`TimeUnit`].

mod arrivals;
mod clock;
mod csv;
mod error;
mod format;
mod json;
mod lines;
mod listed;
mod rows;
mod survey;
mod trace;
mod unit;

pub use arrivals::Arrivals;
pub use clock::calendar;
pub use error::{DatasetError, Problem};
pub use format::Format;
pub(crate) use format::{INPUT, OUTPUT};
pub use json::Item;
pub use lines::Place;
pub use listed::Listed;
pub use rows::{Row, Rows};
pub use survey::{Lengths, Prefixes, Survey, Turns, survey};
pub use trace::{Recorded, Trace};
pub use unit::{Instant, TimeUnit};
