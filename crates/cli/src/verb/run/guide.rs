//! Who decides, while a run goes on, when a stage has told enough and what is played next.

use ttft_drive::Rest;
use ttft_model::{Record, Stage, StageWindow};

/// Watches a run from beside. Instants are on the monotonic axis, not yet on that of the run.
pub(crate) trait Guide {
    /// Requests that have ended, those of the warm-up too. The answer may end the stage under way before its end.
    fn records(&mut self, _records: &[Record]) -> Option<Cut> {
        None
    }

    /// Whether there may be more stages than are planned.
    fn adds_stages(&self) -> bool {
        false
    }

    /// All planned stages are over, the last one with this window (none if there was none to play): what comes next.
    /// Called again after each such stage; nothing ends the run. Its records have all been told before.
    fn next(&mut self, _ended: Option<&StageWindow>) -> Option<Stage> {
        None
    }
}

/// Ends a stage before its end.
pub(crate) struct Cut {
    /// What becomes of the requests under way.
    pub rest: Rest,
    /// Why; it stands in the summary.
    pub why: String,
}

/// Plays what is planned.
pub(crate) struct Planned;

impl Guide for Planned {}
