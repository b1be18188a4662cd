//! One answer under way: bytes and stamps go in, an [`Answer`] comes out.
//!
//! The same builder serves a live socket, a recording, and bytes cut from packets.

mod body;
mod cumulative;
mod document;
mod failure;
mod inflate;
mod reader;
mod running;
mod sentence;
mod sniff;
mod verdict;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ttft_model::{Answer, ErrorClass, Failure, Stamp};

use crate::Dialect;
use crate::framing::{Framer, Framing, Rest};
pub(crate) use body::BASE64;
use body::Body;
use inflate::Inflate;

/// The largest document that is kept: a whole answer that was not streamed.
const MAX_DOCUMENT: usize = 16 << 20;
/// The most that a compressed body may hold: no answer comes near it, but a bomb does. From so much on it must not
/// be more than so many times what was sent; streams of short events get to a third of that.
const MAX_INFLATED: usize = 256 << 20;
const MEASURED_FROM: usize = 16 << 20;
const MAX_RATIO: usize = 100;
/// Of an error page no more than this is kept.
const MAX_ERROR_PAGE: usize = 64 << 10;
/// So many bytes are kept to tell what an answer looks like.
const START: usize = 16 << 10;
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
    /// The connection broke: reset, or closed before HTTP's own end of the body.
    Reset,
    /// We stopped it.
    Cancelled,
    /// A deadline of ours passed.
    TimedOut(ErrorClass),
    /// Something else failed.
    Failed(Failure),
}

/// The texts of an answer, when they are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    /// The visible text of the first choice.
    pub text: String,
    /// The reasoning of the first choice.
    pub reasoning: String,
    /// What each output event brought, in any channel and choice; as many as the answer has events.
    pub events: Vec<String>,
}

/// What the bytes of the body are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Not known yet: its first bytes tell.
    Unknown,
    /// A stream of lines or one document: what follows the first line tells.
    FirstLine,
    Stream,
    Document,
    /// The body of a status other than 2xx.
    ErrorPage,
    /// Nothing of it can be read.
    Unreadable,
}

/// The builder of one [`Answer`].
#[derive(Debug)]
pub struct Transcript {
    framer: Framer,
    body: Body,
    mode: Mode,
    has_head: bool,
    status: u16,
    event_stream: bool,
    inflate: Option<Inflate>,
    /// Bytes that went into it, and that came out of it.
    deflated: usize,
    inflated: usize,
    /// A document, an error page, or the bytes that are still to tell what it is.
    kept: Vec<u8>,
    /// The first bytes of the body and its content type, where texts are kept, to tell what they look like.
    start: Vec<u8>,
    content_type: Option<String>,
    /// Where the first line ends, and the read and stamp that completed it, while it is held back.
    line: Option<(usize, (u64, Stamp))>,
    last_read: Option<u64>,
    last_byte: Option<Stamp>,
}

impl Transcript {
    /// A transcript of nothing yet.
    pub fn new(dialect: Arc<Dialect>, options: Options) -> Self {
        Self {
            framer: Framer::new(dialect.rules.framing),
            body: Body::new(dialect, options),
            mode: Mode::Unknown,
            has_head: false,
            status: 200,
            event_stream: false,
            inflate: None,
            deflated: 0,
            inflated: 0,
            kept: Vec::new(),
            start: Vec::new(),
            content_type: None,
            line: None,
            last_read: None,
            last_byte: None,
        }
    }

    /// The response head. Status and content type say whether the body is a stream, a document or an error page;
    /// where they leave it open, its first bytes do.
    pub fn on_head(&mut self, status: u16, content_type: Option<&str>, content_encoding: Option<&str>) {
        self.has_head = true;
        if self.body.reader.keeps_text() {
            self.content_type = content_type.map(str::to_owned);
        }
        self.status = status;
        let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        let media = media.trim().to_ascii_lowercase();
        self.event_stream = media == "text/event-stream" || media.is_empty();
        let framing = self.body.dialect.rules.framing;
        let json = media == "application/json";
        if !(200..300).contains(&status) {
            self.mode = Mode::ErrorPage;
        } else if framing != Framing::Sse && media == "text/html" {
            self.set_mode(Mode::Document);
        } else if matches!(framing, Framing::Ndjson | Framing::Nul) && json {
            self.mode = Mode::FirstLine;
        }

        let encoding = content_encoding.unwrap_or_default().trim().to_ascii_lowercase();
        match encoding.as_str() {
            "" | "identity" => {}
            "gzip" | "x-gzip" => self.inflate = Some(Inflate::gzip()),
            "deflate" => self.inflate = Some(Inflate::deflate()),
            _ => self.unreadable(&format!(
                "the body has the content encoding `{encoding}`, which was not asked for"
            )),
        }
        self.body.reader.answer.facts.compressed = !matches!(encoding.as_str(), "" | "identity");
    }

    /// Body bytes. `read` numbers the socket read that completed them: several calls may share one number and
    /// stamp.
    pub fn on_body(&mut self, bytes: &[u8], read: u64, stamp: Stamp) {
        if bytes.is_empty() {
            return;
        }
        let answer = &mut self.body.reader.answer;
        answer.first_byte.get_or_insert(stamp);
        if self.last_read != Some(read) {
            self.last_read = Some(read);
            answer.facts.reads += 1;
        }
        self.last_byte = Some(stamp);
        self.body.reader.arrived(read, stamp);

        let Some(mut inflate) = self.inflate.take() else { return self.plain(bytes) };
        self.deflated += bytes.len();
        let whole = inflate.push(bytes, &mut |plain| {
            self.inflated += plain.len();
            if !self.is_bomb() {
                self.plain(plain);
            }
            !self.is_bomb()
        });
        self.inflate = Some(inflate);
        if self.mode == Mode::Unreadable {
            return;
        }
        if self.is_bomb() {
            self.unreadable("the compressed body holds more than any answer does");
        } else if !whole {
            self.unreadable("the compressed body is broken");
        }
    }

    fn is_bomb(&self) -> bool {
        self.inflated > MAX_INFLATED
            || (self.inflated > MEASURED_FROM && self.inflated / MAX_RATIO > self.deflated)
    }

    /// Body bytes after any compression is undone.
    fn plain(&mut self, bytes: &[u8]) {
        if self.body.reader.keeps_text() && self.start.len() < START {
            let some = bytes.len().min(START - self.start.len());
            self.start.extend_from_slice(&bytes[..some]);
        }
        self.take(bytes);
    }

    fn take(&mut self, mut bytes: &[u8]) {
        match self.mode {
            Mode::Stream => self.framer.push(bytes, &mut self.body),
            Mode::Document => self.keep(bytes, MAX_DOCUMENT),
            Mode::ErrorPage => self.keep(bytes, MAX_ERROR_PAGE),
            Mode::Unreadable => {}
            Mode::FirstLine => self.first_line(bytes),
            Mode::Unknown => {
                if self.kept.is_empty() {
                    bytes = bytes.trim_ascii_start();
                }
                match self.kept.is_empty().then(|| self.sniff(bytes)).flatten() {
                    Some(mode) => {
                        self.set_mode(mode);
                        self.take(bytes);
                    }
                    None => self.keep_to_sniff(bytes),
                }
            }
        }
    }

    fn keep(&mut self, bytes: &[u8], most: usize) {
        let room = most.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room && matches!(self.mode, Mode::Document | Mode::FirstLine) {
            self.unreadable("the answer is one document of more than 16 MiB");
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.body.reader.answer.facts.streamed = mode == Mode::Stream;
    }

    fn unreadable(&mut self, message: &str) {
        self.kept = Vec::new();
        self.mode = Mode::Unreadable;
        self.body.reader.fail(Failure::new(ErrorClass::Malformed, message));
    }

    /// The terminator came, or nothing that follows can be read: there is no need to wait for the body's end.
    pub fn is_complete(&self) -> bool {
        self.body.reader.answer.facts.terminator
            || self.body.dead
            || self.mode == Mode::Unreadable
            || (self.mode == Mode::Stream && self.has_open_terminator())
    }

    /// The terminator came without the blank line that ends an event, which some servers never send.
    fn has_open_terminator(&self) -> bool {
        self.framer.open_event().is_some_and(|data| self.body.is_terminator(data))
    }

    /// Whether the first token came.
    pub fn has_output(&self) -> bool {
        self.body.reader.answer.first_token.is_some()
    }

    /// The dialect that the body so far looks like, whatever it was read as. `None` if it looks like none, and unless
    /// texts are kept.
    pub fn looks_like(&self) -> Option<Arc<Dialect>> {
        Dialect::recognise(self.content_type.as_deref(), &self.start)
    }

    /// The visible text so far; empty unless text is kept.
    pub fn text(&self) -> &str {
        &self.body.reader.texts.text
    }

    /// The reasoning so far; empty unless text is kept.
    pub fn reasoning_text(&self) -> &str {
        &self.body.reader.texts.reasoning
    }

    /// What is known so far; outcome and failure come with [`Transcript::finish`].
    pub fn answer(&self) -> &Answer {
        &self.body.reader.answer
    }

    /// The body is over: the decoded answer with outcome and failure.
    pub fn finish(self, end: End, at: Stamp) -> Answer {
        self.finish_with_texts(end, at).0
    }

    /// [`Transcript::finish`], with the texts if they were kept.
    pub fn finish_with_texts(mut self, end: End, at: Stamp) -> (Answer, Texts) {
        let sse = self.body.dialect.rules.framing == Framing::Sse;
        if self.mode == Mode::FirstLine {
            // One line that says that it is not the last is what a cut left of a stream.
            if self.kept.trim_ascii().is_empty() || self.body.is_done(&self.kept) {
                self.set_mode(Mode::Document);
            } else {
                self.set_mode(Mode::Stream);
                let kept = std::mem::take(&mut self.kept);
                self.take(&kept);
            }
        }
        if self.mode == Mode::Unknown && !self.kept.is_empty() {
            // A body of a few bytes: no stream is that short.
            self.set_mode(if self.event_stream { Mode::Stream } else { Mode::Document });
            if self.mode == Mode::Stream {
                let kept = std::mem::take(&mut self.kept);
                self.take(&kept);
            }
        }
        if self.mode == Mode::Unknown && (self.event_stream || !sse) {
            self.set_mode(Mode::Stream);
        }
        if self.mode == Mode::Stream {
            match self.framer.finish() {
                Some(Rest::Event(data)) => self.body.event(b"", data),
                Some(Rest::Dropped(rest)) => self.body.unfinished(rest),
                None => {}
            }
        }
        self.conclude(end, at);
        self.body.reader.end_of_text();
        (self.body.reader.answer, self.body.reader.texts)
    }
}
