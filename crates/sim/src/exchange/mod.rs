//! One answer under way: what each token looks like on the wire, in the shapes of vLLM, and what a fault makes
//! of it. Bytes only; the sockets are the server's.

mod events;
mod whole;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ttft_kernel::mono_now;
use ttft_model::{Nanos, Stamp};

use crate::engine::{Finish, JobId, Timings, Token};
use crate::fault::Misdeeds;
use crate::http::Head;
use crate::random::mix;
use crate::truth::Truth;

/// Which API is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completion,
}

/// Where an exchange comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) job: JobId,
    pub(crate) head: &'a Head,
    pub(crate) arrival: Stamp,
    /// Seconds since 1970.
    pub(crate) created: i64,
    pub(crate) model: &'a str,
}

/// What the request asked for, decided.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) api: Api,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) cached_details: bool,
    pub(crate) per_request_metrics: bool,
    pub(crate) head_with_first_token: bool,
    pub(crate) keep_alive: bool,
    /// The client understands chunks.
    pub(crate) chunks: bool,
    pub(crate) prompt_tokens: u32,
    /// Chooses the words.
    pub(crate) seed: u64,
}

/// One choice of the answer.
#[derive(Debug, Clone, Default)]
struct Choice {
    tokens: u32,
    role_sent: bool,
    /// Tokens that wait for their event to be full.
    pending: u32,
    finish: Option<Finish>,
}

/// What to do after a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing yet.
    Hold,
    /// Write what there is.
    Send,
    /// Write it and stand still for a while.
    Stall(Nanos),
    /// Write it, and the exchange is over in this way.
    End(Ending),
}

/// How an exchange is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    /// After an error inside the stream.
    Error,
    Cut,
    Reset,
    /// Everything is sent, but the end never comes.
    Never,
}

/// One answer under way.
pub(crate) struct Exchange {
    pub(crate) job: JobId,
    pub(crate) request_id: String,
    pub(crate) path: String,
    pub(crate) arrival: Stamp,
    pub(crate) queued: Nanos,
    pub(crate) terms: Terms,
    pub(crate) misdeeds: Misdeeds,
    /// Bytes that begin every event, and the document of an answer without events.
    opening: Vec<u8>,
    echo_id: bool,
    choices: Vec<Choice>,
    open_choices: usize,
    tokens: u32,
    events_held: u32,
    head_sent: bool,
    /// Where the output is to be cut between two writes.
    pub(crate) split_at: Option<usize>,
    gzip: Option<Box<GzEncoder<Vec<u8>>>>,
    /// Tokens whose bytes are in the output and not yet offered to the socket.
    unstamped: u32,
    writes: Vec<i64>,
}

impl Exchange {
    pub(crate) fn new(origin: Origin<'_>, terms: Terms, misdeeds: Misdeeds, choices: usize) -> Self {
        let Origin { job, head, arrival, created, model } = origin;
        let echo_id = head.request_id.is_some();
        let request_id = head
            .request_id
            .clone()
            .unwrap_or_else(|| format!("{:016x}", mix(terms.seed ^ u64::from(job.serial))));
        let (prefix, object) = match (terms.api, terms.stream) {
            (Api::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
            (Api::Chat, false) => ("chatcmpl", "chat.completion"),
            (Api::Completion, _) => ("cmpl", "text_completion"),
        };
        let mut opening = Vec::with_capacity(192);
        let data = if terms.stream { "data: " } else { "" };
        let _ = write!(
            opening,
            r#"{data}{{"id":"{prefix}-{request_id}","object":"{object}","created":{created},"model":"#
        );
        // A text is always valid JSON.
        let _ = serde_json::to_writer(&mut opening, model);
        opening.extend_from_slice(br#","choices":["#);
        let gzip = misdeeds.gzip.then(|| Box::new(GzEncoder::new(Vec::new(), Compression::fast())));
        Self {
            job,
            request_id,
            path: head.path.clone(),
            arrival,
            queued: mono_now(),
            terms,
            misdeeds,
            opening,
            echo_id,
            choices: vec![Choice::default(); choices],
            open_choices: choices,
            tokens: 0,
            events_held: 0,
            head_sent: false,
            split_at: None,
            gzip,
            unstamped: 0,
            writes: Vec::new(),
        }
    }

    /// What is sent on arrival, if anything.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.terms.stream || self.terms.head_with_first_token {
            return;
        }
        self.head(out);
        if self.misdeeds.role_early {
            let mut event = Vec::new();
            for choice in 0..self.choices.len() {
                self.role(out, choice, &mut event);
            }
        }
    }

    /// Whether a keep-alive comment is still wanted.
    pub(crate) fn is_silent(&self) -> bool {
        self.tokens == 0
    }

    /// A keep-alive comment.
    pub(crate) fn comment(&mut self, out: &mut Vec<u8>) {
        self.head(out);
        let mut event = b": keep-alive".to_vec();
        self.put(out, &mut event);
    }

    /// Adds what one token sends. `event` is a buffer to work in.
    pub(crate) fn token(
        &mut self,
        out: &mut Vec<u8>,
        event: &mut Vec<u8>,
        token: Token,
        timings: impl Fn() -> Timings,
    ) -> After {
        let index = token.choice as usize;
        if !self.terms.stream {
            let choice = &mut self.choices[index];
            choice.tokens += 1;
            choice.finish = token.finish;
            self.tokens += 1;
            self.unstamped += 1;
            self.open_choices -= usize::from(token.finish.is_some());
            if self.open_choices > 0 {
                return After::Hold;
            }
            self.document(out, &timings());
            return After::End(Ending::Whole);
        }
        if let Some(ending) = self.broken_off(out, event) {
            return After::End(ending);
        }
        self.head(out);
        if self.terms.api == Api::Chat && !self.choices[index].role_sent {
            self.role(out, index, event);
        }
        let choice = &mut self.choices[index];
        choice.tokens += 1;
        choice.pending += 1;
        self.tokens += 1;
        self.unstamped += 1;
        if self.misdeeds.tokens_per_event.is_none_or(|full| choice.pending >= full) || token.finish.is_some()
        {
            self.content(out, index, token.finish, event);
        }
        if let Some(ending) = self.broken_off(out, event) {
            return After::End(ending);
        }
        if token.finish.is_some() {
            self.open_choices -= 1;
            if self.open_choices == 0 {
                return self.end(out, event, &timings());
            }
        }
        if let Some((_, length)) = self.misdeeds.stall.filter(|(after, _)| *after == self.tokens) {
            return After::Stall(length);
        }
        if self.events_held == 0 || self.misdeeds.coalesce.is_some_and(|full| self.events_held < full) {
            return After::Hold;
        }
        After::Send
    }

    /// Says that the output is being offered to the socket now.
    pub(crate) fn stamp(&mut self, now: Nanos) {
        self.events_held = 0;
        for _ in 0..std::mem::take(&mut self.unstamped) {
            self.writes.push(now.0);
        }
    }

    /// Whether [`Exchange::stamp`] has anything to note.
    pub(crate) fn has_unstamped(&self) -> bool {
        self.unstamped > 0 || self.events_held > 0
    }

    /// What is to be remembered of it.
    pub(crate) fn truth(self, connection: u64, timings: Timings, end: Nanos, outcome: &'static str) -> Truth {
        Truth {
            request_id: self.request_id,
            arrival_ns: self.arrival.at().0,
            arrival_user_ns: self.arrival.user.0,
            connection,
            path: self.path,
            prompt_tokens: self.terms.prompt_tokens,
            output_tokens: self.tokens,
            queued_ns: Some(self.queued.0),
            scheduled_ns: timings.scheduled.map(|at| at.0),
            first_write_ns: self.writes.first().copied(),
            last_write_ns: self.writes.last().copied(),
            write_ns: self.writes,
            end_ns: end.0,
            outcome,
        }
    }

    /// A fault that ends the stream after so many tokens.
    fn broken_off(&mut self, out: &mut Vec<u8>, event: &mut Vec<u8>) -> Option<Ending> {
        let now = Some(self.tokens);
        if self.misdeeds.cut == now {
            return Some(Ending::Cut);
        }
        if self.misdeeds.reset == now {
            return Some(Ending::Reset);
        }
        if self.misdeeds.error_event == now {
            self.head(out);
            event.clear();
            event.extend_from_slice(
                br#"data: {"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}}"#,
            );
            self.put(out, event);
            self.last_words(out, event);
            return Some(Ending::Error);
        }
        None
    }

    /// What follows the last token.
    fn end(&mut self, out: &mut Vec<u8>, event: &mut Vec<u8>, timings: &Timings) -> After {
        if self.misdeeds.never_end {
            return After::End(Ending::Never);
        }
        if self.terms.include_usage && !self.misdeeds.no_usage {
            event.clear();
            event.extend_from_slice(&self.opening);
            event.extend_from_slice(b"]");
            self.usage(event, timings.cached);
            event.extend_from_slice(br#","system_fingerprint":"ttft-sim""#);
            if self.terms.per_request_metrics && self.choices.len() == 1 {
                self.metrics(event, timings);
            }
            event.push(b'}');
            self.put(out, event);
        }
        self.last_words(out, event);
        After::End(Ending::Whole)
    }
}
