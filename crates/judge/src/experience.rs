//! What a person at the other end would notice of a stream: stalls, waiting for text, deadlines missed.

mod fluidity;
mod reader;

use serde::{Deserialize, Serialize};
use ttft_model::Record;

pub(crate) use self::fluidity::Deadlines;
use crate::metrics::{self, EventTokens};
use crate::stream::share;
use crate::{Samples, quantile};

/// A gap is a stall if it is longer than this in milliseconds …
pub const STALL_MS: f64 = 200.0;
/// … and than so many times the median gap of its own answer.
pub const STALL_FACTOR: f64 = 4.0;
/// How fast a person reads, in tokens per second: 250 words a minute (Brysbaert, *How many words do we read per
/// minute?*, Journal of Memory and Language 109, 2019: 238 in silence) at 0.75 words a token.
pub const READER_TOKENS_PER_S: f64 = 250.0 / 60.0 / 0.75;
/// An answer is called fluid from this index on, as by Etalon.
pub const FLUID: f64 = 0.9;

/// The experience of a stage's ok requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Experience {
    /// Pauses inside answers.
    pub stalls: Stalls,
    /// Against a person who reads along.
    pub reader: Reader,
    /// Against deadlines.
    pub fluidity: Fluidity,
}

/// Gaps longer than [`STALL_MS`] and than [`STALL_FACTOR`] times the median gap of their own answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stalls {
    /// A gap is a stall above this many milliseconds …
    pub floor_ms: f64,
    /// … and above this many median gaps of its answer.
    pub median_factor: f64,
    /// Answers with gaps to look at.
    pub n: u64,
    /// Stalls in all of them.
    pub stalls: u64,
    /// Answers that stalled.
    pub requests: u64,
    /// Those over all.
    pub requests_share: Option<f64>,
    /// The longest stall.
    pub longest_ms: Option<f64>,
    /// Time in stalls over all time from first to last token.
    pub time_share: Option<f64>,
}

/// A person who begins to read at the first answer token, never faster than [`READER_TOKENS_PER_S`], and waits when
/// all that came is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reader {
    /// The reader's speed.
    pub tokens_per_s: f64,
    /// Answers of which the tokens are known.
    pub n: u64,
    /// Answers of which nobody counted the tokens, or that came all at once.
    pub excluded: u64,
    /// Time waited over all time from first to last token, of all answers together.
    pub waiting_share: Option<f64>,
    /// The same share an answer.
    pub per_request: Spread,
    /// Answers that made the reader wait.
    pub requests: u64,
}

/// Etalon's fluidity index: the share of token deadlines that were met.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fluidity {
    /// Deadline of the first token, after the start.
    pub first_token_ms: f64,
    /// Deadline of each later one, after the one before.
    pub token_ms: f64,
    /// Whether the deadlines are the objectives' or the default.
    pub from_slo: bool,
    /// Answers of which the tokens are known.
    pub n: u64,
    /// The others.
    pub excluded: u64,
    /// The index an answer.
    pub index: Spread,
    /// Share of answers whose index is at least [`FLUID`].
    pub fluid_share: Option<f64>,
}

/// A few figures of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// Mean.
    pub mean: Option<f64>,
    /// 5th percentile.
    pub p5: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
}

impl Spread {
    fn of(samples: &Samples) -> Self {
        let sorted = samples.sorted();
        let at = |p| quantile::of_nth(samples.len(), p, |k| sorted.nth(k));
        Self { mean: samples.mean(), p5: at(0.05), p50: at(0.5), p95: at(0.95) }
    }
}

/// The sums behind [`Experience`].
#[derive(Debug, Clone, Default)]
pub(crate) struct ExperienceFold {
    requests: u64,
    with_gaps: u64,
    stalls: u64,
    stalled: u64,
    longest_ms: f64,
    stalled_ms: f64,
    streaming_ms: f64,
    read_ms: f64,
    waited_ms: f64,
    waited: u64,
    waiting: Samples,
    fluidity: Samples,
    fluid: u64,
}

impl ExperienceFold {
    /// Counts one ok request.
    pub(crate) fn push(&mut self, r: &Record, deadlines: &Deadlines) {
        self.requests += 1;
        self.stalls_of(r);
        let arrivals = arrivals(r);
        if let Some(reading) = reader::read(r, &arrivals) {
            self.read_ms += reading.whole_ms;
            self.waited_ms += reading.waited_ms;
            self.waited += u64::from(reading.waited_ms > 0.0);
            self.waiting.push(reading.waited_ms / reading.whole_ms);
        }
        if let Some(index) = fluidity::index(r.phases.started, &arrivals, deadlines) {
            self.fluidity.push(index);
            self.fluid += u64::from(index >= FLUID);
        }
    }

    fn stalls_of(&mut self, r: &Record) {
        let gaps: Vec<f64> = metrics::gaps(r).iter().map(|gap| gap.ms).collect();
        let mut sorted = gaps.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(median) = quantile::of_sorted(&sorted, 0.5) else { return };
        self.with_gaps += 1;
        self.streaming_ms += gaps.iter().sum::<f64>();
        let limit = STALL_MS.max(STALL_FACTOR * median);
        let stalls = sorted.iter().filter(|ms| **ms > limit);
        let n = stalls.clone().count() as u64;
        self.stalls += n;
        self.stalled += u64::from(n > 0);
        self.stalled_ms += stalls.clone().sum::<f64>();
        self.longest_ms = stalls.fold(self.longest_ms, |longest, ms| longest.max(*ms));
    }

    /// Adds the sums of another fold.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.requests, other.requests),
            (&mut self.with_gaps, other.with_gaps),
            (&mut self.stalls, other.stalls),
            (&mut self.stalled, other.stalled),
            (&mut self.waited, other.waited),
            (&mut self.fluid, other.fluid),
        ] {
            *ours += theirs;
        }
        for (ours, theirs) in [
            (&mut self.stalled_ms, other.stalled_ms),
            (&mut self.streaming_ms, other.streaming_ms),
            (&mut self.read_ms, other.read_ms),
            (&mut self.waited_ms, other.waited_ms),
        ] {
            *ours += theirs;
        }
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        self.waiting.merge(&other.waiting);
        self.fluidity.merge(&other.fluidity);
    }

    /// The figures.
    pub(crate) fn finish(&self, deadlines: &Deadlines) -> Experience {
        let of_time = |part: f64, all: f64| (all > 0.0).then(|| part / all);
        Experience {
            stalls: Stalls {
                floor_ms: STALL_MS,
                median_factor: STALL_FACTOR,
                n: self.with_gaps,
                stalls: self.stalls,
                requests: self.stalled,
                requests_share: share(self.stalled, self.with_gaps),
                longest_ms: (self.stalls > 0).then_some(self.longest_ms),
                time_share: of_time(self.stalled_ms, self.streaming_ms),
            },
            reader: Reader {
                tokens_per_s: READER_TOKENS_PER_S,
                n: self.waiting.len(),
                excluded: self.requests - self.waiting.len(),
                waiting_share: of_time(self.waited_ms, self.read_ms),
                per_request: Spread::of(&self.waiting),
                requests: self.waited,
            },
            fluidity: Fluidity {
                first_token_ms: deadlines.first_token_ms,
                token_ms: deadlines.token_ms,
                from_slo: deadlines.from_slo,
                n: self.fluidity.len(),
                excluded: self.requests - self.fluidity.len(),
                index: Spread::of(&self.fluidity),
                fluid_share: share(self.fluid, self.fluidity.len()),
            },
        }
    }
}

/// One event with output: its place, and how many tokens had come once it was there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Arrival {
    event: usize,
    at: ttft_model::Nanos,
    tokens_so_far: f64,
}

/// The events with their tokens; empty where nobody counted them.
fn arrivals(r: &Record) -> Vec<Arrival> {
    let events = &r.answer.events;
    let mean = r.answer.output_tokens().unwrap_or(0) as f64 / events.len().max(1) as f64;
    let known = metrics::event_tokens(r);
    let mut so_far = 0.0;
    let all = (0..events.len()).map(|event| {
        so_far += match known {
            EventTokens::Told => f64::from(events.tokens[event]),
            EventTokens::OneEach => 1.0,
            EventTokens::Mean => mean,
            EventTokens::Unknown => 0.0,
        };
        Arrival { event, at: events.at[event], tokens_so_far: so_far }
    });
    if known == EventTokens::Unknown { Vec::new() } else { all.collect() }
}

#[cfg(test)]
mod tests;
