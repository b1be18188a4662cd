//! From what a user asks to what is sent: endpoint URLs and prompts. Knows no sockets and no clocks.

#![forbid(unsafe_code)]

mod conversation;
mod counter;
pub mod dataset;
mod draft;
mod draw;
mod empirical;
mod endpoint;
pub mod estimate;
pub mod file;
mod picture;
mod prompts;
mod shared;
mod spread;
mod words;

pub use counter::Counter;
pub use endpoint::{EndpointError, endpoint_url, root_url, sibling_url};
pub use picture::Pictures;
pub use prompts::{Longest, Prompts};
pub use spread::Spread;
