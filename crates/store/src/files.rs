//! Small files of a run folder, replaced as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::StoreError;
use crate::error::io_error;

/// Writes a file so that a reader, or a crash, sees the old content or the new one and nothing between.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    let tmp = path.with_file_name(name);
    let written = write_synced(&tmp, bytes).and_then(|()| fs::rename(&tmp, path));
    if written.is_err() {
        // Best effort: the first error is the one to tell.
        let _ = fs::remove_file(&tmp);
    }
    written.map_err(io_error("write", path))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// Writes a value as indented JSON, replacing the file as a whole: `summary.json`, `run.json`.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| StoreError::EncodeJson { path: path.to_owned(), source })?;
    bytes.push(b'\n');
    replace_file(path, &bytes)
}

/// Room on the disk that is given back when the disk is full.
pub(crate) struct Reserve(Option<PathBuf>);

impl Reserve {
    /// Takes that many bytes.
    pub(crate) fn take(path: &Path, bytes: usize) -> Result<Self, StoreError> {
        // Made first: what was written before an error goes with it.
        let reserve = Self(Some(path.to_owned()));
        fs::write(path, noise(bytes)).map_err(io_error("reserve room in", path))?;
        Ok(reserve)
    }

    /// Gives it back. False when that was done before.
    pub(crate) fn release(&mut self) -> bool {
        self.0.take().is_some_and(|path| fs::remove_file(path).is_ok())
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.release();
    }
}

/// Bytes that no file system can compress away.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
