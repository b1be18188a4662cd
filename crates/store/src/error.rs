//! What can go wrong with a run folder.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder asked for holds files already.
    #[error("{} is not empty: name a new or an empty folder", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// Records could not be turned into columns.
    #[error("cannot encode records")]
    Encode(#[source] arrow_schema::ArrowError),
    /// The plan could not be written as TOML.
    #[error("cannot write the plan as toml")]
    EncodePlan(#[source] toml::ser::Error),
    /// A value could not be written as JSON.
    #[error("cannot write {} as json", path.display())]
    EncodeJson {
        /// The file it was meant for.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// A JSON file of a run could not be read.
    #[error("{} is no run that this version of ttft can read", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// `plan.toml` could not be read.
    #[error("{} is not a plan", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<toml::de::Error>,
    },
    /// The file or folder is something else.
    #[error("{} is not a file of ours: {why}", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What gives it away.
        why: String,
    },
    /// A version of the file that this program does not know.
    #[error("{} has schema `{found}`, and this version reads `{known}`: use a newer ttft", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        found: String,
        /// The schema that is read here.
        known: &'static str,
    },
    /// The file is ours, but bytes in its middle are wrong. Everything before them was read.
    #[error("{} is damaged at byte {at}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the bad message begins.
        at: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The disk took not all: these rows are lost, all others are in the file.
    #[error("{rows} records could not be written to {}", path.display())]
    NotKept {
        /// Rows lost.
        rows: u64,
        /// The file that they belong to.
        path: PathBuf,
        /// The last answer of the operating system.
        source: io::Error,
    },
}

/// Turns an error of the operating system into ours.
pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { doing, path: path.to_owned(), source }
}
