//! What the server's own pages said over one stage: what reconciliation and diagnosis rest on.

use std::collections::BTreeMap;

use ttft_model::Nanos;
use ttft_sources::Reading;

/// What one scraped source told over one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceStage {
    /// Index into the plan's stages.
    pub stage: u32,
    /// Where it was scraped, credentials left out.
    pub source: String,
    /// The page at the stage's end, with the window since its start; `None` if an edge is missing.
    pub reading: Option<Reading>,
    /// Levels in between, oldest first.
    pub levels: Vec<Levels>,
    /// Scrapes of this stage that failed or came too late.
    pub missed: u32,
}

/// The levels of one scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// When the page was asked for, on the axis of the run.
    pub at: Nanos,
    /// Canonical values that are no distributions; what the page did not tell is not there.
    pub values: BTreeMap<&'static str, f64>,
}
