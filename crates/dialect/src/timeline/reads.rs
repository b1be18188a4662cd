//! Timelines: one JSON line for the head, one for each read of the body, one for the end.

use base64::Engine;
use serde::Deserialize;
use ttft_model::Nanos;

use super::{Recording, wrong};
use crate::transcript::BASE64;
use crate::{End, Error};

#[derive(Deserialize)]
struct Line {
    at_ms: f64,
    event: Option<String>,
    status: Option<u16>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    bytes: Option<String>,
    b64: Option<String>,
}

/// Reads a timeline.
pub(super) fn timeline(file: &str, bytes: &[u8]) -> Result<Recording, Error> {
    let mut recording = Recording::new();
    for (number, line) in (1..).zip(bytes.split(|b| *b == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line: Line =
            serde_json::from_slice(line).map_err(|error| wrong(file, number, &error.to_string()))?;
        let at = Nanos::from_secs_f64(line.at_ms / 1e3);
        recording.end_at = at;
        match line.event.as_deref() {
            Some("headers") => {
                recording.headers_at = Some(at);
                recording.status = line.status;
                let header = |name: &str| {
                    let same = |(key, _): &(&String, &String)| key.eq_ignore_ascii_case(name);
                    line.headers.iter().find(same).map(|(_, value)| value.clone())
                };
                recording.content_type = header("content-type");
                recording.content_encoding = header("content-encoding");
            }
            Some("eof") => recording.end = End::Clean,
            Some("reset") => recording.end = End::Reset,
            Some(other) => return Err(wrong(file, number, &format!("`{other}` is no event of a timeline"))),
            None => {
                let read = match (line.bytes, line.b64) {
                    (Some(text), _) => text.into_bytes(),
                    (None, Some(text)) => {
                        BASE64.decode(&text).map_err(|_| wrong(file, number, "`b64` is not base64"))?
                    }
                    (None, None) => return Err(wrong(file, number, "a read has `bytes` or `b64`")),
                };
                recording.reads.push((at, read));
            }
        }
    }
    Ok(recording)
}
