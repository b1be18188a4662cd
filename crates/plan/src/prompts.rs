//! The prompts of a workload: one text, made-up words, a file, or what a trace recorded.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use ttft_model::{Lengths, Prompt, Workload};

use crate::Counter;
use crate::conversation::put_in_front;
use crate::dataset::{DatasetError, Format, Item, Listed, Recorded, Trace};
use crate::draft::{Draft, Gauge};
use crate::draw::{Draws, mixed};
use crate::empirical::Side;
use crate::shared::Shared;

/// Tells the draws of prompts from those of answers and of turns.
const OF_PROMPTS: u64 = 0x5052_4f4d_5054;
const OF_ANSWERS: u64 = 0x414e_5357_4552;
const OF_TURNS: u64 = 0x0054_5552_4e53;

/// Where the prompts of a workload come from, loaded. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Prompts {
    source: Source,
    seed: u64,
    gauge: Gauge,
    counter: Option<Arc<Counter>>,
    shared: Option<Shared>,
    output: Output,
    /// Turns of a session; `None` where each request stands alone.
    turns: Option<Draws>,
}

#[derive(Debug, Clone)]
enum Source {
    /// The same text for all.
    Fixed(Arc<str>),
    /// Words, different for every number.
    Words(Draws),
    /// Taken in turn.
    List(Arc<Listed>),
    /// As recorded.
    Trace(Arc<Trace>),
}

/// How long answers are to be.
#[derive(Debug, Clone)]
enum Output {
    /// All as long as the workload says.
    Same,
    /// As the data set or trace says.
    Recorded,
    /// As the line of the file says that the prompt's length comes from.
    Paired,
    /// Drawn by themselves.
    Drawn(Draws),
}

/// How long the longest prompt of a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longest {
    /// Its tokens.
    pub tokens: u64,
    /// It was counted, or made so long; else its words were counted, and it has more tokens than that.
    pub is_certain: bool,
}

impl Prompts {
    /// Loads what a workload names.
    pub fn load(workload: &Workload, seed: u64) -> Result<Self, DatasetError> {
        let source = match &workload.prompt {
            Prompt::Text(text) => Source::Fixed(text.as_str().into()),
            Prompt::Tokens(tokens) => Source::Words(Draws::load(&Lengths::Fixed(*tokens))?),
            Prompt::Lengths(lengths) => Source::Words(Draws::load(lengths)?),
            Prompt::File(path) => {
                let path = Path::new(path);
                let list = match &workload.session {
                    None => Listed::load(path)?,
                    Some(_) => Listed::load_turns(path)?,
                };
                Source::List(Arc::new(list))
            }
            Prompt::Trace { path, format } => {
                let asked = asked_format(Path::new(path), format.as_deref())?;
                Source::Trace(Arc::new(Trace::load(Path::new(path), asked)?))
            }
        };
        if workload.session.is_some() {
            check_turns(&workload.prompt, &source)?;
        }
        let output = match (&workload.output, &workload.prompt, &source) {
            (None, ..) => Output::Same,
            (Some(Lengths::Empirical(own)), Prompt::Lengths(Lengths::Empirical(of_prompts)), _)
                if own == of_prompts =>
            {
                Output::Paired
            }
            (Some(Lengths::Recorded), _, Source::Words(_)) => Output::Paired,
            (Some(Lengths::Recorded), ..) => Output::Recorded,
            (Some(lengths), ..) => Output::Drawn(Draws::load(lengths)?),
        };
        let counter = workload.tokenizer.as_ref().map(|path| Counter::load(Path::new(path))).transpose()?;
        let counter = counter.map(Arc::new);
        let turns = workload.session.as_ref().map(|session| Draws::load(&session.turns)).transpose()?;
        Ok(Self {
            source,
            seed,
            gauge: Gauge::of(workload.calibration, counter.clone()),
            counter,
            shared: workload.prefix.map(|prefixes| Shared::new(prefixes, seed)),
            output,
            turns,
        })
    }

    /// The trace that they follow.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        match &self.source {
            Source::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// How many prompts were written by others, and so may hold anything; 0 where they are made here.
    pub fn given(&self) -> u64 {
        match &self.source {
            Source::List(list) => list.count() as u64,
            Source::Trace(trace) if trace.requests.iter().any(|request| request.item.is_some()) => {
                trace.requests.len() as u64
            }
            _ => 0,
        }
    }

    /// What counts tokens as the server does, if it was given.
    pub fn counter(&self) -> Option<&Arc<Counter>> {
        self.counter.as_ref()
    }

    /// Whether they share beginnings that are made for that.
    pub const fn has_prefixes(&self) -> bool {
        self.shared.is_some()
    }

    /// The longest answer that is asked for, where that is not the same for all.
    pub fn most_output(&self) -> Option<u32> {
        match (&self.output, &self.source) {
            (Output::Recorded, Source::List(list)) => list.most_output(),
            (Output::Recorded, Source::Trace(trace)) => trace.most_output(),
            (Output::Paired, Source::Words(draws)) => draws.most_paired(),
            (Output::Drawn(draws), _) => draws.most(Side::Output),
            _ => None,
        }
    }

    /// The longest prompt, with the history that a session's last turn may have when each answer has `answer` tokens.
    pub fn longest(&self, answer: u32) -> Longest {
        let words = |text: &str| text.split_whitespace().count() as u64;
        let (own, is_certain, turns) = match &self.source {
            Source::Fixed(text) => match self.counter.as_ref().and_then(|counter| counter.count(text).ok()) {
                Some(tokens) => (u64::from(tokens), true, None),
                None => (words(text), false, None),
            },
            Source::Words(draws) => (u64::from(draws.most(Side::Input).unwrap_or_default()), true, None),
            Source::List(list) => (list.longest(), false, Some(list.most_turns() as u64)),
            Source::Trace(trace) => match trace.most_input() {
                Some(tokens) => (u64::from(tokens), true, None),
                None => (0, false, None),
            },
        };
        let most_turns = self.turns.as_ref().map_or(1, |turns| {
            let most = turns.most(Side::Input).map_or(u64::MAX, u64::from).min(self.list_turns());
            if most == u64::MAX { 1 } else { most.max(1) }
        });
        // A listed conversation was counted as a whole.
        let asked = if turns.is_some() { own } else { own.saturating_mul(most_turns) };
        let tokens = asked
            + (most_turns - 1).saturating_mul(u64::from(answer))
            + self.shared.map_or(0, |shared| u64::from(shared.tokens()));
        Longest { tokens, is_certain }
    }

    /// Most turns that the source has; no end of them where they are made up.
    fn list_turns(&self) -> u64 {
        match &self.source {
            Source::List(list) => list.most_turns() as u64,
            _ => u64::MAX,
        }
    }

    /// The same in the words of another part of the run, 0 being the first, as far as a server could find them again:
    /// what it holds of a trace's or a group's prefixes from one part is nothing to the next.
    #[must_use]
    pub fn in_words_of(&self, part: u64) -> Self {
        if part == 0 {
            return self.clone();
        }
        let shared = self.shared.map(|shared| shared.in_words_of(part));
        match self.source {
            Source::Trace(_) => Self { seed: mixed(self.seed, part), shared, ..self.clone() },
            _ => Self { shared, ..self.clone() },
        }
    }

    /// Output tokens of request number `number`, or of a turn of that session, from 0; `None` where nothing says more
    /// than the workload does.
    pub fn output_tokens(&self, number: u64, turn: u32) -> Option<u32> {
        let draw = of_turn(number, turn);
        let recorded = match (&self.output, &self.source) {
            (Output::Recorded, Source::List(list)) => list.output_tokens(number),
            (Output::Recorded, Source::Trace(trace)) => nth(&trace.requests, number)?.output_tokens,
            (Output::Paired, Source::Words(draws)) => draws.draw_paired(self.seed ^ OF_PROMPTS, draw),
            (Output::Drawn(draws), _) => draws.draw(Side::Output, self.seed ^ OF_ANSWERS, draw),
            _ => None,
        };
        // A request that failed when it was recorded still asks for something.
        recorded.map(|tokens| tokens.max(1))
    }

    /// Turns of session number `number`; `None` where each request stands alone.
    pub fn turns(&self, number: u64) -> Option<u32> {
        let drawn = self.turns.as_ref()?.draw(Side::Input, self.seed ^ OF_TURNS, number);
        let there = match &self.source {
            Source::List(list) => match list.item(number).as_deref() {
                Some(Item::Turns(turns)) => turns.len() as u32,
                _ => 1,
            },
            _ => u32::MAX,
        };
        match drawn {
            Some(turns) => Some(turns.min(there).max(1)),
            // Only the file knows.
            None => Some(if there == u32::MAX { 1 } else { there }),
        }
    }

    /// What a turn of session number `number` asks, from 0, as messages. The first begins with the salt.
    pub fn turn(&self, number: u64, turn: u32, salt: Option<&str>, text: &mut String) -> Vec<Value> {
        if let Source::List(list) = &self.source
            && let Some(item) = list.item(number)
            && let Item::Turns(turns) = item.as_ref()
        {
            let mut asked = turns.get(turn as usize).cloned().unwrap_or_default();
            if turn == 0 {
                self.front(number, salt, text).finish();
                put_in_front(&mut asked, text);
            }
            return asked;
        }
        if turn == 0 {
            return match self.write(number, salt, text) {
                Some(Value::Array(messages)) => messages,
                _ => vec![json!({"role": "user", "content": text.as_str()})],
            };
        }
        match &self.source {
            Source::Words(draws) => {
                let number = of_turn(number, turn);
                let tokens = draws.draw(Side::Input, self.seed ^ OF_PROMPTS, number).unwrap_or_default();
                let mut draft = Draft::new(&self.gauge, text);
                draft.words(self.gauge.part(u64::from(tokens)).max(1), self.seed ^ number);
                draft.finish();
            }
            Source::Fixed(fixed) => (**fixed).clone_into(text),
            Source::List(_) | Source::Trace(_) => text.clear(),
        }
        vec![json!({"role": "user", "content": text.as_str()})]
    }

    /// Writes prompt number `number` to `text`, replacing what was there. With a salt, which counts as one of the
    /// words, no two prompts share a beginning. A conversation is returned instead of written.
    pub fn write(&self, number: u64, salt: Option<&str>, text: &mut String) -> Option<Value> {
        let mut draft = self.front(number, salt, text);
        let item = match &self.source {
            Source::Fixed(fixed) => {
                draft.text(fixed);
                return None;
            }
            Source::Words(draws) => {
                let tokens = draws.draw(Side::Input, self.seed ^ OF_PROMPTS, number).unwrap_or_default();
                let end = self.prefix_room() + self.gauge.room(tokens);
                draft.words(end, self.seed ^ number);
                draft.finish();
                return None;
            }
            Source::List(list) => list.item(number)?,
            Source::Trace(trace) => match nth(&trace.requests, number)? {
                Recorded { item: Some(item), .. } => Cow::Borrowed(item.as_ref()),
                recorded => {
                    self.write_recorded(draft, recorded, trace.block_size, number);
                    return None;
                }
            },
        };
        match item {
            Cow::Owned(Item::Text(own)) => draft.text(&own),
            Cow::Borrowed(Item::Text(own)) => draft.text(own),
            item => {
                let mut messages = match item.into_owned() {
                    Item::Messages(Value::Array(messages)) => messages,
                    Item::Turns(turns) => turns.into_iter().next().unwrap_or_default(),
                    _ => Vec::new(),
                };
                put_in_front(&mut messages, text);
                return Some(Value::Array(messages));
            }
        }
        None
    }

    /// The beginning of a prompt: a salt, and what it shares with others.
    fn front<'a>(&'a self, number: u64, salt: Option<&str>, text: &'a mut String) -> Draft<'a> {
        let mut draft = Draft::new(&self.gauge, text);
        if let Some(salt) = salt {
            draft.salt(salt);
        }
        if let Some(shared) = self.shared {
            draft.words(self.prefix_room(), shared.seed_of(number));
        }
        draft
    }

    /// The length of what prompts share: the salt in front of it is part of it.
    fn prefix_room(&self) -> u32 {
        self.shared.map_or(0, |shared| self.gauge.part(u64::from(shared.tokens())))
    }

    /// As many words as were recorded tokens. Each block has the words of its id, so that prompts whose first blocks
    /// are the same begin with the same words; what no block covers has words of its own.
    fn write_recorded(&self, mut draft: Draft<'_>, recorded: &Recorded, block: u32, number: u64) {
        let before = self.prefix_room();
        let room = self.gauge.room(recorded.input_tokens.unwrap_or(1).max(1));
        for (i, id) in recorded.blocks.iter().enumerate() {
            let end = self.gauge.part(u64::from(block) * (i as u64 + 1)).min(room);
            draft.words(before + end, mixed(self.seed, *id));
        }
        draft.words(before + room, mixed(self.seed ^ OF_PROMPTS, number));
        draft.finish();
    }
}

/// Whether there are conversations in what the prompts come from.
fn check_turns(prompt: &Prompt, source: &Source) -> Result<(), DatasetError> {
    let (path, what) = match (prompt, source) {
        (Prompt::File(path), Source::List(list)) if list.most_turns() < 2 => {
            (path, "holds no conversations of several turns")
        }
        (Prompt::Trace { path, .. }, _) => (path, "is a trace: its requests are no conversations"),
        _ => return Ok(()),
    };
    Err(DatasetError::Kind { path: path.into(), what: what.to_owned() })
}

/// A number of its own for each turn of a session; the first has the session's.
fn of_turn(number: u64, turn: u32) -> u64 {
    if turn == 0 { number } else { mixed(number, u64::from(turn)) }
}

fn nth<T>(list: &[T], number: u64) -> Option<&T> {
    let at = number.checked_rem(list.len() as u64)?;
    list.get(at as usize)
}

fn asked_format(path: &Path, name: Option<&str>) -> Result<Option<Format>, DatasetError> {
    let parsed = name.map(str::parse::<Format>).transpose();
    parsed
        .map_err(|what| DatasetError::Kind { path: path.to_owned(), what: format!("cannot be read: {what}") })
}

#[cfg(test)]
mod tests;
