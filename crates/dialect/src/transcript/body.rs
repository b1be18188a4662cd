//! A stream's frames on their way to the reader: terminators, pings, and what is not JSON.

use std::sync::Arc;

use ttft_model::{ErrorClass, Failure};

use super::Options;
use super::failure::first_line;
use super::reader::{Reader, Text};
use crate::Dialect;
use crate::framing::{Frame, Sink};
use crate::json::Scan;
use crate::rules::{Matcher, names};

/// Takes frames.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) dialect: Arc<Dialect>,
    pub(super) reader: Reader,
    /// An event was too long to read on.
    pub(super) too_long: bool,
    scan: Scan,
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
            Frame::TooLong => {
                self.too_long = true;
                self.reader.fail(Failure::new(ErrorClass::Malformed, "an event is longer than 16 MiB"));
            }
        }
    }
}

impl Body {
    pub(super) fn new(dialect: Arc<Dialect>, options: Options) -> Self {
        Self { dialect, reader: Reader::new(options), too_long: false, scan: Scan::default(), not_json: None }
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
            self.reader.answer.facts.after_end += u32::from(!self.is_terminator(data));
            return;
        }

        let facts = &mut self.reader.answer.facts;
        facts.events += 1;
        if facts.events == 1 {
            facts.first_event_bytes = data.len() as u32;
            self.reader.answer.first_event = Some(self.reader.stamp);
        }
        if self.is_terminator(data) {
            self.reader.end();
            return;
        }
        let named = !event.is_empty();
        let ends = named && names(&self.dialect.rules.end_events, event);
        let error = named && names(&self.dialect.rules.error_events, event);
        self.values(data, if error { Text::Error } else { Text::Event });
        if ends {
            self.reader.end();
        }
    }

    /// The event that the end of the body cut off. It is dropped, unless it is the terminator.
    pub(super) fn unfinished(&mut self, data: &[u8]) {
        self.reader.answer.facts.unfinished_event = !self.reader.answer.facts.terminator;
        if self.is_terminator(data) {
            self.event(b"", data);
        }
    }

    /// The document that the whole body is; false if it is not JSON.
    pub(super) fn document(&mut self, json: &[u8]) -> bool {
        let matcher = &self.dialect.rules.document;
        let read = self.scan.value(json, 0, &matcher.trie).is_ok();
        if read {
            self.reader.apply(matcher, &self.scan.hits, json, Text::Document);
        }
        read
    }

    fn is_terminator(&self, data: &[u8]) -> bool {
        self.dialect.rules.end_data.iter().any(|end| {
            data.len() >= end.len() && data.starts_with(end) && data[end.len()..].trim_ascii().is_empty()
        })
    }

    /// The JSON values of one event: one as a rule, two when a gateway put an error into an open event.
    fn values(&mut self, data: &[u8], text: Text) {
        let matcher: &Matcher = &self.dialect.rules.stream;
        let mut from = 0;
        let mut malformed = false;
        while !data[from..].trim_ascii_start().is_empty() {
            if let Ok(end) = self.scan.value(data, from, &matcher.trie) {
                self.reader.apply(matcher, &self.scan.hits, data, text);
                from = end;
                continue;
            }
            malformed = true;
            let Some(line) = memchr::memmem::find(&data[from..], b"\n{") else { break };
            from += line + 1;
        }
        if !malformed {
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
