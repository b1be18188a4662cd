//! Writes a run's folder while the run goes on.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ttft_model::{Plan, Record, Run};

use crate::StoreError;
use crate::encode::Encoder;
use crate::error::io_error;
use crate::files::{Reserve, replace_file, write_json};
use crate::folder::{Place, names};
use crate::journal::{Appended, Journal, Sink};
use crate::redact::{self, Secrets};
use crate::schema::RequestsInfo;
use crate::scrape_log::ScrapeLog;
use crate::scrapes::{Scrape, ScrapeFile};

/// A batch is written when it has this many rows,
const BATCH_ROWS: usize = 4096;
/// or this many events, so that neither it nor its reader needs much memory.
const BATCH_EVENTS: usize = 1 << 20;
/// Room kept free: some seconds of results at the highest load, and the last `run.json`.
const RESERVE_BYTES: usize = 4 << 20;

/// A run's folder, open for writing.
pub struct RunFolder {
    path: PathBuf,
    encoder: Encoder,
    journal: Journal<RequestsFile>,
    /// Why the disk took nothing at the last try.
    refused: Option<String>,
    rows: u64,
    /// Stages in `plan.toml`.
    stages: usize,
    scrapes: Vec<ScrapeLog>,
}

/// What a finished run left on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The folder.
    pub path: PathBuf,
    /// Rows in `requests.arrow`.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The disk was full on the way.
    pub low_space: bool,
}

impl RunFolder {
    /// Makes the folder with `plan.toml`, a first `run.json` and an empty `requests.arrow`. Secrets that show
    /// by their names are redacted everywhere; see [`RunFolder::keep_out`] for others.
    pub fn create(place: Place<'_>, plan: &Plan, run: &Run) -> Result<Self, StoreError> {
        let plan_text = plan_toml(plan)?;
        let path = place.make(run.zero_unix_ns, &run.name)?;
        replace_file(&path.join(names::PLAN), plan_text.as_bytes())?;

        let (encoder, head) =
            Encoder::new(RequestsInfo::of(run), Secrets::of(plan)).map_err(StoreError::Encode)?;
        let mut journal = Journal::new(RequestsFile::create(&path)?);
        journal.push(head, 0);
        journal.settle().map_err(io_error("write", &path.join(names::REQUESTS)))?;

        let mut folder = Self {
            path,
            encoder,
            journal,
            refused: None,
            rows: 0,
            stages: plan.stages.len(),
            scrapes: Vec::new(),
        };
        folder.update_run(run)?;
        Ok(folder)
    }

    /// Where the run's files are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a text, such as the API key, out of everything written from now on, even if a server repeats it.
    pub fn keep_out(&mut self, secret: &str) {
        self.encoder.secrets().add(secret);
    }

    /// A text without what is kept out of the files.
    pub fn clean<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        self.encoder.secrets().scrub(text)
    }

    /// Adds rows. Written when a batch is full, else at the next [`RunFolder::flush`]. Failure of the disk is
    /// told in the answer; an error means that records cannot be encoded.
    pub fn append(&mut self, records: &[Record]) -> Result<Appended, StoreError> {
        for chunk in records.chunks(BATCH_ROWS) {
            self.encoder.push(chunk);
            if self.encoder.rows() >= BATCH_ROWS || self.encoder.events() >= BATCH_EVENTS {
                self.close_batch()?;
            }
        }
        // After a failure the next flush tries again, not each of a thousand appends.
        if self.refused.is_none() {
            self.settle();
        }
        Ok(self.state())
    }

    /// Writes what was added. To be called each second: a killed run loses no more than that.
    pub fn flush(&mut self) -> Result<Appended, StoreError> {
        self.close_batch()?;
        self.settle();
        Ok(self.state())
    }

    /// Adds a scrape to its file, and writes it at once: there are few. Failure of the disk is told in the answer.
    pub fn scraped(&mut self, file: ScrapeFile, scrape: &Scrape) -> Result<Appended, StoreError> {
        let known = self.scrapes.iter().position(|log| log.file == file);
        if known.is_none() {
            self.scrapes.push(ScrapeLog::create(&self.path, file)?);
        }
        let at = known.unwrap_or(self.scrapes.len() - 1);
        let clean = scrape.scrubbed(self.encoder.secrets());
        let log = &mut self.scrapes[at];
        log.push(&clean)?;
        let mut written = log.settle();
        if written.is_err() && self.journal.make_room() {
            self.journal.set_low();
            written = log.settle();
        }
        Ok(match written {
            Ok(()) => self.state(),
            Err(cause) => Appended::Held { rows: log.held(), cause: cause.to_string() },
        })
    }

    /// Replaces `run.json`. From now on rows may be of its stages, also of those that were added to its plan.
    pub fn update_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.encoder.know(RequestsInfo::of(run));
        let clean = redact::run(run, self.encoder.secrets());
        let path = self.path.join(names::RUN);
        match write_json(&path, &clean) {
            Err(StoreError::Io { .. }) if self.journal.make_room() => {
                self.journal.set_low();
                write_json(&path, &clean)
            }
            result => result,
        }
    }

    /// Writes the rest and the end of the stream, and `run.json` for the last time.
    pub fn finish(mut self, run: &Run) -> Result<Finished, StoreError> {
        self.close_batch()?;
        let end = self.encoder.take_end().map_err(StoreError::Encode)?;
        self.journal.push(end, 0);
        self.journal.make_room();
        let written = self.journal.settle().and_then(|()| self.journal.sink().file.sync_all());

        // Whatever became of the rows, the run's facts are worth a try, and so are the scrapes.
        let told = self.update_run(run).and_then(|()| self.update_plan(&run.plan));
        let scrapes: Result<(), StoreError> = self.scrapes.drain(..).try_for_each(ScrapeLog::finish);
        let path = self.path.join(names::REQUESTS);
        match (written, self.journal.held_rows()) {
            (Ok(()), _) => told.and(scrapes)?,
            (Err(source), 0) => return Err(io_error("end", &path)(source)),
            (Err(source), rows) => return Err(StoreError::NotKept { rows, path, source }),
        }
        Ok(Finished {
            rows: self.rows,
            bytes: self.journal.len(),
            low_space: self.journal.is_low(),
            path: self.path,
        })
    }

    /// Writes the plan again if stages were added to it on the way.
    fn update_plan(&mut self, plan: &Plan) -> Result<(), StoreError> {
        if plan.stages.len() > self.stages {
            replace_file(&self.path.join(names::PLAN), plan_toml(plan)?.as_bytes())?;
        }
        Ok(())
    }

    fn close_batch(&mut self) -> Result<(), StoreError> {
        let rows = self.encoder.rows() as u64;
        if rows > 0 {
            let block = self.encoder.take_block().map_err(StoreError::Encode)?;
            self.journal.push(block, rows);
            self.rows += rows;
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.refused = self.journal.settle().err().map(|e| e.to_string());
    }

    fn state(&self) -> Appended {
        match &self.refused {
            Some(cause) => Appended::Held { rows: self.journal.held_rows(), cause: cause.clone() },
            None if self.journal.is_low() => Appended::LowSpace,
            None => Appended::Fine,
        }
    }
}

/// `plan.toml`: the plan without secrets, with a word on how to repeat it.
fn plan_toml(plan: &Plan) -> Result<String, StoreError> {
    let clean = redact::plan(plan);
    let text = toml::to_string(&clean).map_err(StoreError::EncodePlan)?;
    let fill_in = if clean == *plan { "" } else { "# Fill in what is <redacted> first.\n" };
    Ok(format!("# The plan as run. `ttft run --plan plan.toml` repeats it.\n{fill_in}\n{text}"))
}

/// `requests.arrow` and the room kept for it.
struct RequestsFile {
    file: File,
    reserve: Reserve,
}

impl RequestsFile {
    fn create(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(names::REQUESTS);
        let file =
            OpenOptions::new().append(true).create_new(true).open(&path).map_err(io_error("make", &path))?;
        let reserve = Reserve::take(&folder.join(names::RESERVE), RESERVE_BYTES)?;
        Ok(Self { file, reserve })
    }
}

impl Sink for RequestsFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn make_room(&mut self) -> bool {
        self.reserve.release()
    }
}
