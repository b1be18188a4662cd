//! Rules: which value of an event means what. Written in TOML, compiled once, applied to every event.

mod compile;
mod file;

use serde::Deserialize;
use ttft_model::Channel;

use crate::framing::Framing;
use crate::json::{Hit, Kind, Trie, number};

pub(crate) use compile::compile;
pub(crate) use file::{DialectFile, PartsFile, RequestFile, ToolChoiceFile, line_of};

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Meaning {
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "reasoning")]
    Reasoning,
    #[serde(rename = "tool")]
    Tool,
    #[serde(rename = "refusal")]
    Refusal,
    #[serde(rename = "audio")]
    Audio,
    #[serde(rename = "usage.input")]
    UsageInput,
    #[serde(rename = "usage.cached")]
    UsageCached,
    #[serde(rename = "usage.output")]
    UsageOutput,
    #[serde(rename = "usage.reasoning")]
    UsageReasoning,
    #[serde(rename = "usage.total")]
    UsageTotal,
    #[serde(rename = "finish")]
    Finish,
    #[serde(rename = "end")]
    End,
    #[serde(rename = "error")]
    Error,
    #[serde(rename = "error.message")]
    ErrorMessage,
    #[serde(rename = "error.code")]
    ErrorCode,
    #[serde(rename = "error.type")]
    ErrorType,
    #[serde(rename = "id")]
    Id,
    #[serde(rename = "model")]
    Model,
    #[serde(rename = "choice")]
    Choice,
    #[serde(rename = "timing.queue")]
    TimingQueue,
    #[serde(rename = "timing.load")]
    TimingLoad,
    #[serde(rename = "timing.prefill")]
    TimingPrefill,
    #[serde(rename = "timing.ttft")]
    TimingTtft,
    #[serde(rename = "timing.decode")]
    TimingDecode,
    #[serde(rename = "timing.total")]
    TimingTotal,
}

impl Meaning {
    /// Whether it is a count of tokens.
    pub(crate) const fn is_usage(self) -> bool {
        matches!(
            self,
            Self::UsageInput
                | Self::UsageCached
                | Self::UsageOutput
                | Self::UsageReasoning
                | Self::UsageTotal
        )
    }

    /// The channel, for what is generated output.
    pub(crate) const fn channel(self) -> Option<Channel> {
        match self {
            Self::Text => Some(Channel::Text),
            Self::Reasoning => Some(Channel::Reasoning),
            Self::Tool => Some(Channel::Tool),
            Self::Refusal => Some(Channel::Refusal),
            Self::Audio => Some(Channel::Audio),
            _ => None,
        }
    }
}

/// A plain value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Text(Vec<u8>),
    Number(f64),
    Bool(bool),
}

impl Scalar {
    fn is(&self, hit: &Hit, json: &[u8]) -> bool {
        match self {
            Self::Text(text) => hit.kind == Kind::String && hit.raw(json) == text.as_slice(),
            Self::Number(value) => hit.kind == Kind::Number && number(hit.raw(json)) == Some(*value),
            Self::Bool(value) => hit.kind == if *value { Kind::True } else { Kind::False },
        }
    }
}

/// Another value of the same event that must, or must not, be there.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    slot: u16,
    /// So many `*` of both pointers stand for the same elements.
    shared: usize,
    values: Vec<Scalar>,
}

impl Condition {
    fn holds(&self, hit: &Hit, hits: &[Hit], json: &[u8]) -> bool {
        hits.iter().any(|other| {
            other.slot == self.slot
                && other.at[..self.shared] == hit.at[..self.shared]
                && self.values.iter().any(|value| value.is(other, json))
        })
    }
}

/// One rule at one pointer.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) meaning: Meaning,
    /// Rules of one group are alternatives: only one pointer of it counts in an event.
    pub(crate) group: u16,
    /// Position of the pointer among the alternatives.
    pub(crate) rank: u8,
    /// The group has more than one pointer.
    pub(crate) alternatives: bool,
    /// It is about output or finish: what every event of the dialect has in some form.
    pub(crate) is_shape: bool,
    /// So many `*` are shared with the pointer of the choice's index.
    pub(crate) choice_stars: u8,
    /// Each event repeats all that came before.
    pub(crate) cumulative: bool,
    /// Counts only as long as no other rule of that meaning gave a value.
    pub(crate) fallback: bool,
    /// A count that the output's does not contain.
    pub(crate) beside: bool,
    /// Milliseconds in one unit of the value.
    pub(crate) unit_ms: f64,
    only: Vec<Scalar>,
    not: Vec<Scalar>,
    when: Vec<Condition>,
    unless: Vec<Condition>,
}

impl Rule {
    /// Whether the rule speaks of that value.
    pub(crate) fn applies(&self, hit: &Hit, hits: &[Hit], json: &[u8]) -> bool {
        (self.only.is_empty() || self.only.iter().any(|value| value.is(hit, json)))
            && !self.not.iter().any(|value| value.is(hit, json))
            && self.when.iter().all(|condition| condition.holds(hit, hits, json))
            && !self.unless.iter().any(|condition| condition.holds(hit, hits, json))
    }
}

/// The rules for one kind of text, ready to apply.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    pub(crate) trie: Trie,
    by_slot: Vec<Vec<Rule>>,
    choice: Option<u16>,
    /// An event is of one choice, whose number stands in no array.
    one_choice: bool,
}

impl Matcher {
    /// Whether some rule is of that meaning.
    pub(crate) fn has(&self, meaning: Meaning) -> bool {
        self.by_slot.iter().flatten().any(|rule| rule.meaning == meaning)
    }

    /// Whether what the rule speaks of is of some choice.
    pub(crate) fn has_choice(&self, rule: &Rule) -> bool {
        rule.choice_stars > 0 || self.one_choice
    }

    /// The rules at the pointer that a value was found at.
    pub(crate) fn rules(&self, slot: u16) -> &[Rule] {
        self.by_slot.get(usize::from(slot)).map_or(&[], Vec::as_slice)
    }

    /// Which choice a value belongs to: the index that the server gives it, else its place in the array.
    pub(crate) fn choice(&self, rule: &Rule, hit: &Hit, hits: &[Hit], json: &[u8]) -> usize {
        let stars = usize::from(rule.choice_stars);
        if !self.has_choice(rule) {
            return 0;
        }
        let own = |other: &&Hit| Some(other.slot) == self.choice && other.at[..stars] == hit.at[..stars];
        let told = hits.iter().find(own).and_then(|index| crate::json::whole(index.raw(json)));
        told.map_or_else(
            || stars.checked_sub(1).map_or(0, |star| usize::from(hit.at[star])),
            |index| index as usize,
        )
    }
}

/// Everything that reading an answer needs.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) framing: Framing,
    /// Where an event holds the real one in base64.
    pub(crate) base64: Option<Trie>,
    /// Bytes, blanks left out, that tell a recording of this dialect.
    pub(crate) signs: Vec<Vec<u8>>,
    /// Event data that is the terminator itself.
    pub(crate) end_data: Vec<Vec<u8>>,
    /// Names of events that end the stream.
    pub(crate) end_events: Vec<Vec<u8>>,
    /// There is no terminator: the finish is the end.
    pub(crate) finish_ends: bool,
    /// There is no terminator: the end of the body is the end.
    pub(crate) body_ends: bool,
    /// Event data that begins so is a comment.
    pub(crate) comment_data: Vec<Vec<u8>>,
    /// Names of events that only keep the connection open.
    pub(crate) ping_events: Vec<Vec<u8>>,
    /// Names of events that are errors.
    pub(crate) error_events: Vec<Vec<u8>>,
    /// Framing fields that are errors.
    pub(crate) error_fields: Vec<Vec<u8>>,
    pub(crate) stream: Matcher,
    pub(crate) document: Matcher,
}

/// Whether one of the names is that one.
pub(crate) fn names(list: &[Vec<u8>], name: &[u8]) -> bool {
    list.iter().any(|known| known == name)
}
