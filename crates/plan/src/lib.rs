//! From what a user asks to what is sent: endpoint URLs and prompts. Knows no sockets and no clocks.

#![forbid(unsafe_code)]

pub mod dataset;
mod draw;
mod endpoint;
mod prompts;
mod spread;
mod words;

pub use endpoint::{EndpointError, endpoint_url, sibling_url};
pub use prompts::Prompts;
pub use spread::Spread;
