//! Things to do later for a connection, other than the engine's tokens.

use ttft_model::Nanos;

/// Something to do for a connection at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chore {
    /// Output was held back until now.
    Release,
    /// A keep-alive comment, again after so long.
    Comment(Nanos),
    /// Close it if it is still idle.
    CloseIdle,
    /// Accepting failed for want of file descriptors: try again.
    Accept,
}

/// A chore with its time. It is void if the connection or the request has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Errand {
    pub(crate) at: Nanos,
    pub(crate) slot: usize,
    pub(crate) connection: u64,
    /// The request it is about; 0 for none.
    pub(crate) serial: u32,
    pub(crate) chore: Chore,
}
