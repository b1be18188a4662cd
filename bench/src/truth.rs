//! The engine's log of what really happened.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use ttft_model::RequestId;

/// One request as the engine knows it, in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    /// The id that the client sent, if it sent one like ours.
    pub(crate) id: Option<RequestId>,
    /// The kernel's stamp of the segment that completed the request.
    pub(crate) arrival_ns: i64,
    /// Just before the first token was written.
    pub(crate) first_write_ns: i64,
}

impl Truth {
    pub(crate) fn ttft_ns(self) -> i64 {
        self.first_write_ns - self.arrival_ns
    }
}

/// A line of the log, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    request_id: String,
    arrival_ns: i64,
    first_write_ns: Option<i64>,
}

/// The requests that got a token.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Truth>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut found = Vec::new();
    for line in BufReader::new(file).lines() {
        let line: Line = serde_json::from_str(&line?).context("the truth log has a line that is none")?;
        if let Some(first_write_ns) = line.first_write_ns {
            let id = line.request_id.parse().ok();
            found.push(Truth { id, arrival_ns: line.arrival_ns, first_write_ns });
        }
    }
    Ok(found)
}
