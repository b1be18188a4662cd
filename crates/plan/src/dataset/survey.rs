//! What a file holds: counts, lengths, arrivals, sessions, shared prefixes, and what is wrong with it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use serde::Serialize;
use ttft_model::Nanos;

use super::error::Problems;
use super::trace::{BLOCK, BlockSize, significant};
use super::unit::UnitEvidence;
use super::{Arrivals, DatasetError, Format, Instant, Problem, Row, Rows, TimeUnit};
use crate::spread::Spread;

/// Requests up to which an answer lists each of them.
const LISTED: usize = 100_000;

/// What a file holds. Unknown is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    /// The file.
    pub file: String,
    /// `trace` when it has arrival times, else `prompts`.
    pub kind: &'static str,
    /// Its format, by the name of who publishes it.
    pub format: &'static str,
    /// `csv`, `jsonl`, `json` or `text`.
    pub container: &'static str,
    /// Records that are requests, prompts or conversations.
    pub requests: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Requests that failed when they were recorded (`BurstGPT`: no response tokens); null where a format cannot say.
    pub failed: Option<u64>,
    /// Unit of the timestamps; null when there are none or when it is unclear.
    pub timestamp_unit: Option<TimeUnit>,
    /// How the requests arrived; null without times or without a unit.
    pub arrivals: Option<Arrivals>,
    /// Lengths in tokens, words and characters, as far as the file tells.
    pub lengths: Lengths,
    /// Conversations.
    pub turns: Turns,
    /// What prompts share, by the ids of their blocks; null without ids.
    pub prefixes: Option<Prefixes>,
    /// Arrival of each request after the first one, in order of arrival; null without times or unit, or where a
    /// request has none.
    pub offsets_ms: Option<Vec<Option<f64>>>,
    /// Prompt tokens of each, in the same order; null where the file is silent.
    pub input_tokens: Option<Vec<Option<u32>>>,
    /// Answer tokens of each, in the same order; null where the file is silent.
    pub output_tokens: Option<Vec<Option<u32>>>,
    /// What a user should know before using it.
    pub problems: Vec<Problem>,
}

/// Lengths of prompts and answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lengths {
    /// Prompt tokens; null where the file does not tell.
    pub input_tokens: Option<Spread>,
    /// Answer tokens.
    pub output_tokens: Option<Spread>,
    /// Words of the prompts that the file has.
    pub prompt_words: Option<Spread>,
    /// Their characters.
    pub prompt_chars: Option<Spread>,
}

/// Conversations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turns {
    /// Different sessions; null when the file names none.
    pub sessions: Option<u64>,
    /// Requests of a session.
    pub requests_per_session: Option<Spread>,
    /// Turns or messages in a record.
    pub turns: Option<Spread>,
}

/// What prompts share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prefixes {
    /// Tokens of a block; null when no size fits the lengths.
    pub block_size: Option<u32>,
    /// Blocks of all prompts.
    pub blocks: u64,
    /// Different ones.
    pub distinct_blocks: u64,
    /// Share of blocks that an endless prefix cache would hold already.
    pub hit_share: f64,
    /// Requests that share their first block with an earlier one.
    pub requests_with_a_hit: u64,
}

/// Reads a whole file and says what it holds. Records that cannot be read are counted among the problems.
pub fn survey(path: &Path, asked: Option<Format>) -> Result<Survey, DatasetError> {
    let mut rows = Rows::open(path, asked)?;
    let (format, container) = (rows.format(), rows.container());
    let mut count = Count::new(format);
    for row in &mut rows {
        match row {
            Ok(row) => count.row(&row),
            Err(error) => count.error(error)?,
        }
    }
    if count.requests() == 0 && count.unreadable == 0 {
        return Err(DatasetError::Empty(path.to_owned()));
    }
    Ok(count.finish(path, container, asked))
}

/// The sums of a file under way: some twenty bytes a request.
struct Count {
    format: Format,
    problems: Problems,
    unreadable: u64,
    failed: u64,
    times: Vec<Option<Instant>>,
    input: Vec<Option<u32>>,
    output: Vec<Option<u32>>,
    words: Vec<f64>,
    chars: Vec<f64>,
    turns: Vec<f64>,
    evidence: UnitEvidence,
    last: Option<Instant>,
    is_sorted: bool,
    sessions: HashMap<u64, u32>,
    ids: HashSet<u64>,
    blocks: Blocks,
    hasher: RandomState,
}

impl Count {
    fn new(format: Format) -> Self {
        Self {
            format,
            problems: Problems::default(),
            unreadable: 0,
            failed: 0,
            times: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            words: Vec::new(),
            chars: Vec::new(),
            turns: Vec::new(),
            evidence: UnitEvidence::default(),
            last: None,
            is_sorted: true,
            sessions: HashMap::new(),
            ids: HashSet::new(),
            blocks: Blocks::default(),
            hasher: RandomState::new(),
        }
    }

    fn requests(&self) -> usize {
        self.times.len()
    }

    fn error(&mut self, error: DatasetError) -> Result<(), DatasetError> {
        let DatasetError::Record { line, why, .. } = error else {
            return Err(error);
        };
        self.unreadable += 1;
        self.problems.add("unreadable", line, || why);
        Ok(())
    }

    fn row(&mut self, row: &Row) {
        let line = row.line;
        self.lengths(row);
        self.conversation(row);
        if let Some(time) = row.time {
            self.evidence.push(time);
            if self.last.is_some_and(|last| time.as_seconds() < last.as_seconds()) {
                self.is_sorted = false;
                self.problems.add("unsorted_times", line, || {
                    "a request is earlier than the one before it; they are put in order of arrival".to_owned()
                });
            }
            self.last = Some(time);
        }
        if let Some(id) = &row.id
            && !self.ids.insert(self.hasher.hash_one(id))
        {
            self.problems.add("duplicate_ids", line, || "an id was there before".to_owned());
        }
        if let Some(session) = &row.session {
            *self.sessions.entry(self.hasher.hash_one(session)).or_default() += 1;
        }
        self.blocks.push(row, &mut self.problems);
        self.times.push(row.time);
        self.input.push(row.input_tokens);
        self.output.push(row.output_tokens);
    }

    fn lengths(&mut self, row: &Row) {
        if row.input_tokens == Some(0) {
            self.problems.add("empty_prompt", row.line, || {
                "a prompt of no tokens; it is sent as one of one token".to_owned()
            });
        }
        if row.output_tokens == Some(0) {
            self.failed += 1;
            let is_failure = self.format == Format::BurstGpt;
            let (kind, text) = if is_failure {
                ("failed_requests", "a request without response tokens failed when it was recorded")
            } else {
                ("no_output", "an answer of no tokens")
            };
            self.problems.add(kind, row.line, || format!("{text}; a replay asks for one token"));
        }
        if let Some(item) = &row.item {
            let (words, chars) = item.words_and_chars();
            self.words.push(words as f64);
            self.chars.push(chars as f64);
            if item.is_blank() {
                self.problems.add("blank_prompt", row.line, || "a prompt without a word".to_owned());
            }
        }
    }

    fn conversation(&mut self, row: &Row) {
        let Some(turns) = row.turns else { return };
        self.turns.push(f64::from(turns));
        let line = row.line;
        if turns == 0 {
            self.problems
                .add("empty_conversation", line, || "a conversation without a turn: left out".to_owned());
        } else if row.item.is_none() {
            self.problems.add("no_question", line, || {
                "a conversation in which no person asks anything: left out".to_owned()
            });
        } else if row.begins_with_answer {
            self.problems.add("begins_with_answer", line, || {
                "a conversation that begins with an answer; its first question is used".to_owned()
            });
        }
    }

    fn finish(mut self, path: &Path, container: &'static str, asked: Option<Format>) -> Survey {
        let unit = self.unit(asked);
        let order = self.order(unit);
        let arrivals = unit.map(|unit| self.arrivals(unit, &order));
        let is_listed = self.requests() <= LISTED;
        if !is_listed {
            let text =
                format!("more than {LISTED} requests: offsets_ms, input_tokens and output_tokens list none");
            self.problems.of_all("not_listed", self.requests() as u64, text);
        }
        let known = |values: &[Option<u32>]| {
            let known: Vec<f64> = values.iter().flatten().map(|value| f64::from(*value)).collect();
            Spread::of(known)
        };
        let list = |values: &[Option<u32>]| {
            let is_told = is_listed && values.iter().any(Option::is_some);
            is_told.then(|| order.iter().map(|i| values[*i]).collect())
        };
        let first = self.first(unit);
        let offsets = unit.filter(|_| is_listed).map(|unit| {
            let offset = |i: &usize| Some((self.times[*i]?.nanos(unit) - first?).as_millis_f64());
            order.iter().map(offset).collect()
        });
        let sessions: Vec<f64> = self.sessions.values().map(|count| f64::from(*count)).collect();
        let has_times = self.times.iter().any(Option::is_some);
        Survey {
            file: path.display().to_string(),
            kind: if has_times { "trace" } else { "prompts" },
            format: self.format.title(),
            container,
            requests: self.requests() as u64,
            unreadable: self.unreadable,
            failed: (self.format == Format::BurstGpt).then_some(self.failed),
            timestamp_unit: unit,
            arrivals,
            lengths: Lengths {
                input_tokens: known(&self.input),
                output_tokens: known(&self.output),
                prompt_words: Spread::of(std::mem::take(&mut self.words)),
                prompt_chars: Spread::of(std::mem::take(&mut self.chars)),
            },
            turns: Turns {
                sessions: (!sessions.is_empty()).then_some(sessions.len() as u64),
                requests_per_session: Spread::of(sessions),
                turns: Spread::of(std::mem::take(&mut self.turns)),
            },
            prefixes: self.blocks.finish(&mut self.problems),
            offsets_ms: offsets,
            input_tokens: list(&self.input),
            output_tokens: list(&self.output),
            problems: self.problems.finish(),
        }
    }

    fn unit(&mut self, asked: Option<Format>) -> Option<TimeUnit> {
        let timed = self.evidence.numbers + self.evidence.dates;
        if timed == 0 {
            return None;
        }
        let without = self.requests() as u64 - timed;
        if without > 0 {
            let text = "some requests have no timestamp: such a file is not replayed".to_owned();
            self.problems.of_all("missing_timestamps", without, text);
        }
        let unit = self.evidence.unit(self.format, asked);
        if unit.is_none() {
            let rate = |unit| self.evidence.rate(unit).map_or("all at once".to_owned(), significant);
            let text = format!(
                "the unit of the timestamps is unclear: {} requests/s if milliseconds, {} if seconds; say --format \
                 mooncake (milliseconds) or --format guidellm (seconds)",
                rate(TimeUnit::Millis),
                rate(TimeUnit::Seconds)
            );
            self.problems.of_all("unclear_unit", timed, text);
        }
        unit
    }

    /// The order of arrival; of the file where there is none. Requests without a time come last.
    fn order(&self, unit: Option<TimeUnit>) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.requests()).collect();
        if let Some(unit) = unit {
            order.sort_by_key(|i| self.times[*i].map_or(Nanos(i64::MAX), |time| time.nanos(unit)));
        }
        order
    }

    fn first(&self, unit: Option<TimeUnit>) -> Option<Nanos> {
        let unit = unit?;
        self.times.iter().flatten().map(|time| time.nanos(unit)).min()
    }

    fn arrivals(&mut self, unit: TimeUnit, order: &[usize]) -> Arrivals {
        let at: Vec<i64> =
            order.iter().filter_map(|i| self.times[*i]).map(|time| time.nanos(unit).0).collect();
        let arrivals = Arrivals { sorted: self.is_sorted, ..Arrivals::of(&at) };
        if arrivals.equal_timestamps_share > 0.1 {
            let text = format!(
                "{:.0} % of the requests share their timestamp with another ({} instants for {} requests): replayed \
                 as recorded they come in bursts of up to {}; --smooth spreads them",
                arrivals.equal_timestamps_share * 100.0,
                arrivals.distinct_timestamps,
                at.len(),
                arrivals.max_burst
            );
            let together = (arrivals.equal_timestamps_share * at.len() as f64).round() as u64;
            self.problems.of_all("equal_timestamps", together, text);
        }
        arrivals
    }
}

/// What prompts share, under way.
#[derive(Default)]
struct Blocks {
    seen: HashSet<u64>,
    all: u64,
    hits: u64,
    requests_with_a_hit: u64,
    size: BlockSize,
}

impl Blocks {
    fn push(&mut self, row: &Row, problems: &mut Problems) {
        if row.blocks.is_empty() {
            return;
        }
        self.size.push(row.input_tokens, row.blocks.len());
        if let Some(input) = row.input_tokens
            && input.div_ceil(BLOCK) as usize != row.blocks.len()
        {
            problems.add("blocks_of_another_size", row.line, || {
                format!("{} hash_ids for {input} tokens are not blocks of {BLOCK}", row.blocks.len())
            });
        }
        // A prefix cache finds nothing behind the first block that it does not hold.
        let hits = row.blocks.iter().take_while(|block| self.seen.contains(*block)).count() as u64;
        self.all += row.blocks.len() as u64;
        self.hits += hits;
        self.requests_with_a_hit += u64::from(hits > 0);
        self.seen.extend(&row.blocks);
    }

    fn finish(&self, problems: &mut Problems) -> Option<Prefixes> {
        if self.all == 0 {
            return None;
        }
        let block_size = self.size.size();
        if block_size.is_none() {
            let text = "no size of blocks fits all lengths: hash_ids and input_length do not belong together";
            problems.of_all("blocks_do_not_fit", self.all, text.to_owned());
        }
        Some(Prefixes {
            block_size,
            blocks: self.all,
            distinct_blocks: self.seen.len() as u64,
            hit_share: self.hits as f64 / self.all as f64,
            requests_with_a_hit: self.requests_with_a_hit,
        })
    }
}

#[cfg(test)]
mod tests;
