//! One answer under way: what each token looks like on the wire, in the shapes of vLLM, and what a fault makes
//! of it. Bytes only; the sockets are the server's.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ttft_model::{Nanos, Stamp};

use crate::engine::{Finish, JobId, Timings, Token};
use crate::fault::Misdeeds;
use crate::http::{Reply, put_chunk};
use crate::truth::Truth;
use crate::words::{wide_word, word};

/// Which API is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completion,
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
    #[expect(clippy::too_many_arguments, reason = "each is a fact of its own, set once")]
    pub(crate) fn new(
        job: JobId,
        given_id: Option<String>,
        path: String,
        arrival: Stamp,
        queued: Nanos,
        created: i64,
        model: &str,
        terms: Terms,
        misdeeds: Misdeeds,
        choices: usize,
    ) -> Self {
        let echo_id = given_id.is_some();
        let request_id = given_id
            .unwrap_or_else(|| format!("{:016x}", crate::random::mix(terms.seed ^ u64::from(job.serial))));
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
            path,
            arrival,
            queued,
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

    fn head(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.head_sent, true) {
            return;
        }
        let reply = Reply {
            status: 200,
            content_type: "text/event-stream; charset=utf-8",
            request_id: self.echo_id.then_some(&self.request_id),
            close: !self.terms.keep_alive,
            extra: if self.gzip.is_some() { "content-encoding: gzip\r\n" } else { "" },
        };
        reply.open(out, self.terms.chunks);
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

    fn role(&mut self, out: &mut Vec<u8>, index: usize, event: &mut Vec<u8>) {
        if self.terms.api != Api::Chat {
            return;
        }
        self.choices[index].role_sent = true;
        event.clear();
        event.extend_from_slice(&self.opening);
        let _ = write!(
            event,
            r#"{{"index":{index},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}]"#
        );
        self.running_usage(event);
        event.extend_from_slice(br#","prompt_token_ids":null,"prompt_text":null}"#);
        self.put(out, event);
    }

    /// The event of all pending tokens of a choice.
    fn content(&mut self, out: &mut Vec<u8>, index: usize, finish: Option<Finish>, event: &mut Vec<u8>) {
        let choice = &mut self.choices[index];
        let first = choice.tokens - choice.pending + 1;
        let numbers = first..=choice.tokens;
        choice.pending = 0;
        let reasoning = first <= self.misdeeds.reasoning;
        event.clear();
        event.extend_from_slice(&self.opening);
        if index == 0 {
            event.extend_from_slice(br#"{"index":0,"#);
        } else {
            let _ = write!(event, r#"{{"index":{index},"#);
        }
        event.extend_from_slice(match (self.terms.api, reasoning) {
            (Api::Chat, false) => br#""delta":{"content":""#.as_slice(),
            (Api::Chat, true) => br#""delta":{"reasoning_content":""#.as_slice(),
            (Api::Completion, _) => br#""text":""#.as_slice(),
        });
        for number in numbers.clone() {
            event.extend_from_slice(self.word(index, number).as_bytes());
        }
        let padded =
            self.misdeeds.event_size.filter(|_| numbers.contains(&2) || (finish.is_some() && first == 1));
        let padding_at = event.len();
        event.push(b'"');
        if self.terms.api == Api::Chat {
            event.push(b'}');
        }
        event.extend_from_slice(br#","logprobs":null,"finish_reason":"#);
        event.extend_from_slice(match finish.filter(|_| !self.misdeeds.no_finish) {
            None => b"null".as_slice(),
            Some(Finish::Stop) => br#""stop","stop_reason":null"#.as_slice(),
            Some(Finish::Length) => br#""length","stop_reason":null"#.as_slice(),
        });
        event.extend_from_slice(match self.terms.api {
            Api::Chat => br#","token_ids":null}]"#.as_slice(),
            Api::Completion if finish.is_some() => {
                br#","prompt_token_ids":null,"token_ids":null}]"#.as_slice()
            }
            Api::Completion => {
                br#","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]"#.as_slice()
            }
        });
        self.running_usage(event);
        event.push(b'}');
        if let Some(size) = padded.filter(|size| *size > event.len()) {
            let missing = size - event.len();
            event.splice(padding_at..padding_at, std::iter::repeat_n(b'x', missing));
        }
        self.put(out, event);
    }

    fn word(&self, index: usize, number: u32) -> &'static str {
        if self.misdeeds.utf8_split {
            wide_word(number)
        } else {
            word(self.terms.seed.wrapping_add(index as u64), number)
        }
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

    /// `[DONE]` and the end of the body.
    fn last_words(&mut self, out: &mut Vec<u8>, event: &mut Vec<u8>) {
        if !self.misdeeds.no_done {
            event.clear();
            event.extend_from_slice(b"data: [DONE]");
            self.put(out, event);
        }
        if let Some(gzip) = self.gzip.take()
            && let Ok(rest) = gzip.finish()
        {
            self.frame(out, &rest);
        }
        if self.terms.chunks {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }

    /// The usage of each event so far, when it was asked for.
    fn running_usage(&self, event: &mut Vec<u8>) {
        if self.terms.continuous_usage && !self.misdeeds.no_usage {
            let sent: u32 = self.choices.iter().map(|choice| choice.tokens - choice.pending).sum();
            let prompt = self.terms.prompt_tokens;
            let _ = write!(
                event,
                r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{sent}}}"#,
                prompt + sent
            );
        }
    }

    fn usage(&self, event: &mut Vec<u8>, cached: u32) {
        let (prompt, output) = (self.terms.prompt_tokens, self.tokens);
        let _ = write!(
            event,
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{output}"#,
            prompt + output
        );
        if self.terms.cached_details {
            let _ = write!(event, r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#);
        }
        if self.misdeeds.reasoning > 0 && self.terms.api == Api::Chat {
            let reasoning: u32 = self.choices.iter().map(|c| c.tokens.min(self.misdeeds.reasoning)).sum();
            let _ = write!(event, r#","completion_tokens_details":{{"reasoning_tokens":{reasoning}}}"#);
        }
        event.push(b'}');
    }

    /// As vLLM's `--enable-per-request-metrics`: its time to first token begins when the request was scheduled.
    fn metrics(&self, event: &mut Vec<u8>, timings: &Timings) {
        let Timings { scheduled: Some(scheduled), first: Some(first), last: Some(last), .. } = *timings
        else {
            return;
        };
        let decode = (last - first).as_millis_f64();
        let gaps = f64::from(self.tokens.saturating_sub(1));
        let total = (last - scheduled).as_secs_f64();
        let over = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
        let _ = write!(
            event,
            r#","metrics":{{"time_to_first_token_ms":{},"generation_time_ms":{decode},"queue_time_ms":{},"mean_itl_ms":{},"tokens_per_second":{}}}"#,
            (first - scheduled).as_millis_f64(),
            (scheduled - self.arrival.at()).as_millis_f64().max(0.0),
            over(decode, gaps),
            over(f64::from(self.tokens), total),
        );
    }

    /// The answer to a request that wants no stream.
    fn document(&mut self, out: &mut Vec<u8>, timings: &Timings) {
        let mut body = std::mem::take(&mut self.opening);
        for (index, choice) in self.choices.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            let finish = match choice.finish {
                _ if self.misdeeds.no_finish => "null",
                Some(Finish::Length) => r#""length""#,
                _ => r#""stop""#,
            };
            let reasoning =
                if self.terms.api == Api::Chat { self.misdeeds.reasoning.min(choice.tokens) } else { 0 };
            let text = |numbers: std::ops::Range<u32>| {
                numbers.map(|number| self.word(index, number)).collect::<String>()
            };
            let answer = text(reasoning + 1..choice.tokens + 1);
            let _ = match self.terms.api {
                Api::Chat => {
                    let thought = match text(1..reasoning + 1) {
                        none if none.is_empty() => "null".to_owned(),
                        some => format!("\"{some}\""),
                    };
                    write!(
                        body,
                        r#"{{"index":{index},"message":{{"role":"assistant","content":"{answer}","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning_content":{thought}}},"logprobs":null,"finish_reason":{finish},"stop_reason":null,"token_ids":null}}"#
                    )
                }
                Api::Completion => write!(
                    body,
                    r#"{{"index":{index},"text":"{answer}","logprobs":null,"finish_reason":{finish},"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null}}"#
                ),
            };
        }
        body.extend_from_slice(br#"],"service_tier":null,"system_fingerprint":"ttft-sim""#);
        if !self.misdeeds.no_usage {
            self.usage(&mut body, timings.cached);
        }
        if self.terms.per_request_metrics && self.choices.len() == 1 {
            self.metrics(&mut body, timings);
        }
        body.push(b'}');
        Reply {
            status: 200,
            content_type: "application/json",
            request_id: self.echo_id.then_some(&self.request_id),
            close: !self.terms.keep_alive,
            extra: "",
        }
        .whole(out, &body);
    }

    /// Ends an event's text and adds it to the body.
    fn put(&mut self, out: &mut Vec<u8>, event: &mut Vec<u8>) {
        event.extend_from_slice(if self.misdeeds.crlf { b"\r\n\r\n" } else { b"\n\n" });
        self.events_held += 1;
        if let Some(gzip) = &mut self.gzip {
            // Writing to a Vec cannot fail.
            let _ = gzip.write_all(event);
            let _ = gzip.flush();
            let packed = std::mem::take(gzip.get_mut());
            self.frame(out, &packed);
        } else if let Some(at) = event.iter().position(|b| *b >= 0x80).filter(|_| self.misdeeds.utf8_split) {
            self.frame(out, &event[..=at]);
            self.split_at = Some(out.len());
            self.frame(out, &event[at + 1..]);
        } else {
            self.frame(out, event);
        }
    }

    fn frame(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        if self.terms.chunks {
            put_chunk(out, bytes);
        } else {
            out.extend_from_slice(bytes);
        }
    }
}
