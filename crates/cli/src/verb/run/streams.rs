//! The answers that a run keeps as they came: `streams/<request id>.jsonl` in its folder.

use std::path::{Path, PathBuf};

use ttft_drive::Single;
use ttft_store::redact::Secrets;

use crate::{exit, recording};

/// Writes answers. The first failure is told, and ends it: results matter more than recordings.
pub(super) struct Streams<'a> {
    folder: PathBuf,
    secrets: &'a Secrets,
    failed: bool,
}

impl<'a> Streams<'a> {
    /// For the run in that folder.
    pub(super) fn under(run: &Path, secrets: &'a Secrets) -> Self {
        Self { folder: run.join("streams"), secrets, failed: false }
    }

    /// Keeps one answer; one that never began has nothing to keep.
    pub(super) fn keep(&mut self, single: &Single) {
        if self.failed || single.headers.is_none() {
            return;
        }
        let path = self.folder.join(format!("{}.jsonl", single.record.id));
        let made = std::fs::create_dir_all(&self.folder).map_err(Into::into);
        if let Err(error) = made.and_then(|()| recording::save(&path, single, self.secrets)) {
            self.failed = true;
            exit::tell(&error.context("no more streams are saved"));
        }
    }
}
