//! Whether a body is a stream or one document, told by its first bytes where its head leaves it open.

use super::{MAX_DOCUMENT, Mode, Transcript};
use crate::framing::Framing;

/// So many bytes tell a stream from a document.
const SNIFF: usize = 8;
/// What a server-sent stream begins with, comments apart.
const FIELDS: [&[u8]; 5] = [b"data", b"event", b"id:", b"retry", b"\xEF\xBB\xBF"];

impl Transcript {
    pub(super) fn keep_to_sniff(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        if let Some(mode) = self.sniff(&self.kept) {
            let kept = std::mem::take(&mut self.kept);
            self.set_mode(mode);
            self.take(&kept);
        }
    }

    /// Holds back what came until something follows the first line: then it is a stream, if that line is JSON.
    pub(super) fn first_line(&mut self, bytes: &[u8]) {
        let bytes = if self.kept.is_empty() { bytes.trim_ascii_start() } else { bytes };
        let before = self.kept.len();
        self.keep(bytes, MAX_DOCUMENT);
        if self.line.is_none() {
            let delimiter = if self.body.dialect.rules.framing == Framing::Nul { 0 } else { b'\n' };
            let end = self.kept.get(before..).and_then(|new| memchr::memchr(delimiter, new));
            self.line = end.map(|end| (before + end + 1, self.body.reader.at()));
        }
        let Some((end, (read, stamp))) = self.line.filter(|_| self.mode == Mode::FirstLine) else { return };
        if self.kept[end.max(before)..].trim_ascii().is_empty() {
            return;
        }
        if !self.body.is_json(&self.kept[..end]) {
            return self.set_mode(Mode::Document);
        }
        let kept = std::mem::take(&mut self.kept);
        self.set_mode(Mode::Stream);
        // The first line came when it came, not when the second one told what it is.
        let now = self.body.reader.at();
        self.body.reader.arrived(read, stamp);
        self.framer.push(&kept[..end], &mut self.body);
        self.body.reader.arrived(now.0, now.1);
        self.framer.push(&kept[end..], &mut self.body);
    }

    /// What a body is, from its beginning; `None` if more bytes are needed.
    pub(super) fn sniff(&self, start: &[u8]) -> Option<Mode> {
        let first = start.first()?;
        match self.body.dialect.rules.framing {
            Framing::Sse => sniff_sse(start, self.event_stream),
            Framing::JsonArray if *first == b'[' => Some(Mode::Stream),
            Framing::JsonArray => Some(Mode::Document),
            // No frame is two gigabytes long.
            Framing::AwsEventstream if matches!(first, b'{' | b'[' | b'<') => Some(Mode::Document),
            Framing::Ndjson | Framing::Nul if *first == b'<' => Some(Mode::Document),
            Framing::AwsEventstream | Framing::Ndjson | Framing::Nul => Some(Mode::Stream),
        }
    }
}

/// What a body is that may hold server-sent events.
fn sniff_sse(start: &[u8], event_stream: bool) -> Option<Mode> {
    match start.first()? {
        b'{' | b'[' | b'<' => return Some(Mode::Document),
        b':' => return Some(Mode::Stream),
        _ if event_stream => return Some(Mode::Stream),
        _ => {}
    }
    if FIELDS.iter().any(|field| start.starts_with(field)) {
        return Some(Mode::Stream);
    }
    let may_be_field = FIELDS.iter().any(|field| field.starts_with(start));
    if may_be_field && start.len() < SNIFF { None } else { Some(Mode::Document) }
}
