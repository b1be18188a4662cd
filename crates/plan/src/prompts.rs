//! The prompts of a workload: one text, made-up words, a file, or what a trace recorded.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use ttft_model::{Calibration, Lengths, Prompt};

use crate::dataset::{DatasetError, Format, Item, Listed, Recorded, Trace};
use crate::draw::{draw, mixed};
use crate::words::WORDS;

/// Tells the draws of prompts from those of answers.
const OF_PROMPTS: u64 = 0x5052_4f4d_5054;
const OF_ANSWERS: u64 = 0x414e_5357_4552;

/// Where the prompts of a workload come from, loaded. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Prompts {
    source: Source,
    seed: u64,
    scale: Scale,
}

#[derive(Debug, Clone)]
enum Source {
    /// The same text for all.
    Fixed(Arc<str>),
    /// Words, different for every number.
    Words(Lengths),
    /// Taken in turn.
    List(Arc<Listed>),
    /// As recorded.
    Trace(Arc<Trace>),
}

/// Words of so many tokens.
#[derive(Debug, Clone, Copy)]
struct Scale {
    words_per_token: f64,
    overhead: f64,
}

impl Scale {
    fn of(calibration: Calibration) -> Self {
        match calibration {
            Calibration::Measured { tokens_per_word, overhead } if tokens_per_word > 0.0 => {
                Self { words_per_token: 1.0 / tokens_per_word, overhead }
            }
            _ => Self { words_per_token: 1.0, overhead: 0.0 },
        }
    }

    /// Words of a prompt of `tokens`: one at least, unless none was asked.
    fn words(self, tokens: u32) -> u32 {
        let words = ((f64::from(tokens) - self.overhead) * self.words_per_token).round();
        if tokens == 0 { 0 } else { words.max(1.0) as u32 }
    }
}

impl Prompts {
    /// Loads what a plan names.
    pub fn load(prompt: &Prompt, seed: u64, calibration: Calibration) -> Result<Self, DatasetError> {
        let source = match prompt {
            Prompt::Text(text) => Source::Fixed(text.as_str().into()),
            Prompt::Tokens(tokens) => Source::Words(Lengths::Fixed(*tokens)),
            Prompt::Lengths(lengths) => Source::Words(*lengths),
            Prompt::File(path) => Source::List(Arc::new(Listed::load(Path::new(path))?)),
            Prompt::Trace { path, format } => {
                let asked = asked_format(Path::new(path), format.as_deref())?;
                Source::Trace(Arc::new(Trace::load(Path::new(path), asked)?))
            }
        };
        Ok(Self { source, seed, scale: Scale::of(calibration) })
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

    /// The longest answer that their file wants.
    pub fn most_output(&self) -> Option<u32> {
        match &self.source {
            Source::List(list) => list.most_output(),
            Source::Trace(trace) => trace.most_output(),
            _ => None,
        }
    }

    /// A replay of the same lengths in the words of another part of the run, 0 being the first: what a server holds
    /// of one part is nothing to the next.
    #[must_use]
    pub fn in_words_of(&self, part: u64) -> Self {
        match self.source {
            Source::Trace(_) if part > 0 => Self { seed: mixed(self.seed, part), ..self.clone() },
            _ => self.clone(),
        }
    }

    /// Output tokens of request number `number`, of such lengths.
    pub fn output_tokens(&self, lengths: Lengths, number: u64) -> Option<u32> {
        let recorded = match (&self.source, lengths) {
            (Source::List(list), Lengths::Recorded) => list.output_tokens(number),
            (Source::Trace(trace), Lengths::Recorded) => nth(&trace.requests, number)?.output_tokens,
            _ => return draw(lengths, self.seed ^ OF_ANSWERS, number),
        };
        // A request that failed when it was recorded still asks for something.
        recorded.map(|tokens| tokens.max(1))
    }

    /// Writes prompt number `number` to `text`, replacing what was there. With a salt, which counts as one of the
    /// words, no two prompts share a beginning. A conversation is returned instead of written.
    pub fn write(&self, number: u64, salt: Option<&str>, text: &mut String) -> Option<Cow<'_, Value>> {
        text.clear();
        if let Some(salt) = salt {
            // Writing to a String cannot fail.
            let _ = write!(text, "[{salt}] ");
        }
        let spent = u32::from(salt.is_some());
        let item = match &self.source {
            Source::Fixed(fixed) => {
                text.push_str(fixed);
                return None;
            }
            Source::Words(lengths) => {
                let tokens = draw(*lengths, self.seed ^ OF_PROMPTS, number).unwrap_or_default();
                push_words(text, self.scale.words(tokens).saturating_sub(spent), self.seed ^ number);
                return None;
            }
            Source::List(list) => list.item(number)?,
            Source::Trace(trace) => match nth(&trace.requests, number)? {
                Recorded { item: Some(item), .. } => Cow::Borrowed(item.as_ref()),
                recorded => {
                    self.push_recorded(text, recorded, trace.block_size, number, spent);
                    return None;
                }
            },
        };
        match item {
            Cow::Borrowed(Item::Messages(messages)) => Some(Cow::Borrowed(messages)),
            Cow::Owned(Item::Messages(messages)) => Some(Cow::Owned(messages)),
            item => {
                if let Item::Text(item) = item.as_ref() {
                    text.push_str(item);
                }
                None
            }
        }
    }

    /// As many words as were recorded tokens. Each block has the words of its id, so that prompts whose first blocks
    /// are the same begin with the same words; what no block covers has words of its own.
    fn push_recorded(&self, text: &mut String, recorded: &Recorded, block: u32, number: u64, spent: u32) {
        let words = self.scale.words(recorded.input_tokens.unwrap_or(1).max(1)).saturating_sub(spent);
        let end_of = |blocks: usize| {
            let tokens = block as usize * blocks;
            ((tokens as f64 * self.scale.words_per_token).round() as u32).min(words)
        };
        let mut written = 0;
        for (i, id) in recorded.blocks.iter().enumerate() {
            let end = end_of(i + 1);
            push_words(text, end - written, mixed(self.seed, *id));
            written = end;
        }
        push_words(text, words - written, mixed(self.seed ^ OF_PROMPTS, number));
    }
}

fn nth<T>(list: &[T], number: u64) -> Option<&T> {
    let at = number.checked_rem(list.len() as u64)?;
    list.get(at as usize)
}

fn push_words(text: &mut String, words: u32, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    text.reserve(words as usize * 6);
    for _ in 0..words {
        if !text.is_empty() && !text.ends_with(' ') {
            text.push(' ');
        }
        text.push_str(WORDS[random.random_range(0..WORDS.len())]);
    }
}

fn asked_format(path: &Path, name: Option<&str>) -> Result<Option<Format>, DatasetError> {
    let parsed = name.map(str::parse::<Format>).transpose();
    parsed
        .map_err(|what| DatasetError::Kind { path: path.to_owned(), what: format!("cannot be read: {what}") })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn load(prompt: &Prompt, calibration: Calibration) -> Result<Prompts, DatasetError> {
        Prompts::load(prompt, 7, calibration)
    }

    fn tokens(tokens: u32) -> Prompts {
        load(&Prompt::Tokens(tokens), Calibration::None).unwrap()
    }

    fn file(text: &str) -> (tempfile::NamedTempFile, String) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path = file.path().display().to_string();
        (file, path)
    }

    fn written(prompts: &Prompts, number: u64, salt: Option<&str>) -> String {
        let mut text = String::new();
        assert!(prompts.write(number, salt, &mut text).is_none());
        text
    }

    fn count(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn words_have_the_asked_length_with_and_without_salt() {
        let prompts = tokens(40);
        assert_eq!(count(&written(&prompts, 0, None)), 40);
        assert_eq!(count(&written(&prompts, 0, Some("0199"))), 40);
        assert!(written(&prompts, 0, Some("0199")).starts_with("[0199] "));
        assert_eq!(written(&prompts, 3, None), written(&prompts, 3, None));
        assert_ne!(written(&prompts, 3, None), written(&prompts, 4, None));
        assert_eq!(written(&tokens(0), 0, None), "");
        let drawn = load(&Prompt::Lengths("uniform:10:20".parse().unwrap()), Calibration::None).unwrap();
        let counts: Vec<usize> = (0..50).map(|number| count(&written(&drawn, number, None))).collect();
        assert!(counts.iter().all(|n| (10..=20).contains(n)) && counts.iter().any(|n| *n != counts[0]));
    }

    #[test]
    fn a_calibration_scales_the_words() {
        let calibration = Calibration::Measured { tokens_per_word: 2.0, overhead: 20.0 };
        let prompts = load(&Prompt::Tokens(500), calibration).unwrap();
        assert_eq!(count(&written(&prompts, 0, None)), 240);
        assert_eq!(count(&written(&load(&Prompt::Tokens(5), calibration).unwrap(), 0, None)), 1);
    }

    #[test]
    fn reads_files_in_turn() {
        let (_file, path) = file(
            "{\"prompt\":\"one\",\"output_tokens\":9}\r\n\n{\"messages\":[{\"role\":\"user\",\"content\":\"two\"}]}",
        );
        let prompts = load(&Prompt::File(path), Calibration::None).unwrap();
        assert_eq!(written(&prompts, 2, None), "one");
        assert!(prompts.write(1, None, &mut String::new()).is_some_and(|messages| messages.is_array()));
        assert_eq!(prompts.output_tokens(Lengths::Recorded, 2), Some(9));
        assert_eq!(prompts.output_tokens(Lengths::Recorded, 1), None);
        assert_eq!(prompts.output_tokens(Lengths::Fixed(3), 2), Some(3));

        let (_file, path) = file("{\"prompt\":\"one\"}\n{\"text\":1}");
        let error = load(&Prompt::File(path), Calibration::None).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let (_file, path) =
            file("[{\"conversations\":[]},{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"}]}]");
        assert_eq!(written(&load(&Prompt::File(path), Calibration::None).unwrap(), 5, None), "q");
        let (_file, path) = file("{\"input_length\":1}");
        assert!(load(&Prompt::File(path), Calibration::None).unwrap_err().to_string().contains("--trace"));
    }

    #[test]
    fn equal_blocks_are_equal_words() {
        let row = |time: u32, input: u32, blocks: &str| {
            format!(
                "{{\"timestamp\":{time},\"input_length\":{input},\"output_length\":{time},\"hash_ids\":[{blocks}]}}\n"
            )
        };
        let (_file, path) = file(
            &[row(0, 1100, "1,2,3"), row(500, 1060, "1,2,4"), row(900, 600, "5,2"), row(950, 0, "")].concat(),
        );
        for calibration in [Calibration::None, Calibration::Measured { tokens_per_word: 1.7, overhead: 11.0 }]
        {
            let prompts = load(&Prompt::Trace { path: path.clone(), format: None }, calibration).unwrap();
            let [first, second, third] = [0, 1, 2].map(|number| written(&prompts, number, None));
            let shared = first.split(' ').zip(second.split(' ')).take_while(|(a, b)| a == b).count();
            let wanted = Scale::of(calibration);
            let (two_blocks, words) =
                ((1024.0 * wanted.words_per_token).round() as usize, wanted.words(1100) as usize);
            assert!((two_blocks..two_blocks + 3).contains(&shared), "{shared} of {two_blocks}");
            assert_eq!(count(&first), words);
            assert_ne!(first[..40], third[..40]);
            assert_eq!(count(&written(&prompts, 3, None)), 1, "never empty");
            assert_eq!(written(&prompts, 4, None), first, "in turn");
            let other = written(&prompts.in_words_of(1), 0, None);
            assert!(count(&other) == words && other != first);
            assert_eq!(prompts.output_tokens(Lengths::Recorded, 0), Some(1), "0 is asked as 1");
            assert_eq!(prompts.output_tokens(Lengths::Recorded, 2), Some(900));
        }
    }
}
