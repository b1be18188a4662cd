//! Text for people.
//!
//! Takes what `judge` concluded and returns strings. It computes no metric, opens nothing and knows no terminal:
//! whoever prints says by a [`Style`] whether there is colour and how wide a line may be.

#![forbid(unsafe_code)]

mod arrivals;
mod escape;
mod experience;
mod find;
mod findings;
#[cfg(test)]
mod gallery;
mod knee;
mod number;
mod parts;
mod prompts;
mod reconcile;
mod repeats;
mod rosetta;
mod stage;
mod style;
mod summary;
mod table;
mod waterfall;

pub use escape::{escape, is_hostile};
pub use find::find_text;
pub use findings::findings_text;
pub use number::time;
pub use rosetta::rosetta_text;
pub use style::{Style, wrap};
pub use summary::summary_text;
pub use table::{Align, Cell, Table};
pub use waterfall::waterfall_text;
