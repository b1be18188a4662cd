//! An answer as a file that `ttft decode` reads: one JSON line for the head, one for each read of the body,
//! one for the end.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use ttft_drive::Single;
use ttft_model::{ErrorClass, Nanos, Outcome};
use ttft_store::redact::Secrets;

/// Writes the answer; instants count from the moment the last byte of the request was written.
pub(crate) fn save(path: &Path, single: &Single, secrets: &Secrets) -> anyhow::Result<()> {
    let (record, Some(headers)) = (&single.record, &single.headers) else {
        bail!("no answer came that could be saved to {}", path.display());
    };
    let zero = record.phases.sent.unwrap_or(record.phases.started);
    let ms = |at: Nanos| (at - zero).as_millis_f64();

    let named = |name: &http::HeaderName| {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        (name.to_string(), values.collect::<Vec<_>>().join(", "))
    };
    let headers: BTreeMap<_, _> = headers.keys().map(named).collect();
    let head_at = record.phases.headers.map_or(zero, ttft_model::Stamp::at);
    let mut lines = vec![
        json!({ "at_ms": ms(head_at), "event": "headers", "status": record.status, "headers": headers }),
    ];
    lines.extend(single.reads.iter().map(|read| match std::str::from_utf8(&read.bytes) {
        Ok(text) => json!({ "at_ms": ms(read.at), "bytes": secrets.scrub(text) }),
        Err(_) => json!({ "at_ms": ms(read.at), "b64": BASE64_STANDARD.encode(&read.bytes) }),
    }));
    lines.extend(end(single).map(|event| json!({ "at_ms": ms(record.finished), "event": event })));

    let text = lines.iter().fold(String::new(), |mut text, line: &Value| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
        text
    });
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// How the body ended; nothing when it had not ended when it was given up.
fn end(single: &Single) -> Option<&'static str> {
    match (single.record.outcome(), single.record.failure().map(|failure| failure.class)) {
        (Outcome::Timeout | Outcome::Cancelled, _) => None,
        (_, Some(ErrorClass::Reset)) => Some("reset"),
        _ => Some("eof"),
    }
}
