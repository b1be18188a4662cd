//! One answer under way: bytes and stamps go in, an [`Answer`] comes out.

use std::sync::Arc;

use ttft_model::{Answer, ErrorClass, Failure, Outcome, Stamp};

use crate::Dialect;

/// How much to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Keep the text of answer and reasoning; off on the hot path.
    pub keep_text: bool,
}

/// How the body came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The body ended as HTTP says it should.
    Clean,
    /// The connection broke.
    Reset,
    /// We stopped it.
    Cancelled,
    /// A deadline of ours passed.
    TimedOut(ErrorClass),
    /// Something else failed.
    Failed(Failure),
}

/// The builder of one [`Answer`].
#[derive(Debug)]
pub struct Transcript {
    dialect: Arc<Dialect>,
    options: Options,
    answer: Answer,
}

impl Transcript {
    /// A transcript of nothing yet.
    pub fn new(dialect: Arc<Dialect>, options: Options) -> Self {
        Self { dialect, options, answer: Answer::default() }
    }

    /// The response head. The content type decides whether the body is a stream or a document; a status other
    /// than 2xx makes the body an error document.
    pub fn on_head(&mut self, _status: u16, _content_type: Option<&str>, _content_encoding: Option<&str>) {}

    /// Body bytes. `read` numbers the socket read that completed them: several calls may share one number.
    pub fn on_body(&mut self, _bytes: &[u8], _read: u64, stamp: Stamp) {
        self.answer.first_byte.get_or_insert(stamp);
    }

    /// The terminator came: nothing more is needed.
    pub fn is_complete(&self) -> bool {
        self.answer.facts.terminator
    }

    /// Whether the first token came.
    pub fn has_output(&self) -> bool {
        self.answer.first_token.is_some()
    }

    /// The answer's text so far; empty unless text is kept.
    pub fn text(&self) -> &str {
        if self.options.keep_text { self.dialect.name() } else { "" }
    }

    /// The reasoning so far; empty unless text is kept.
    pub fn reasoning_text(&self) -> &str {
        ""
    }

    /// What is known so far.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The body is over: the decoded answer with outcome and failure.
    pub fn finish(mut self, _end: End, _at: Stamp) -> Answer {
        self.answer.outcome = Some(Outcome::Cancelled);
        self.answer
    }
}
