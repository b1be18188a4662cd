//! What may be wrong with a file: errors that end the reading or skip a record, and problems worth a word.

use std::path::PathBuf;

use serde::Serialize;

use super::Format;

/// A file, or a record of it, that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A record that is none. The ones after it can still be read.
    #[error("{path}, line {line}: {why}")]
    Record {
        /// The file.
        path: PathBuf,
        /// Where the record begins, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A record longer than can be held.
    #[error("{path}, line {line}: the record is longer than {limit} bytes")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Where it begins, from 1.
        line: u64,
        /// Most bytes of a record.
        limit: usize,
    },
    /// Not a text file of a known kind.
    #[error("{path} {what}")]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what to do.
        what: String,
    },
    /// A tokenizer that cannot be used.
    #[error("{path} cannot be used as a tokenizer.json: {why}")]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Nothing in it.
    #[error("{0} holds no prompt and no request")]
    Empty(PathBuf),
    /// The timestamps may be milliseconds or seconds.
    #[error(
        "{path}: the unit of the timestamps is unclear: as milliseconds they are {as_ms} requests a second, as \
         seconds {as_s}; say --trace-format mooncake (milliseconds) or --trace-format guidellm (seconds)"
    )]
    Unit {
        /// The file.
        path: PathBuf,
        /// The rate that milliseconds imply.
        as_ms: String,
        /// The rate that seconds imply.
        as_s: String,
    },
    /// It has no arrival times.
    #[error("{path}, line {line}: no timestamp: a {format} file like this cannot be replayed as a trace")]
    NoTime {
        /// The file.
        path: PathBuf,
        /// The record without one.
        line: u64,
        /// Its format.
        format: Format,
    },
}

impl DatasetError {
    /// Whether the records behind the one at fault can still be read.
    pub(crate) const fn is_of_one_record(&self) -> bool {
        matches!(self, Self::Record { .. })
    }
}

/// Something about a file that a user should know, with the first lines where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A short name that does not change.
    pub kind: &'static str,
    /// How many records have it.
    pub count: u64,
    /// The first lines with it, from 1.
    pub lines: Vec<u64>,
    /// What it is, in words.
    pub text: String,
}

/// So many lines of each kind of problem are named.
const NAMED: usize = 5;

/// The problems of a file, counted.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// One more record with a problem; `text` is that of the first.
    pub(crate) fn add(&mut self, kind: &'static str, line: u64, text: impl FnOnce() -> String) {
        let known = self.0.iter_mut().find(|problem| problem.kind == kind);
        if let Some(problem) = known {
            problem.count += 1;
            if problem.lines.len() < NAMED {
                problem.lines.push(line);
            }
        } else {
            self.0.push(Problem { kind, count: 1, lines: vec![line], text: text() });
        }
    }

    /// A problem of the file as a whole.
    pub(crate) fn of_all(&mut self, kind: &'static str, count: u64, text: String) {
        self.0.push(Problem { kind, count, lines: Vec::new(), text });
    }

    pub(crate) fn finish(self) -> Vec<Problem> {
        self.0
    }
}
