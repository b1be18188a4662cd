//! A stream's frames on their way to the reader: terminators, pings, and what is not JSON.

use std::sync::Arc;

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};
use ttft_model::{ErrorClass, Failure};

use super::Options;
use super::failure::{failure, first_line};
use super::reader::{Reader, Text};
use crate::Dialect;
use crate::framing::{Frame, Sink, Unfinished};
use crate::json::{Kind, Scan, Trie};
use crate::rules::{Matcher, Meaning, names};

/// Base64 as recordings and servers write it: with padding or without.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A broken event is searched for so many further values: gateways put one error into it, and a hostile text of many
/// beginnings must not be read to its end from each of them.
const MAX_RESTARTS: usize = 16;

/// Takes frames.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) dialect: Arc<Dialect>,
    pub(super) reader: Reader,
    /// Nothing more can be cut from the stream.
    pub(super) dead: bool,
    scan: Scan,
    /// An event that came in base64.
    inner: Vec<u8>,
    /// Data that was not JSON at all: an error message, if the stream does not end well.
    pub(super) not_json: Option<String>,
}

impl Sink for Body {
    fn frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::Event { event, data } => self.event(event, data),
            Frame::Comment => self.reader.answer.facts.comments += 1,
            Frame::Field { name, value } => {
                if names(&self.dialect.rules.error_fields, name) {
                    self.reader.answer.facts.events += 1;
                    self.values(value, Text::Error);
                }
            }
            Frame::Stray { line } => {
                if !self.only_error(b"", line) {
                    self.reader.answer.facts.malformed_events += 1;
                }
            }
            Frame::Failure { code, message, data } => {
                self.count(data);
                let failure = self.failure(code, message, data);
                self.reader.fail(failure);
            }
            Frame::TooLong => self.give_up("an event is longer than 16 MiB"),
            Frame::Broken(why) => self.give_up(why),
        }
    }
}

impl Body {
    pub(super) fn new(dialect: Arc<Dialect>, options: Options) -> Self {
        Self {
            dialect,
            reader: Reader::new(options),
            dead: false,
            scan: Scan::default(),
            inner: Vec::new(),
            not_json: None,
        }
    }

    fn give_up(&mut self, why: &str) {
        self.dead = true;
        self.reader.fail(Failure::new(ErrorClass::Malformed, why));
    }

    /// A whole event.
    pub(super) fn event(&mut self, event: &[u8], data: &[u8]) {
        let rules = &self.dialect.rules;
        let facts = &mut self.reader.answer.facts;
        if (!event.is_empty() && names(&rules.ping_events, event))
            || rules.comment_data.iter().any(|start| data.starts_with(start))
            || data.trim_ascii().is_empty()
        {
            facts.comments += 1;
            return;
        }
        if self.reader.answer.facts.terminator {
            // Some servers send a second terminator, which says nothing new.
            if !self.is_terminator(data) {
                self.reader.answer.facts.after_end += 1;
                if self.only_error(event, data) {
                    self.reader.take_counts(&self.dialect.rules.stream, &self.scan.hits, data);
                }
            }
            return;
        }

        self.count(data);
        if self.is_terminator(data) {
            self.reader.end();
            return;
        }
        let named = !event.is_empty();
        let ends = named && names(&self.dialect.rules.end_events, event);
        let error = named && names(&self.dialect.rules.error_events, event);
        let text = if error { Text::Error } else { Text::Event };
        if self.unwrap(data) {
            let inner = std::mem::take(&mut self.inner);
            self.values(&inner, text);
            self.inner = inner;
        } else {
            self.values(data, text);
        }
        if ends {
            self.reader.end();
        }
    }

    fn count(&mut self, data: &[u8]) {
        let facts = &mut self.reader.answer.facts;
        facts.events += 1;
        if facts.events == 1 {
            facts.first_event_bytes = data.len() as u32;
            self.reader.answer.first_event = Some(self.reader.stamp);
        }
    }

    /// Decodes an event that another one holds in base64; false if there is none.
    fn unwrap(&mut self, data: &[u8]) -> bool {
        let Some(trie) = &self.dialect.rules.base64 else { return false };
        if self.scan.value(data, 0, trie).is_err() {
            return false;
        }
        let Some(hit) = self.scan.hits.iter().find(|hit| hit.is_text()) else { return false };
        self.inner.clear();
        BASE64.decode_vec(hit.raw(data), &mut self.inner).is_ok()
    }

    /// The failure that the framing tells.
    fn failure(&mut self, code: &[u8], message: &[u8], data: &[u8]) -> Failure {
        let matcher = &self.dialect.rules.stream;
        let mut told = if self.scan.value(data, 0, &matcher.trie).is_ok() {
            failure(ErrorClass::InStreamError, matcher, &self.scan.hits, data, None)
        } else {
            Failure::new(ErrorClass::InStreamError, first_line(if data.is_empty() { message } else { data }))
        };
        if !code.is_empty() {
            told.code = Some(first_line(code));
        }
        told
    }

    /// The event that the end of the body cut off. It is dropped, unless it is the terminator or an error: that must
    /// not be missed.
    pub(super) fn unfinished(&mut self, rest: Unfinished<'_>) {
        self.reader.answer.facts.unfinished_event = !self.reader.answer.facts.terminator;
        if self.is_terminator(rest.data) {
            self.event(b"", rest.data);
        } else if !rest.data.is_empty() {
            self.only_error(rest.event, rest.data);
        }
        if let Some((name, value)) = rest.field {
            self.frame(Frame::Field { name, value });
        }
    }

    /// An event that is no part of the stream; false if it is no JSON. An error must not be missed even so.
    fn only_error(&mut self, event: &[u8], data: &[u8]) -> bool {
        let matcher = &self.dialect.rules.stream;
        let named = !event.is_empty() && names(&self.dialect.rules.error_events, event);
        let read = self.scan.value(data, 0, &matcher.trie).is_ok();
        if read {
            self.reader.take_error(matcher, &self.scan.hits, data, named);
        } else if named {
            self.reader.fail(Failure::new(ErrorClass::InStreamError, first_line(data)));
        }
        read
    }

    /// The document that the whole body is; false if it is not JSON.
    pub(super) fn document(&mut self, json: &[u8]) -> bool {
        let matcher = &self.dialect.rules.document;
        let mut from = 0;
        while let Ok(end) = self.scan.value(json, from, &matcher.trie) {
            self.reader.apply(matcher, &self.scan.hits, json, Text::Document);
            from = end;
        }
        let read = from > 0;
        let more = !json[from..].trim_ascii().is_empty();
        self.reader.answer.facts.malformed_events += u32::from(read && more);
        read
    }

    /// Whether a line can be the whole answer: an end, a finish or an error is in it, or nothing could be.
    pub(super) fn is_done(&mut self, line: &[u8]) -> bool {
        let matcher = &self.dialect.rules.document;
        if self.scan.value(line, 0, &matcher.trie).is_err() {
            return true;
        }
        let hits = &self.scan.hits;
        let ends = |meaning| matches!(meaning, Meaning::End | Meaning::Finish | Meaning::Error);
        let ended = hits.iter().any(|hit| {
            let mut rules = matcher.rules(hit.slot).iter();
            hit.kind != Kind::Null && rules.any(|rule| ends(rule.meaning) && rule.applies(hit, hits, line))
        });
        ended || !matcher.has(Meaning::End)
    }

    /// Whether a text is one JSON value.
    pub(super) fn is_json(&mut self, text: &[u8]) -> bool {
        let nothing = Trie::default();
        self.scan.value(text, 0, &nothing).is_ok_and(|end| text[end..].trim_ascii().is_empty())
    }

    pub(super) fn is_terminator(&self, data: &[u8]) -> bool {
        self.dialect.rules.end_data.iter().any(|end| {
            data.len() >= end.len() && data.starts_with(end) && data[end.len()..].trim_ascii().is_empty()
        })
    }

    /// The JSON values of one event: one as a rule, two when a gateway put an error into an open event.
    fn values(&mut self, data: &[u8], text: Text) {
        let matcher: &Matcher = &self.dialect.rules.stream;
        let mut from = 0;
        let mut malformed = 0;
        while !data[from..].trim_ascii_start().is_empty() {
            if let Ok(end) = self.scan.value(data, from, &matcher.trie) {
                self.reader.apply(matcher, &self.scan.hits, data, text);
                let whole = &self.dialect.rules.document;
                if !self.reader.has_output() && self.scan.value(data, from, &whole.trie).is_ok() {
                    self.reader.take_whole(whole, &self.scan.hits, data);
                }
                from = end;
                continue;
            }
            malformed += 1;
            let next = memchr::memmem::find(&data[from..], b"\n{").filter(|_| malformed <= MAX_RESTARTS);
            let Some(line) = next else { break };
            from += line + 1;
        }
        if malformed == 0 {
            return;
        }
        self.reader.answer.facts.malformed_events += 1;
        let is_json = matches!(data.trim_ascii_start().first(), None | Some(b'{' | b'['));
        if text == Text::Error {
            self.reader.fail(Failure::new(ErrorClass::InStreamError, first_line(data)));
        } else if !is_json && self.not_json.is_none() {
            self.not_json = Some(first_line(data));
        }
    }
}
