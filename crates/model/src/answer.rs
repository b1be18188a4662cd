//! What one answer of a server said and when: the decoder's whole result.

use serde::{Deserialize, Serialize};

use crate::{Failure, Nanos, Outcome, Stamp};

/// What kind of output an event carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Channel {
    /// Visible text of the answer.
    Text = 0,
    /// Reasoning or thinking.
    Reasoning = 1,
    /// A tool call's name or arguments.
    Tool = 2,
    /// A refusal.
    Refusal = 3,
    /// Audio, or its transcript.
    Audio = 4,
}

impl Channel {
    /// The channel stored as that number.
    pub fn from_u8(n: u8) -> Option<Self> {
        [Self::Text, Self::Reasoning, Self::Tool, Self::Refusal, Self::Audio]
            .into_iter()
            .find(|c| *c as u8 == n)
    }
}

/// Where a count of output tokens comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The server's usage.
    Usage,
    /// A tokenizer on our side.
    Tokenizer,
    /// Nobody counted.
    #[default]
    None,
}

impl TokenSource {
    /// The name used in every file and report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Tokenizer => "tokenizer",
            Self::None => "none",
        }
    }
}

/// Token counts as the server gave them. Unknown is `None`, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: Option<u64>,
    /// Prompt tokens that came from a cache.
    pub cached: Option<u64>,
    /// Tokens generated, reasoning included.
    pub output: Option<u64>,
    /// Generated tokens that were reasoning.
    pub reasoning: Option<u64>,
}

/// What the server itself says of this request's times, in milliseconds; the meaning is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerTimings {
    /// Waiting before it was scheduled.
    pub queue_ms: Option<f64>,
    /// Loading the model.
    pub load_ms: Option<f64>,
    /// Reading the prompt.
    pub prefill_ms: Option<f64>,
    /// The server's own time to first token.
    pub ttft_ms: Option<f64>,
    /// First to last token.
    pub decode_ms: Option<f64>,
    /// The whole request.
    pub total_ms: Option<f64>,
}

/// The events with output, one entry each, as parallel arrays (structure of arrays: 13 bytes an event).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventLog {
    /// When the read that completed the event arrived (best clock).
    pub at: Vec<Nanos>,
    /// Tokens it carried, from running usage; 0 where the server did not say.
    pub tokens: Vec<u32>,
    /// A [`Channel`] in the low bits, and [`EventLog::COALESCED`].
    pub class: Vec<u8>,
}

impl EventLog {
    /// Bit of `class`: the event came in the same read as the output event before it, so the gap between the
    /// two is not measurable.
    pub const COALESCED: u8 = 0x80;

    /// Number of events.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether no event had output.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Adds one event.
    pub fn push(&mut self, at: Nanos, tokens: u32, channel: Channel, coalesced: bool) {
        self.at.push(at);
        self.tokens.push(tokens);
        self.class.push(channel as u8 | if coalesced { Self::COALESCED } else { 0 });
    }

    /// Whether event `i` shares its read with the one before.
    pub fn is_coalesced(&self, i: usize) -> bool {
        self.class[i] & Self::COALESCED != 0
    }

    /// The channel of event `i`.
    pub fn channel(&self, i: usize) -> Channel {
        Channel::from_u8(self.class[i] & !Self::COALESCED).unwrap_or(Channel::Text)
    }
}

/// Oddities of one stream, each of which a report may want to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamFacts {
    /// The body was a stream of events, not one document.
    pub streamed: bool,
    /// Later output shared the read that brought the first token: `first_token` is an upper bound.
    pub first_token_coalesced: bool,
    /// Every output event came in one read.
    pub all_in_one_read: bool,
    /// Ended by the dialect's terminator (`[DONE]`, `message_stop`, …).
    pub terminator: bool,
    /// A finish reason came.
    pub finish: bool,
    /// The body arrived compressed although `identity` was asked for.
    pub compressed: bool,
    /// The body ended inside an event; its rest was dropped, unless it was the terminator.
    pub unfinished_event: bool,
    /// Events that were not valid for the dialect, and were skipped.
    pub malformed_events: u32,
    /// Comments and pings.
    pub comments: u32,
    /// Events after the terminator.
    pub after_end: u32,
    /// Reads that brought body bytes.
    pub reads: u32,
    /// Reads that completed more than one output event.
    pub coalesced_reads: u32,
    /// All events of any kind, comments excluded.
    pub events: u32,
    /// Length of the first event in bytes.
    pub first_event_bytes: u32,
}

/// One answer, decoded: instants of its body, output events, counts and outcome.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// First body byte.
    pub first_byte: Option<Stamp>,
    /// First complete event of any kind, comments excluded.
    pub first_event: Option<Stamp>,
    /// The read that completed the first event with generated output in any channel.
    pub first_token: Option<Stamp>,
    /// The same, reasoning excluded.
    pub first_answer: Option<Stamp>,
    /// The event that completed the first sentence of the visible text of a stream; `None` if none was completed.
    pub first_sentence: Option<Nanos>,
    /// Last event with generated output.
    pub last_token: Option<Stamp>,
    /// The usage event.
    pub usage_at: Option<Stamp>,
    /// Terminator, or the finish in dialects without one; `None` if neither came.
    pub ended: Option<Stamp>,
    /// First token of each choice when n > 1 was asked; index = choice.
    pub choice_first_token: Vec<Option<Nanos>>,
    /// The output events.
    pub events: EventLog,
    /// Token counts.
    pub usage: Usage,
    /// What the server said of its own times.
    pub timings: ServerTimings,
    /// Why generation stopped, in the server's word.
    pub finish_reason: Option<String>,
    /// The server's id of the answer.
    pub response_id: Option<String>,
    /// The model that the server says answered.
    pub model: Option<String>,
    /// Oddities.
    pub facts: StreamFacts,
    /// How it ended; `None` while it is under way.
    pub outcome: Option<Outcome>,
    /// What went wrong, if anything did.
    pub failure: Option<Failure>,
}

impl Answer {
    /// The server's count of generated tokens.
    pub fn output_tokens(&self) -> Option<u64> {
        self.usage.output
    }
}
