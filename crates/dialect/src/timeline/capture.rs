//! Raw captures: what a socket received, HTTP head and chunked framing included, with or without instants.

use base64::Engine;
use serde::Deserialize;
use serde_json::Value;
use ttft_model::{ErrorClass, Nanos};

use super::http::Response;
use super::{Recording, wrong};
use crate::transcript::BASE64;
use crate::{End, Error};

#[derive(Deserialize)]
struct Line {
    ev: String,
    t_ns: i64,
    bytes_b64: Option<String>,
}

/// One exchange on the connection, while it is read.
struct Exchange {
    sent: i64,
    response: Response,
    recording: Recording,
}

impl Exchange {
    fn new(sent: i64, path: Option<String>) -> Self {
        Self { sent, response: Response::default(), recording: Recording { path, ..Recording::new() } }
    }

    fn take(&mut self, at: Nanos, bytes: &[u8]) -> Result<(), String> {
        let mut body = Vec::new();
        let had_head = self.response.head().is_some();
        self.response.push(bytes, &mut body)?;
        if !had_head && self.response.head().is_some() {
            self.recording.headers_at = Some(at);
        }
        if !body.is_empty() {
            self.recording.reads.push((at, body));
        }
        self.recording.end_at = at;
        Ok(())
    }

    fn close(mut self, end: Option<End>) -> Recording {
        if let Some(head) = self.response.head() {
            self.recording.status = Some(head.status);
            self.recording.content_type.clone_from(&head.content_type);
            self.recording.content_encoding.clone_from(&head.content_encoding);
        }
        self.recording.end = match end {
            _ if self.response.is_complete() => End::Clean,
            Some(End::Clean) if self.response.ends_with_connection() => End::Clean,
            Some(End::Clean) | None => End::Reset,
            Some(other) => other,
        };
        self.recording
    }
}

/// Reads a capture of one connection: a line of facts, then an event a line.
pub(super) fn socket(file: &str, bytes: &[u8]) -> Result<Vec<Recording>, Error> {
    let mut lines = (1..).zip(bytes.split(|b| *b == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
    let facts =
        lines.next().and_then(|(_, line)| serde_json::from_slice::<Value>(line).ok()).unwrap_or_default();
    let path = facts["meta"]["path"].as_str().map(str::to_owned);

    let mut recordings = Vec::new();
    let mut open: Option<Exchange> = None;
    let mut end = None;
    for (number, line) in lines {
        let line: Line =
            serde_json::from_slice(line).map_err(|error| wrong(file, number, &error.to_string()))?;
        let since = |exchange: &Exchange| Nanos(line.t_ns - exchange.sent);
        match line.ev.as_str() {
            "sent" => match &mut open {
                // A request may be written in pieces; the last one counts.
                Some(exchange) if exchange.response.is_untouched() => exchange.sent = line.t_ns,
                _ => {
                    recordings.extend(open.take().map(|exchange| exchange.close(None)));
                    open = Some(Exchange::new(line.t_ns, path.clone()));
                }
            },
            "chunk" => {
                let text = line.bytes_b64.as_deref().unwrap_or_default();
                let bytes =
                    BASE64.decode(text).map_err(|_| wrong(file, number, "`bytes_b64` is not base64"))?;
                let exchange = open.get_or_insert_with(|| Exchange::new(line.t_ns, path.clone()));
                let at = since(exchange);
                exchange.take(at, &bytes).map_err(|problem| wrong(file, number, &problem))?;
            }
            other => {
                end = match other {
                    "eof" => Some(End::Clean),
                    "reset" => Some(End::Reset),
                    "aborted" => Some(End::Cancelled),
                    "timeout" => Some(End::TimedOut(ErrorClass::TimeoutIdle)),
                    _ => continue,
                };
                if let Some(exchange) = &mut open {
                    exchange.recording.end_at = since(exchange);
                }
            }
        }
    }
    recordings.extend(open.map(|exchange| exchange.close(end)));
    Ok(recordings)
}

/// Reads the bytes of one response, head included; there are no instants.
pub(super) fn response(file: &str, bytes: &[u8]) -> Result<Vec<Recording>, Error> {
    let mut exchange = Exchange::new(0, None);
    exchange.recording.timed = false;
    exchange.response = Response::of_a_file();
    // `curl` writes the head of HTTP/2 in the form of HTTP/1, but for the version.
    let line = bytes.iter().position(|b| *b == b'\n').unwrap_or(0);
    let bytes = match bytes[..line].strip_prefix(b"HTTP/") {
        Some(rest) if !rest.starts_with(b"1.") => {
            let status = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
            [b"HTTP/1.1", &rest[status..], &bytes[line..]].concat()
        }
        _ => bytes.to_vec(),
    };
    exchange.take(Nanos::ZERO, &bytes).map_err(|problem| wrong(file, 1, &problem))?;
    Ok(vec![exchange.close(Some(End::Clean))])
}
