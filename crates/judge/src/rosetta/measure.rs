//! One record by one peer's rules.

use ttft_model::{Nanos, Outcome, Record, Stamp};

use super::definition::{Count, End, FigureRule, First, OneToken, Peer, Rule, Start};
use crate::metrics::{self, EventTokens};

/// A record as a peer sees it: the instants and counts that its figures are made of.
pub(super) struct View<'a> {
    record: &'a Record,
    peer: &'a Peer,
    /// Indices of the events with output that counts.
    counted: Vec<usize>,
    start: Option<Nanos>,
    first: Option<Nanos>,
    end: Option<Nanos>,
    tokens: Option<Tokens>,
}

/// A number of tokens.
#[derive(Clone, Copy)]
struct Tokens {
    n: f64,
    /// Nobody told how many the output that counts had.
    estimated: bool,
}

impl<'a> View<'a> {
    pub(super) fn new(record: &'a Record, peer: &'a Peer) -> Self {
        let (phases, answer) = (&record.phases, &record.answer);
        let counts = |i: &usize| peer.counts.contains(&answer.events.channel(*i));
        let counted: Vec<usize> = (0..answer.events.len()).filter(counts).collect();
        let at = |stamp: Option<Stamp>| stamp.map(Stamp::at);
        let start = match peer.start {
            Start::Scheduled => Some(phases.scheduled),
            Start::Started => Some(phases.started),
            Start::SentFirst => phases.sent_first,
        };
        let first = match peer.first {
            First::Headers => at(phases.headers),
            First::Event => at(answer.first_event),
            First::Output => counted.first().map(|i| answer.events.at[*i]),
        };
        let last = counted.last().map(|i| answer.events.at[*i]);
        let end = last.map(|last| match peer.end {
            End::LastCounted => last,
            End::Usage => at(answer.usage_at).unwrap_or(last).max(last),
            End::Ended => at(answer.ended).or_else(|| finished(record)).unwrap_or(last).max(last),
            End::Finished => finished(record).unwrap_or(last).max(last),
        });
        let mut view = Self { record, peer, counted, start, first, end, tokens: None };
        view.tokens = view.count();
        view
    }

    /// Whether the peer throws this answer away.
    pub(super) fn dropped(&self) -> bool {
        let output = self.first.zip(self.end).map(|(first, end)| (end - first).as_millis_f64());
        self.peer.drop_output_under_ms > 0.0 && output.is_some_and(|ms| ms < self.peer.drop_output_under_ms)
    }

    /// Whether its number of tokens is a guess of ours.
    pub(super) fn is_estimated(&self) -> bool {
        self.tokens.is_some_and(|tokens| tokens.estimated)
    }

    pub(super) fn ttft(&self) -> Option<f64> {
        let enough = match self.peer.ttft_needs_tokens {
            0 => true,
            needed => self.tokens.is_some_and(|tokens| tokens.n >= needed as f64),
        };
        let ms = (self.first? - self.start?).as_millis_f64();
        enough.then_some(ms)
    }

    /// The values that this record gives to a figure, each with its weight.
    pub(super) fn figure(&self, figure: &FigureRule) -> Vec<(f64, u64)> {
        let weight = |n: f64| if figure.weighted { (n.round() as u64).max(1) } else { 1 };
        let mean = match figure.rule {
            Rule::AfterFirst => self.after_first(),
            Rule::Whole => self
                .tokens
                .filter(|tokens| tokens.n > 0.0)
                .and_then(|tokens| Some(((self.end? - self.start?).as_millis_f64() / tokens.n, tokens.n))),
            Rule::LaterTokens => self.later_tokens(),
            Rule::Gaps => return self.gaps().map(|(ms, _)| (ms, 1)).collect(),
            Rule::TokenGaps => return self.token_gaps(),
        };
        mean.map(|(ms, n)| (ms, weight(n))).into_iter().collect()
    }

    fn after_first(&self) -> Option<(f64, f64)> {
        let n = self.tokens?.n;
        if n <= 1.0 {
            return (self.peer.one_token == OneToken::Zero).then_some((0.0, 1.0));
        }
        Some(((self.end? - self.first?).as_millis_f64() / (n - 1.0), n - 1.0))
    }

    fn later_tokens(&self) -> Option<(f64, f64)> {
        let first = self.weights().first().copied().unwrap_or(1.0);
        let later = self.tokens?.n - first;
        (later > 0.0).then_some(())?;
        Some(((self.end? - self.first?).as_millis_f64() / later, later))
    }

    /// Gaps between events that count, with the place of the later one among them.
    fn gaps(&self) -> impl Iterator<Item = (f64, usize)> + '_ {
        let at = &self.record.answer.events.at;
        self.counted
            .windows(2)
            .enumerate()
            .map(|(place, pair)| ((at[pair[1]] - at[pair[0]]).as_millis_f64(), place + 1))
    }

    fn token_gaps(&self) -> Vec<(f64, u64)> {
        let weights = self.weights();
        let more = |place: usize| weights.get(place).map_or(0, |n| (n.round() as u64).saturating_sub(1));
        let mut all = Vec::with_capacity(2 * self.counted.len());
        all.push((0.0, more(0)));
        for (ms, place) in self.gaps() {
            all.extend([(ms, 1), (0.0, more(place))]);
        }
        all
    }

    /// Tokens of each event that counts; empty where nobody told anything.
    fn weights(&self) -> Vec<f64> {
        let events = &self.record.answer.events;
        match metrics::event_tokens(self.record) {
            EventTokens::Told => self.counted.iter().map(|i| f64::from(events.tokens[*i])).collect(),
            EventTokens::OneEach => vec![1.0; self.counted.len()],
            EventTokens::Mean => {
                let all = self.record.answer.output_tokens().unwrap_or(0) as f64;
                vec![all / events.len().max(1) as f64; self.counted.len()]
            }
            EventTokens::Unknown => Vec::new(),
        }
    }

    fn count(&self) -> Option<Tokens> {
        let exact = |n: u64| Tokens { n: n as f64, estimated: false };
        let usage = self.record.answer.output_tokens();
        match self.peer.tokens {
            Count::Usage => usage.map(exact),
            Count::UsageOrEvents => Some(exact(usage.unwrap_or(self.counted.len() as u64))),
            Count::Counted => self.counted_tokens(),
        }
    }

    /// Tokens of the output that counts: all of them if all of it does, else usage without its reasoning, else the
    /// events' own.
    fn counted_tokens(&self) -> Option<Tokens> {
        let (all, usage) = (self.record.answer.events.len(), self.record.answer.usage);
        if self.counted.is_empty() {
            return None;
        }
        if self.counted.len() == all {
            return usage.output.map(|n| Tokens { n: n as f64, estimated: false });
        }
        let only_reasoning_is_out = (0..all)
            .filter(|i| self.counted.binary_search(i).is_err())
            .all(|i| self.record.answer.events.channel(i) == ttft_model::Channel::Reasoning);
        if let (true, Some(output), Some(reasoning)) = (only_reasoning_is_out, usage.output, usage.reasoning)
            && reasoning > 0
        {
            return Some(Tokens { n: output.saturating_sub(reasoning) as f64, estimated: false });
        }
        let weights = self.weights();
        let known = metrics::event_tokens(self.record);
        (!weights.is_empty())
            .then(|| Tokens { n: weights.iter().sum(), estimated: known == EventTokens::Mean })
    }
}

/// When a body ended cleanly.
fn finished(record: &Record) -> Option<Nanos> {
    (record.outcome() == Outcome::Ok).then_some(record.finished)
}
