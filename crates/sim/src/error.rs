//! What can go wrong when a simulated engine is set up.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the engine did not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No embedded profile has that name, and no file either.
    #[error("no profile `{name}`: it is neither a file nor one of {}", known.join(", "))]
    UnknownProfile {
        /// What was asked for.
        name: String,
        /// The embedded ones.
        known: Vec<&'static str>,
    },
    /// The profile's file could not be read.
    #[error("cannot read profile {}", path.display())]
    ReadProfile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The profile's text is wrong.
    #[error("profile `{name}` is not valid")]
    ParseProfile {
        /// Its name or file.
        name: String,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The profile says something impossible.
    #[error("profile `{name}`: {problem}")]
    BadProfile {
        /// Its name or file.
        name: String,
        /// What is impossible.
        problem: String,
    },
    /// No fault has that name.
    #[error("no fault `{name}`; there are: {}", known.join(", "))]
    UnknownFault {
        /// What was asked for.
        name: String,
        /// All of them, with the form of their values.
        known: Vec<&'static str>,
    },
    /// A fault's value or share is wrong.
    #[error("fault `{text}`: {problem}")]
    BadFault {
        /// What was asked for.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The address could not be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The truth log could not be made.
    #[error("cannot write the truth log {}", path.display())]
    Truth {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The operating system refused a poll, a timer or a thread.
    #[error("the simulated engine cannot {doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The engine's thread ended by a panic.
    #[error("the simulated engine's thread panicked")]
    Panicked,
}
