//! Reads a run's folder: the run's facts, and its records one batch at a time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_ipc::MessageHeader;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::read_record_batch;
use arrow_schema::Schema;
use serde::Deserialize;
use ttft_model::{Plan, Record, Run};

use crate::StoreError;
use crate::decode;
use crate::error::io_error;
use crate::folder::names;
use crate::layout::{Events, Layout};
use crate::schema::{REQUESTS_SCHEMA, RequestsInfo, named_schema};
use crate::stream::{Frame, Messages, Step};

/// The schema of `run.json` that this version reads and writes.
pub const RUN_SCHEMA: &str = "ttft.run/1";

/// A run's small files.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The folder.
    pub path: PathBuf,
    /// `run.json`.
    pub run: Run,
    /// `plan.toml`, or the plan in `run.json` if that file is gone.
    pub plan: Plan,
}

impl StoredRun {
    /// Opens the run's records.
    pub fn requests(&self, events: Events) -> Result<RequestReader, StoreError> {
        RequestReader::open(&self.path.join(names::REQUESTS), events)
    }
}

/// Reads `run.json` and `plan.toml` of a run folder.
pub fn read_run(folder: &Path) -> Result<StoredRun, StoreError> {
    let run = read_run_json(&folder.join(names::RUN))?;
    let plan_path = folder.join(names::PLAN);
    let plan = match fs::read_to_string(&plan_path) {
        Ok(text) => toml::from_str(&text)
            .map_err(|source| StoreError::Plan { path: plan_path, source: Box::new(source) })?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => run.plan.clone(),
        Err(e) => return Err(io_error("read", &plan_path)(e)),
    };
    Ok(StoredRun { path: folder.to_owned(), run, plan })
}

fn read_run_json(path: &Path) -> Result<Run, StoreError> {
    /// Read first, so that another version gets its own message.
    #[derive(Deserialize)]
    struct Named {
        schema: String,
    }
    let json = |source| StoreError::Json { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(io_error("read", path))?;
    let found = serde_json::from_str::<Named>(&text).map_err(json)?.schema;
    if found != RUN_SCHEMA {
        return Err(StoreError::Version { path: path.to_owned(), found, known: RUN_SCHEMA });
    }
    serde_json::from_str(&text).map_err(json)
}

/// The records of one `requests.arrow`, in the order in which they were written. Instants are on the axis of
/// the run. Holds one batch in memory.
pub struct RequestReader {
    path: PathBuf,
    messages: Messages<File>,
    layout: Layout,
    info: RequestsInfo,
    batch: std::vec::IntoIter<Record>,
    ending: Option<Ending>,
}

/// How reading ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// With the stream's own end.
    Marked,
    /// With this many bytes that are no whole batch.
    Cut(u64),
    /// With an error, told once.
    Failed,
}

impl RequestReader {
    /// Opens the file and reads its schema.
    pub fn open(path: &Path, events: Events) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { doing: "read", path: path.to_owned(), source };
        let not_ours = |why: String| StoreError::NotOurs { path: path.to_owned(), why };
        let mut messages = Messages::new(File::open(path).map_err(io)?).map_err(io)?;
        let schema = match messages.step().map_err(io)? {
            Step::Message(frame) => schema_of(&frame).map_err(not_ours)?,
            Step::Bad(_) => return Err(not_ours("it is no arrow stream".to_owned())),
            Step::End | Step::Cut => return Err(not_ours("it ends before its schema".to_owned())),
        };
        match named_schema(&schema) {
            Some(REQUESTS_SCHEMA) => {}
            Some(found) if found.starts_with("ttft.requests/") => {
                let (path, found) = (path.to_owned(), found.to_owned());
                return Err(StoreError::Version { path, found, known: REQUESTS_SCHEMA });
            }
            _ => return Err(not_ours("its schema is not `ttft.requests`".to_owned())),
        }
        let info = RequestsInfo::from_schema(&schema);
        let layout = Layout::find(schema, events).map_err(not_ours)?;
        let batch = Vec::new().into_iter();
        Ok(Self { path: path.to_owned(), messages, layout, info, batch, ending: None })
    }

    /// What the file says of its run.
    pub fn info(&self) -> &RequestsInfo {
        &self.info
    }

    /// The next batch, or the rest of the one under way; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<Vec<Record>>, StoreError> {
        if self.batch.len() > 0 {
            return Ok(Some(std::mem::take(&mut self.batch).collect()));
        }
        if self.ending.is_some() {
            return Ok(None);
        }
        let read = self.read_batch();
        if read.is_err() {
            self.ending = Some(Ending::Failed);
        }
        read
    }

    /// Whether the file ended with the stream's own end. False before it was read to there, and for the file of
    /// a run that is under way or was killed.
    pub fn is_complete(&self) -> bool {
        self.ending == Some(Ending::Marked)
    }

    /// Bytes at the file's end that are no whole batch: what a killed run was writing. 0 before the end was
    /// reached.
    pub fn truncated_bytes(&self) -> u64 {
        match self.ending {
            Some(Ending::Cut(bytes)) => bytes,
            _ => 0,
        }
    }

    fn read_batch(&mut self) -> Result<Option<Vec<Record>>, StoreError> {
        let at = self.messages.at();
        let damaged = |why| StoreError::Damaged { path: self.path.clone(), at, why };
        match self.messages.step().map_err(io_error("read", &self.path))? {
            Step::Message(frame) => {
                let Some(batch) = frame.message.as_ref().header_as_record_batch() else {
                    return Err(damaged("a message that is no batch".to_owned()));
                };
                let needed = self.layout.body_needed(&batch, frame.body_len).map_err(damaged)?;
                let body = self.messages.body(&frame, needed).map_err(io_error("read", &self.path))?;
                let batch = read_record_batch(
                    &body,
                    batch,
                    self.layout.schema.clone(),
                    &HashMap::new(),
                    Some(&self.layout.projection),
                    &frame.message.as_ref().version(),
                )
                .map_err(|e| damaged(e.to_string()))?;
                decode::records(&batch, &self.layout).map(Some).map_err(damaged)
            }
            Step::Bad(why) => Err(damaged(why)),
            Step::End => {
                self.ending = Some(Ending::Marked);
                Ok(None)
            }
            Step::Cut => {
                self.ending = Some(Ending::Cut(self.messages.left()));
                Ok(None)
            }
        }
    }
}

impl Iterator for RequestReader {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.batch.next() {
                return Some(Ok(record));
            }
            match self.next_batch() {
                Ok(Some(batch)) => self.batch = batch.into_iter(),
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

fn schema_of(frame: &Frame) -> Result<Schema, String> {
    match frame.message.as_ref().header_type() {
        MessageHeader::Schema => {}
        _ => return Err("it does not begin with a schema".to_owned()),
    }
    let schema = frame.message.as_ref().header_as_schema().ok_or("its schema is empty")?;
    try_fb_to_schema(schema).map_err(|e| e.to_string())
}
