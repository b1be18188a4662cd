//! What a recording says, in the words that every output of the tool uses.

use serde::{Serialize, Serializer};
use ttft_model::{Answer, Channel, Nanos, Outcome, ServerTimings, Stamp};

use super::Recording;
use crate::{Dialect, Texts};

/// One decoded answer. Times are milliseconds from the moment the last request byte was written; what is unknown is
/// `None`, written as null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decoded {
    /// The recording.
    pub file: String,
    /// The dialect it was read as.
    pub dialect: String,
    /// How it ended.
    pub outcome: &'static str,
    /// Class of the failure.
    pub error_class: Option<&'static str>,
    /// The server's code, written as a number where it is one.
    #[serde(serialize_with = "code")]
    pub error_code: Option<String>,
    /// The message; may hold hostile text.
    pub error_message: Option<String>,
    /// HTTP status; none if no head came.
    pub http_status: Option<u16>,
    /// The body was a stream of events.
    pub streamed: bool,
    /// Response head complete.
    pub headers_ms: Option<f64>,
    /// First body byte.
    pub ttfb_ms: Option<f64>,
    /// First event of any kind.
    pub first_event_ms: Option<f64>,
    /// First token in any channel.
    pub ttft_ms: Option<f64>,
    /// First token that is not reasoning.
    pub ttft_answer_ms: Option<f64>,
    /// Last event with output.
    pub last_token_ms: Option<f64>,
    /// The usage event.
    pub usage_ms: Option<f64>,
    /// Terminator.
    pub end_ms: Option<f64>,
    /// Last output; of a document, its end.
    pub e2e_ms: Option<f64>,
    /// `(last_token − ttft) / (output_tokens − 1)`.
    pub tpot_ms: Option<f64>,
    /// Mean gap between reads with output.
    pub event_gap_mean_ms: Option<f64>,
    /// The same gaps divided over their tokens.
    pub itl_per_token_mean_ms: Option<f64>,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens generated.
    pub output_tokens: Option<u64>,
    /// Those of them that were reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Prompt tokens from a cache.
    pub cached_tokens: Option<u64>,
    /// Events with output.
    pub content_events: usize,
    /// Tokens of each of them, where the server counted as it went.
    pub tokens_per_event: Option<Vec<u32>>,
    /// Events of any kind.
    pub events: u32,
    /// Comments and pings.
    pub comments: u32,
    /// Events that could not be understood.
    pub malformed_events: u32,
    /// Events behind the terminator.
    pub events_after_end: u32,
    /// Different instants at which output came.
    pub distinct_token_read_times: usize,
    /// Gaps between tokens can be measured at all.
    pub inter_token_measurable: bool,
    /// First token of each choice, when there was more than one.
    pub choice_ttft_ms: Vec<Option<f64>>,
    /// Why generation stopped.
    pub finish_reason: Option<String>,
    /// The server's id.
    pub response_id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// What the server says of its own times.
    pub server_timings_ms: TimingsMs,
    /// Oddities.
    pub flags: Vec<&'static str>,
    /// The visible text of the first choice.
    pub text: String,
    /// Its reasoning.
    pub reasoning_text: String,
    /// The events with output, in order; not part of the JSON form.
    #[serde(skip)]
    pub output: Vec<DecodedEvent>,
}

/// One event with output.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedEvent {
    /// When it came; nothing if the recording has no instants.
    pub at_ms: Option<f64>,
    /// What kind of output it brought.
    pub channel: Channel,
    /// Tokens that it carried, where the server counted as it went.
    pub tokens: Option<u32>,
    /// It came in the same read as the one before.
    pub coalesced: bool,
    /// What it brought; may hold hostile text.
    pub text: String,
}

/// The server's own times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TimingsMs {
    /// Waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<f64>,
    /// Loading the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Reading the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill: Option<f64>,
    /// Time to first token from arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft: Option<f64>,
    /// First to last token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode: Option<f64>,
    /// The whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

impl From<ServerTimings> for TimingsMs {
    fn from(timings: ServerTimings) -> Self {
        Self {
            queue: timings.queue_ms,
            load: timings.load_ms,
            prefill: timings.prefill_ms,
            ttft: timings.ttft_ms,
            decode: timings.decode_ms,
            total: timings.total_ms,
        }
    }
}

impl Decoded {
    pub(super) fn new(
        file: &str,
        dialect: &Dialect,
        recording: &Recording,
        answer: &Answer,
        texts: Texts,
    ) -> Self {
        let ms = |at: Nanos| recording.timed.then(|| at.as_millis_f64());
        let stamp = |stamp: Option<Stamp>| stamp.and_then(|stamp| ms(stamp.at()));
        let outcome = answer.outcome.unwrap_or(Outcome::Cancelled);
        let failure = answer.failure.as_ref();
        let last = if answer.facts.streamed { answer.last_token } else { answer.ended };
        let arrivals = Arrivals::new(answer);
        let known = recording.timed && !answer.facts.all_in_one_read;
        let events = &answer.events;
        let output = (0..events.len()).zip(texts.events).map(|(i, text)| DecodedEvent {
            at_ms: ms(events.at[i]),
            channel: events.channel(i),
            tokens: Some(events.tokens[i]).filter(|tokens| *tokens > 0),
            coalesced: events.is_coalesced(i),
            text,
        });
        let output = output.collect();

        Self {
            file: file.to_owned(),
            dialect: dialect.name().to_owned(),
            outcome: outcome.name(),
            error_class: failure.map(|failure| failure.class.name()),
            error_code: failure.and_then(|failure| failure.code.clone()),
            error_message: failure.map(|failure| failure.message.clone()),
            http_status: recording.status,
            streamed: answer.facts.streamed,
            headers_ms: recording.headers_at.and_then(ms),
            ttfb_ms: stamp(answer.first_byte),
            first_event_ms: stamp(answer.first_event),
            ttft_ms: stamp(answer.first_token),
            ttft_answer_ms: stamp(answer.first_answer),
            last_token_ms: stamp(answer.last_token),
            usage_ms: stamp(answer.usage_at),
            end_ms: stamp(answer.ended),
            e2e_ms: stamp(last),
            tpot_ms: if known { tpot_ms(answer) } else { None },
            event_gap_mean_ms: if known { arrivals.gap_mean_ms() } else { None },
            itl_per_token_mean_ms: if known { arrivals.per_token_mean_ms() } else { None },
            input_tokens: answer.usage.input,
            output_tokens: answer.usage.output,
            reasoning_tokens: answer.usage.reasoning,
            cached_tokens: answer.usage.cached,
            content_events: answer.events.len(),
            tokens_per_event: answer
                .events
                .tokens
                .iter()
                .any(|tokens| *tokens > 0)
                .then(|| answer.events.tokens.clone()),
            events: answer.facts.events,
            comments: answer.facts.comments,
            malformed_events: answer.facts.malformed_events,
            events_after_end: answer.facts.after_end,
            distinct_token_read_times: arrivals.count,
            inter_token_measurable: known && arrivals.count > 1,
            choice_ttft_ms: answer.choice_first_token.iter().map(|at| at.and_then(ms)).collect(),
            finish_reason: answer.finish_reason.clone(),
            response_id: answer.response_id.clone(),
            model: answer.model.clone(),
            server_timings_ms: answer.timings.into(),
            flags: flags(dialect, recording, answer),
            text: texts.text,
            reasoning_text: texts.reasoning,
            output,
        }
    }
}

/// `(last_token − first_token) / (output_tokens − 1)`; needs two tokens.
fn tpot_ms(answer: &Answer) -> Option<f64> {
    let span = answer.last_token?.at() - answer.first_token?.at();
    let tokens = answer.usage.output.filter(|tokens| *tokens >= 2)?;
    Some(span.as_millis_f64() / (tokens - 1) as f64)
}

/// The reads that brought output: all events of one read are one arrival.
struct Arrivals {
    count: usize,
    /// First to last.
    span: Nanos,
    /// Tokens of all arrivals but the first, if each of them is known.
    tokens: Option<u64>,
}

impl Arrivals {
    fn new(answer: &Answer) -> Self {
        let events = &answer.events;
        let (mut count, mut tokens, mut known) = (0, 0, true);
        for i in 0..events.len() {
            count += usize::from(!events.is_coalesced(i));
            if count > 1 {
                tokens += u64::from(events.tokens[i]);
                known &= events.tokens[i] > 0;
            }
        }
        let span = match (events.at.first(), events.at.last()) {
            (Some(first), Some(last)) => *last - *first,
            _ => Nanos::ZERO,
        };
        Self { count, span, tokens: (known && tokens > 0).then_some(tokens) }
    }

    fn gap_mean_ms(&self) -> Option<f64> {
        (self.count > 1).then(|| self.span.as_millis_f64() / (self.count - 1) as f64)
    }

    fn per_token_mean_ms(&self) -> Option<f64> {
        self.tokens.map(|tokens| self.span.as_millis_f64() / tokens as f64)
    }
}

fn flags(dialect: &Dialect, recording: &Recording, answer: &Answer) -> Vec<&'static str> {
    let facts = &answer.facts;
    let ok = answer.outcome == Some(Outcome::Ok);
    let ended = facts.streamed && ok;
    let rules = &dialect.rules;
    let ends_itself = rules.finish_ends || rules.body_ends;
    [
        (!recording.timed, "untimed"),
        (facts.all_in_one_read && answer.events.len() > 1, "delivery_coalesced"),
        (facts.first_token_coalesced, "first_token_coalesced"),
        (facts.coalesced_reads > 0, "reads_coalesced"),
        (ok && !facts.streamed, "not_streamed"),
        (ended && !facts.finish && !rules.body_ends, "terminator_without_finish"),
        (ended && !facts.terminator && !ends_itself, "finish_without_terminator"),
        (ended && answer.events.is_empty(), "no_visible_output"),
        (facts.unfinished_event, "unfinished_event"),
        (facts.after_end > 0, "events_after_end"),
        (facts.compressed, "compressed"),
        (answer.choice_first_token.len() > 1, "several_choices"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
    .collect()
}

/// A code as the number it is, or as the word it is.
#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn code<S: Serializer>(code: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    match code.as_deref().map(|code| (code, code.parse::<i64>())) {
        Some((_, Ok(number))) => serializer.serialize_i64(number),
        Some((word, Err(_))) => serializer.serialize_str(word),
        None => serializer.serialize_none(),
    }
}
