//! Recordings of answers, read offline: timelines, raw captures of a socket, HTTP responses, and bare bodies.

mod capture;
mod decoded;
mod http;
mod reads;
mod sample;
mod set;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use ttft_model::{Nanos, Stamp};

use crate::{Dialect, End, Error, Options, Transcript};

pub use decoded::{Decoded, DecodedEvent, TimingsMs};
pub use sample::{Sample, differences, test_sample, test_samples};
pub use set::{DecodedSet, Spread, decode_set};

/// So much of a body is looked at to tell its dialect.
const LOOKED_AT: usize = 64 << 10;

/// How to decode a recording.
#[derive(Debug, Clone, Default)]
pub struct DecodeOptions {
    /// The dialect; without one it is told from the recording.
    pub dialect: Option<Arc<Dialect>>,
    /// The recording begins with an HTTP head, and it is an error if it does not. Without this it may.
    pub headers: bool,
}

/// One answer as a socket saw it. Instants count from the moment the last request byte was written.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The request's path, if it is known.
    pub(crate) path: Option<String>,
    /// The recording has instants; a bare body has none.
    pub(crate) timed: bool,
    /// `None` if no head came.
    pub(crate) status: Option<u16>,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) headers_at: Option<Nanos>,
    /// Body bytes, a read each.
    pub(crate) reads: Vec<(Nanos, Vec<u8>)>,
    pub(crate) end: End,
    pub(crate) end_at: Nanos,
}

impl Recording {
    /// An answer of which nothing has come.
    pub(crate) fn new() -> Self {
        Self {
            path: None,
            timed: true,
            status: None,
            content_type: None,
            content_encoding: None,
            headers_at: None,
            reads: Vec::new(),
            end: End::Reset,
            end_at: Nanos::ZERO,
        }
    }
}

/// Decodes the first answer of a recording.
pub fn decode_file(path: &Path, options: &DecodeOptions) -> Result<Decoded, Error> {
    let mut answers = decode_answers(path, options)?;
    if answers.is_empty() {
        return Err(wrong(&path.display().to_string(), 1, "the recording holds no answer"));
    }
    Ok(answers.swap_remove(0))
}

/// Decodes all answers of a recording: a capture of one connection may hold several.
pub fn decode_answers(path: &Path, options: &DecodeOptions) -> Result<Vec<Decoded>, Error> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| Error::Read { file: file.clone(), source })?;
    decode_bytes(&file, bytes, options)
}

/// Decodes all answers of a recording that is in memory; `file` names it, and by its extension what a bare body is.
pub fn decode_bytes(file: &str, bytes: Vec<u8>, options: &DecodeOptions) -> Result<Vec<Decoded>, Error> {
    if options.headers && !bytes.starts_with(b"HTTP/") {
        return Err(wrong(file, 1, "the recording does not begin with an HTTP head"));
    }
    let recordings = recordings(file, bytes)?;
    Ok(recordings.iter().map(|recording| decode(file, recording, options)).collect())
}

/// Reads a recording of any of the known forms, told by its beginning.
fn recordings(file: &str, bytes: Vec<u8>) -> Result<Vec<Recording>, Error> {
    if bytes.starts_with(b"HTTP/") {
        return capture::response(file, &bytes);
    }
    let first = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let first: Value = serde_json::from_slice(first).unwrap_or_default();
    if first.get("at_ms").is_some() {
        return Ok(vec![reads::timeline(file, &bytes)?]);
    }
    if first.get("meta").is_some() {
        return capture::socket(file, &bytes);
    }
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
    let content_type = match extension {
        Some("sse") => Some("text/event-stream"),
        Some("ndjson") => Some("application/x-ndjson"),
        Some("json") => Some("application/json"),
        _ => Some("application/octet-stream"),
    };
    Ok(vec![Recording {
        timed: false,
        status: Some(200),
        content_type: content_type.map(str::to_owned),
        reads: vec![(Nanos::ZERO, bytes)],
        end: End::Clean,
        ..Recording::new()
    }])
}

fn decode(file: &str, recording: &Recording, options: &DecodeOptions) -> Decoded {
    let dialect = options.dialect.clone().unwrap_or_else(|| told(recording));
    let mut transcript = Transcript::new(dialect.clone(), Options { keep_text: true });
    transcript.on_head(
        recording.status.unwrap_or(200),
        recording.content_type.as_deref(),
        recording.content_encoding.as_deref(),
    );
    for (number, (at, bytes)) in (0..).zip(&recording.reads) {
        transcript.on_body(bytes, number, Stamp::user(*at));
    }
    let (answer, texts) = transcript.finish_with_texts(recording.end.clone(), Stamp::user(recording.end_at));
    Decoded::new(file, &dialect, recording, &answer, texts)
}

/// The dialect of a recording: by what its body looks like among those of the path that was asked, else by the path
/// alone, else by the body alone.
fn told(recording: &Recording) -> Arc<Dialect> {
    let start: Vec<u8> =
        recording.reads.iter().flat_map(|(_, bytes)| bytes.iter().copied()).take(LOOKED_AT).collect();
    let has_path =
        |dialect: &Arc<Dialect>| recording.path.as_deref().is_some_and(|path| dialect.has_path(path));
    let content_type = recording.content_type.as_deref();
    let by_both = Dialect::recognised(content_type, &start).find(has_path);
    by_both
        .or_else(|| Dialect::all().iter().find(|dialect| has_path(dialect)).cloned())
        .or_else(|| Dialect::recognise(content_type, &start))
        .or_else(|| Dialect::builtin("openai-chat"))
        .unwrap_or_else(|| unreachable!("the binary carries dialects"))
}

pub(crate) fn wrong(file: &str, line: usize, problem: &str) -> Error {
    Error::Recording { file: file.to_owned(), line, problem: problem.to_owned() }
}
