//! Appends scrapes to their file while a run goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::StoreError;
use crate::error::io_error;
use crate::journal::{Journal, Sink};
use crate::scrapes::{Head, Scrape, ScrapeFile};

/// One of the two files, made with its first scrape.
pub(crate) struct ScrapeLog {
    pub(crate) file: ScrapeFile,
    path: PathBuf,
    journal: Journal<Lines>,
}

impl ScrapeLog {
    pub(crate) fn create(folder: &Path, file: ScrapeFile) -> Result<Self, StoreError> {
        let path = folder.join(file.name());
        let opened =
            OpenOptions::new().append(true).create_new(true).open(&path).map_err(io_error("make", &path))?;
        let mut log = Self { file, path, journal: Journal::new(Lines(opened)) };
        log.queue(&Head::known(), 0)?;
        Ok(log)
    }

    /// Queues one scrape; [`ScrapeLog::settle`] writes it.
    pub(crate) fn push(&mut self, scrape: &Scrape) -> Result<(), StoreError> {
        self.queue(scrape, 1)
    }

    /// Writes what is queued, as far as the disk takes it.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        self.journal.settle()
    }

    /// Scrapes queued and not written.
    pub(crate) fn held(&self) -> u64 {
        self.journal.held_rows()
    }

    /// Writes the rest, down to the disk.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let written = self.settle().and_then(|()| self.journal.sink().0.sync_all());
        let rows = self.held();
        written.map_err(|source| StoreError::NotKept { rows, path: self.path, source })
    }

    fn queue(&mut self, line: &impl Serialize, rows: u64) -> Result<(), StoreError> {
        let mut bytes = serde_json::to_vec(line)
            .map_err(|source| StoreError::EncodeJson { path: self.path.clone(), source })?;
        bytes.push(b'\n');
        self.journal.push(bytes, rows);
        Ok(())
    }
}

struct Lines(File);

impl Sink for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// The run's reserve is kept beside `requests.arrow`.
    fn make_room(&mut self) -> bool {
        false
    }
}
