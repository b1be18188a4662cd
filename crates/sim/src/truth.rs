//! The log of the truth: what was really done for each request, one JSON line each, written by a thread of its
//! own so that the disk never delays a token.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;

use serde::Serialize;

use crate::Error;

/// One request as it really was. All instants are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Truth {
    pub(crate) request_id: String,
    /// The kernel's stamp of the segment that completed the request; our own where there is none.
    pub(crate) arrival_ns: i64,
    /// When our read returned.
    pub(crate) arrival_user_ns: i64,
    pub(crate) connection: u64,
    pub(crate) path: String,
    pub(crate) prompt_tokens: u32,
    pub(crate) output_tokens: u32,
    /// When the engine had it in its queue.
    pub(crate) queued_ns: Option<i64>,
    /// When the engine first worked on it.
    pub(crate) scheduled_ns: Option<i64>,
    /// Just before the write of each token, all choices together.
    pub(crate) write_ns: Vec<i64>,
    pub(crate) first_write_ns: Option<i64>,
    pub(crate) last_write_ns: Option<i64>,
    /// After the last write of the answer, or when the request was given up.
    pub(crate) end_ns: i64,
    /// `ok`, `aborted` (the client left), `refused` (an error status), or the fault that ended it.
    pub(crate) outcome: &'static str,
}

/// The writing thread.
pub(crate) struct TruthLog {
    sender: Sender<Truth>,
    thread: JoinHandle<io::Result<()>>,
}

impl TruthLog {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Truth { path: path.to_owned(), source };
        let file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("sim-truth".to_owned())
            .spawn(move || write(&receiver, file))
            .map_err(failed)?;
        Ok(Self { sender, thread })
    }

    pub(crate) fn put(&self, truth: Truth) {
        // The thread is gone only after a failed write, which `finish` reports.
        let _ = self.sender.send(truth);
    }

    /// Waits until all is written.
    pub(crate) fn finish(self, path: &Path) -> Result<(), Error> {
        drop(self.sender);
        match self.thread.join() {
            Ok(written) => written.map_err(|source| Error::Truth { path: path.to_owned(), source }),
            Err(_) => Err(Error::Panicked),
        }
    }
}

/// Writes until nobody can send any more; flushes whenever there is nothing else to do.
fn write(receiver: &Receiver<Truth>, mut file: BufWriter<File>) -> io::Result<()> {
    loop {
        let next = match receiver.try_recv() {
            Err(TryRecvError::Empty) => {
                file.flush()?;
                receiver.recv().ok()
            }
            other => other.ok(),
        };
        let Some(truth) = next else { return file.flush() };
        serde_json::to_writer(&mut file, &truth)?;
        file.write_all(b"\n")?;
    }
}
