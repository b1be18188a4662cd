//! The edges of a run's parts: moments at which nothing is under way, told before the run goes on.

/// Which edge of a part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// All workers are ready, and nothing of it was sent yet.
    Begin,
    /// Its last request has ended.
    End,
}

/// The edge of a stage, or of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Index into the plan's stages; `None` for the warm-up.
    pub stage: Option<u32>,
    /// Which edge.
    pub side: Side,
    /// Requests of the part that ended well so far.
    pub ok: u64,
}

/// Called at each edge by the conductor, which goes on when it returns: so it has to, in bounded time.
pub type AtEdge = Box<dyn Fn(Edge) + Send>;
