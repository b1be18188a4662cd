//! From what a user asks to what is sent: endpoint URLs and prompts. Knows no sockets and no clocks.

#![forbid(unsafe_code)]

mod endpoint;
mod prompts;
mod words;

pub use endpoint::{EndpointError, endpoint_url, sibling_url};
pub use prompts::{Item, PromptError, Prompts};
