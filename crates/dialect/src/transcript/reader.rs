//! Applies a dialect's rules to what was found in one JSON text, and keeps the account of the answer.

mod counts;

use ttft_model::{Answer, Channel, ErrorClass, Failure, Nanos, Stamp};

use counts::{Apart, Told};

use super::cumulative::{Cumulative, Step};
use super::failure::failure;
use super::running::Running;
use super::sentence::FirstSentence;
use super::{Options, Texts};
use crate::json::{Hit, Kind, append, number};
use crate::rules::{Matcher, Meaning, Rule};

/// Choices beyond this share the last place.
pub(super) const MAX_CHOICES: usize = 64;

/// What a JSON text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// An event of a stream.
    Event,
    /// An event that its name or field says is an error.
    Error,
    /// The whole answer at once.
    Document,
}

/// The account of one answer.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) answer: Answer,
    pub(super) texts: Texts,
    /// What the event that is being read brought, if texts are kept.
    piece: String,
    pub(super) failure: Option<Failure>,
    /// What an event said that was no part of the answer but had the words of an error: one, if the stream fails.
    pub(super) suspect: Option<Failure>,
    /// Something stood where the dialect has its output or its finish, be it empty.
    pub(super) has_shape: bool,
    /// Output that came in a document, and so has no instants.
    pub(super) document_output: bool,
    /// The read and stamp of the bytes that are being read.
    read: u64,
    pub(super) stamp: Stamp,
    keep_text: bool,
    first_output_read: u64,
    last_output_read: u64,
    /// The read of the last output is already among the coalesced ones.
    read_counted: bool,
    running: Running,
    sentence: FirstSentence,
    told: Told,
    apart: Apart,
    /// Bit n: choice n had output; choice n finished.
    choices: u64,
    finished: u64,
    /// When the last finish reason came.
    pub(super) finished_at: Option<Stamp>,
    first_of_choice_0: Option<Nanos>,
    /// Texts of which each event repeats what came before.
    cumulative: Cumulative,
    /// Alternatives that an event has already used: group, slot, choice.
    taken: Vec<(u16, u16, usize)>,
}

/// The output of one JSON text.
#[derive(Default)]
pub(super) struct Output {
    channel: Option<Channel>,
    /// The count of tokens that it told.
    pub(super) tokens: Option<u64>,
    /// The first choice that it speaks of.
    pub(super) choice: Option<usize>,
    /// A choice finished.
    pub(super) finished: bool,
    /// A count came that is one part of the output's.
    apart: bool,
}

impl Reader {
    pub(super) fn new(options: Options) -> Self {
        Self {
            answer: Answer::default(),
            texts: Texts::default(),
            piece: String::new(),
            failure: None,
            suspect: None,
            has_shape: false,
            document_output: false,
            read: 0,
            stamp: Stamp::user(Nanos::ZERO),
            keep_text: options.keep_text,
            first_output_read: 0,
            last_output_read: 0,
            read_counted: false,
            running: Running::default(),
            sentence: FirstSentence::default(),
            told: Told::default(),
            apart: Apart::default(),
            choices: 0,
            finished: 0,
            finished_at: None,
            first_of_choice_0: None,
            cumulative: Cumulative::new(options.keep_text),
            taken: Vec::new(),
        }
    }

    /// Bytes came in that read.
    pub(super) fn arrived(&mut self, read: u64, stamp: Stamp) {
        self.read = read;
        self.stamp = stamp;
    }

    /// Whether texts are kept.
    pub(super) fn keeps_text(&self) -> bool {
        self.keep_text
    }

    /// The read and stamp of the bytes that are being read.
    pub(super) fn at(&self) -> (u64, Stamp) {
        (self.read, self.stamp)
    }

    /// Whether output came, in whatever form.
    pub(super) fn has_output(&self) -> bool {
        self.answer.first_token.is_some() || self.document_output
    }

    /// Keeps the first failure.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// The terminator came.
    pub(super) fn end(&mut self) {
        self.answer.facts.terminator = true;
        self.answer.ended = Some(self.stamp);
    }

    /// A choice had output and did not finish.
    pub(super) fn has_open_choice(&self) -> bool {
        self.choices & !self.finished != 0
    }

    /// Applies the rules to one JSON text.
    pub(super) fn apply(&mut self, matcher: &Matcher, hits: &[Hit], json: &[u8], text: Text) {
        let mut output = Output::default();
        let mut error: Option<&Hit> = None;
        let (mut shape, mut message) = (false, false);
        let mut of_choice = None;
        self.taken.clear();

        for hit in hits {
            for rule in matcher.rules(hit.slot) {
                shape |= rule.is_shape;
                if of_choice.is_none() && matcher.has_choice(rule) {
                    of_choice = Some((rule, hit));
                }
                if hit.kind == Kind::Null || !rule.applies(hit, hits, json) {
                    continue;
                }
                if let Some(channel) = rule.meaning.channel() {
                    let choice = matcher.choice(rule, hit, hits, json);
                    if let Some(step) = self.step(rule, hit, json, channel, choice) {
                        self.keep(&step, hit.raw(json), channel, choice);
                        if text != Text::Document && channel == Channel::Text && choice == 0 {
                            self.read_on(&step, hit.raw(json));
                        }
                        output.add(channel);
                        if text != Text::Document {
                            self.note_choice(choice);
                        }
                    }
                    continue;
                }
                match rule.meaning {
                    Meaning::Error if is_error(hit, json) => error = error.or(Some(hit)),
                    Meaning::Finish if hit.is_text() => {
                        let choice = matcher.choice(rule, hit, hits, json);
                        self.finish(hit, json, choice);
                        output.finished = true;
                    }
                    Meaning::End => self.end(),
                    Meaning::ErrorMessage => message |= hit.is_text(),
                    Meaning::Id if hit.is_text() => set_once(&mut self.answer.response_id, hit, json),
                    Meaning::Model if hit.is_text() => set_once(&mut self.answer.model, hit, json),
                    _ => self.number(rule, hit, json, &mut output),
                }
            }
        }

        self.has_shape |= shape;
        if error.is_some() || text == Text::Error {
            let class =
                if text == Text::Document { ErrorClass::InBodyError } else { ErrorClass::InStreamError };
            if self.failure.is_none() {
                self.failure = Some(failure(class, matcher, hits, json, error));
            }
        } else if message && !shape && text == Text::Event && self.suspect.is_none() {
            let told = failure(ErrorClass::InStreamError, matcher, hits, json, None);
            // Vendors that always send a code mean by these that all is well.
            let fine = matches!(told.code.as_deref(), Some("0" | "200"));
            self.suspect = Some(told).filter(|_| !fine);
        }
        if output.apart {
            self.join_counts(&mut output);
        }
        // Only a count needs to know whose it is.
        if let (Some(_), Some((rule, hit))) = (output.tokens, of_choice) {
            output.choice = Some(matcher.choice(rule, hit, hits, json));
        }
        match output.channel {
            Some(_) if text == Text::Document => self.document_output = true,
            Some(channel) => self.record(channel, &output),
            None => {}
        }
        self.running.note(&output, self.answer.facts.events);
    }

    /// Takes the error alone from an event that is no part of the stream; `named` if its name says that it is one.
    pub(super) fn take_error(&mut self, matcher: &Matcher, hits: &[Hit], json: &[u8], named: bool) {
        let mut told = of_meaning(matcher, hits, json);
        let error = told.find(|(rule, hit)| rule.meaning == Meaning::Error && is_error(hit, json));
        if (named || error.is_some()) && self.failure.is_none() {
            let hit = error.map(|(_, hit)| hit);
            self.failure = Some(failure(ErrorClass::InStreamError, matcher, hits, json, hit));
        }
    }

    /// Takes the counts of tokens alone.
    pub(super) fn take_counts(&mut self, matcher: &Matcher, hits: &[Hit], json: &[u8]) {
        let mut output = Output::default();
        for (rule, hit) in of_meaning(matcher, hits, json).filter(|(rule, _)| rule.meaning.is_usage()) {
            self.number(rule, hit, json, &mut output);
        }
        if output.apart {
            self.join_counts(&mut output);
        }
    }

    /// Takes the output of a whole answer that came as one event of a stream.
    pub(super) fn take_whole(&mut self, matcher: &Matcher, hits: &[Hit], json: &[u8]) {
        self.taken.clear();
        for (rule, hit) in of_meaning(matcher, hits, json) {
            let Some(channel) = rule.meaning.channel() else { continue };
            let choice = matcher.choice(rule, hit, hits, json);
            if let Some(step) = self.step(rule, hit, json, channel, choice) {
                self.keep(&step, hit.raw(json), channel, choice);
                self.document_output = true;
            }
        }
    }

    /// What an output value adds; `None` if nothing, or nothing that an alternative of the same event has not given.
    fn step(&mut self, rule: &Rule, hit: &Hit, json: &[u8], channel: Channel, choice: usize) -> Option<Step> {
        let holds = hit.end - hit.start;
        let some = match hit.kind {
            Kind::String => holds > 0,
            // Arguments may come as an object, where `{}` is nothing.
            Kind::Object | Kind::Array => channel == Channel::Tool && holds > 2,
            _ => false,
        };
        if !some {
            return None;
        }
        let step = if rule.cumulative {
            self.cumulative.step(channel, choice.min(MAX_CHOICES - 1), hit.raw(json))?
        } else {
            Step::More
        };
        if rule.alternatives {
            let other = |&(group, slot, whose): &(u16, u16, usize)| {
                group == rule.group && slot != hit.slot && whose == choice
            };
            if self.taken.iter().any(other) {
                return None;
            }
            self.taken.push((rule.group, hit.slot, choice));
        }
        Some(step)
    }

    /// More visible text of the first choice.
    fn read_on(&mut self, step: &Step, raw: &[u8]) {
        if !self.sentence.is_done() {
            let new = if let Step::Whole(known) = step { &raw[*known..] } else { raw };
            self.sentence.push(new, self.stamp);
        }
    }

    /// No more text follows.
    pub(super) fn end_of_text(&mut self) {
        self.answer.first_sentence = self.sentence.at_end().map(Stamp::at);
    }

    /// Keeps a text of the first choice, if texts are kept.
    fn keep(&mut self, step: &Step, raw: &[u8], channel: Channel, choice: usize) {
        if !self.keep_text {
            return;
        }
        append(&mut self.piece, if let Step::Whole(known) = step { &raw[*known..] } else { raw });
        let text = match channel {
            Channel::Text => &mut self.texts.text,
            Channel::Reasoning => &mut self.texts.reasoning,
            _ => return,
        };
        if choice != 0 {
            return;
        }
        match step {
            Step::More => append(text, raw),
            Step::Whole(_) => {
                text.clear();
                append(text, raw);
            }
            Step::Instead(joined) => {
                text.clear();
                append(text, joined);
            }
        }
    }

    fn note_choice(&mut self, choice: usize) {
        let choice = choice.min(MAX_CHOICES - 1);
        self.choices |= 1 << choice;
        let at = self.stamp.at();
        if choice == 0 {
            self.first_of_choice_0.get_or_insert(at);
        }
        let firsts = &mut self.answer.choice_first_token;
        if choice >= firsts.len() && (choice > 0 || !firsts.is_empty()) {
            firsts.resize(choice + 1, None);
        }
        if let Some(first) = firsts.first_mut() {
            *first = self.first_of_choice_0;
        }
        if let Some(first) = firsts.get_mut(choice) {
            first.get_or_insert(at);
        }
    }

    /// An event with output.
    fn record(&mut self, channel: Channel, output: &Output) {
        let tokens = self.running.tokens(output.tokens, output.choice.unwrap_or(0));
        let answer = &mut self.answer;
        let later = answer.first_token.is_some();
        // Reads of one instant were one arrival.
        let at = Some(self.stamp.at());
        let came_with = |other: Option<Stamp>, read| read == self.read || other.map(Stamp::at) == at;
        let coalesced = later && came_with(answer.last_token, self.last_output_read);
        if later {
            let with_first = came_with(answer.first_token, self.first_output_read);
            answer.facts.first_token_coalesced |= with_first;
            answer.facts.all_in_one_read &= with_first;
        } else {
            answer.first_token = Some(self.stamp);
            answer.facts.all_in_one_read = true;
            self.first_output_read = self.read;
        }
        if coalesced && !self.read_counted {
            answer.facts.coalesced_reads += 1;
        }
        self.read_counted = coalesced;
        self.last_output_read = self.read;
        if channel != Channel::Reasoning {
            answer.first_answer.get_or_insert(self.stamp);
        }
        answer.last_token = Some(self.stamp);
        answer.events.push(self.stamp.at(), tokens, channel, coalesced);
        if self.keep_text {
            self.texts.events.push(std::mem::take(&mut self.piece));
        }
    }

    fn finish(&mut self, hit: &Hit, json: &[u8], choice: usize) {
        self.finished |= 1 << choice.min(MAX_CHOICES - 1);
        self.answer.facts.finish = true;
        self.finished_at = Some(self.stamp);
        set_once(&mut self.answer.finish_reason, hit, json);
    }
}

impl Output {
    /// Several channels in one text count as the first that is not reasoning.
    fn add(&mut self, channel: Channel) {
        if matches!(self.channel, None | Some(Channel::Reasoning)) {
            self.channel = Some(channel);
        }
    }
}

/// The values that some rule speaks of, with the rule.
fn of_meaning<'a>(
    matcher: &'a Matcher,
    hits: &'a [Hit],
    json: &'a [u8],
) -> impl Iterator<Item = (&'a Rule, &'a Hit)> {
    let some = hits.iter().filter(|hit| hit.kind != Kind::Null);
    let rules = some.flat_map(|hit| matcher.rules(hit.slot).iter().map(move |rule| (rule, hit)));
    rules.filter(move |(rule, hit)| rule.applies(hit, hits, json))
}

fn set_once(place: &mut Option<String>, hit: &Hit, json: &[u8]) {
    if place.is_none() {
        let mut text = String::new();
        append(&mut text, hit.raw(json));
        *place = Some(text);
    }
}

/// Whether the value of an error field says that there is one.
fn is_error(hit: &Hit, json: &[u8]) -> bool {
    match hit.kind {
        Kind::String | Kind::True => hit.end > hit.start,
        Kind::Number => number(hit.raw(json)).is_some_and(|code| code != 0.0),
        Kind::Object | Kind::Array => !hit.raw(json)[1..hit.end - hit.start - 1].trim_ascii().is_empty(),
        Kind::False | Kind::Null => false,
    }
}
