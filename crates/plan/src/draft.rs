//! A prompt of a given length, written word by word.

use std::fmt::Write as _;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ttft_model::Calibration;

use crate::Counter;
use crate::words::WORDS;

/// How the length of a text is measured.
#[derive(Debug, Clone)]
pub(crate) enum Gauge {
    /// In words, of which so many make a token.
    Words {
        /// Words of a token.
        words_per_token: f64,
        /// Tokens that stand around a prompt.
        overhead: f64,
    },
    /// In tokens.
    Tokens {
        /// Counts them.
        counter: Arc<Counter>,
        /// Tokens that stand around a prompt.
        overhead: u32,
    },
}

impl Gauge {
    /// By a tokenizer, if there is one, and what was measured of the server.
    pub(crate) fn of(calibration: Calibration, counter: Option<Arc<Counter>>) -> Self {
        match (calibration, counter) {
            (Calibration::Measured { overhead, .. }, Some(counter)) => {
                Self::Tokens { counter, overhead: overhead.round().max(0.0) as u32 }
            }
            (_, Some(counter)) => Self::Tokens { counter, overhead: 0 },
            (Calibration::Measured { tokens_per_word, overhead }, None) if tokens_per_word > 0.0 => {
                Self::Words { words_per_token: 1.0 / tokens_per_word, overhead }
            }
            _ => Self::Words { words_per_token: 1.0, overhead: 0.0 },
        }
    }

    /// The length of a prompt of `tokens`, without what stands around it: one at least, unless none was asked.
    pub(crate) fn room(&self, tokens: u32) -> u32 {
        let room = match self {
            Self::Words { words_per_token, overhead } => {
                ((f64::from(tokens) - overhead) * words_per_token).round() as u32
            }
            Self::Tokens { overhead, .. } => tokens.saturating_sub(*overhead),
        };
        if tokens == 0 { 0 } else { room.max(1) }
    }

    /// The length of a part of a prompt.
    pub(crate) fn part(&self, tokens: u64) -> u32 {
        match self {
            Self::Words { words_per_token, .. } => (tokens as f64 * words_per_token).round() as u32,
            Self::Tokens { .. } => u32::try_from(tokens).unwrap_or(u32::MAX),
        }
    }
}

/// A prompt being written.
pub(crate) struct Draft<'a> {
    gauge: &'a Gauge,
    text: &'a mut String,
    /// Its length so far, by the gauge.
    spent: u32,
    /// Bytes at its front that must stay.
    kept: usize,
}

impl<'a> Draft<'a> {
    /// An empty one.
    pub(crate) fn new(gauge: &'a Gauge, text: &'a mut String) -> Self {
        text.clear();
        Self { gauge, text, spent: 0, kept: 0 }
    }

    /// Puts a salt at its front; without a tokenizer that counts as a word.
    pub(crate) fn salt(&mut self, salt: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.text, "[{salt}]");
        self.spent += match self.gauge {
            Gauge::Words { .. } => 1,
            // One that could not be counted could not be sent either way.
            Gauge::Tokens { counter, .. } => counter.count(self.text).unwrap_or(1),
        };
        self.kept = self.text.len();
    }

    /// Adds words until it is `end` long.
    pub(crate) fn words(&mut self, end: u32, seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed);
        let missing = end.saturating_sub(self.spent);
        self.text.reserve(missing as usize * 6);
        while self.spent < end {
            let word = random.random_range(0..WORDS.len());
            let is_first = self.text.is_empty();
            let cost = match self.gauge {
                Gauge::Words { .. } => 1,
                Gauge::Tokens { counter, .. } => {
                    let cost = counter.cost(word, is_first);
                    if cost > end - self.spent {
                        self.fill(end);
                        return;
                    }
                    cost
                }
            };
            if !is_first {
                self.text.push(' ');
            }
            self.text.push_str(WORDS[word]);
            self.spent += cost;
        }
    }

    /// Fills the rest, for which the next word is too long, token by token.
    fn fill(&mut self, end: u32) {
        if let Gauge::Tokens { counter, .. } = self.gauge {
            let unit = if self.text.is_empty() { counter.unit().trim_start() } else { counter.unit() };
            self.text.push_str(unit);
            for _ in 1..end - self.spent {
                self.text.push_str(counter.unit());
            }
        }
        self.spent = end;
    }

    /// Adds a text as it is.
    pub(crate) fn text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Makes sure of the length.
    pub(crate) fn finish(self) {
        if let Gauge::Tokens { counter, .. } = self.gauge {
            counter.mend(self.text, self.kept, self.spent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTERS: &str = r#"{"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,"decoder":null,
        "pre_tokenizer":{"type":"Split","pattern":{"Regex":"."},"behavior":"Isolated","invert":false},
        "model":{"type":"WordLevel","vocab":{"?":0},"unk_token":"?"}}"#;

    /// Pieces of two words are tokens: words do not add up.
    const JOINED: &str = r#"{"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,"decoder":null,
        "pre_tokenizer":{"type":"Split","pattern":{"Regex":"the of|\\w+|\\W"},"behavior":"Isolated","invert":false},
        "model":{"type":"WordLevel","vocab":{"?":0},"unk_token":"?"}}"#;

    fn counter(text: &str) -> Arc<Counter> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        Arc::new(Counter::load(file.path()).unwrap())
    }

    #[test]
    fn exactly_as_long_as_asked() {
        let bpe = include_str!("../testdata/tokenizer/tokenizer.json");
        for tokenizer in [bpe, LETTERS, JOINED] {
            let counter = counter(tokenizer);
            let gauge = Gauge::of(Calibration::None, Some(counter.clone()));
            let mut text = String::new();
            for seed in 0..40u64 {
                let mut draft = Draft::new(&gauge, &mut text);
                if seed % 2 == 1 {
                    draft.salt(&format!("0199c0de-7a5b-7e91-8f3d-{seed:012x}"));
                }
                let salt = draft.spent;
                let (prefix, end) = (salt + (seed % 7) as u32 * 3, salt + 40 + seed as u32 * 5);
                draft.words(prefix, 5);
                draft.words(end, seed);
                draft.finish();
                assert_eq!(counter.count(&text), Ok(end), "{text}");
            }
        }
    }

    #[test]
    fn a_template_is_left_room_for() {
        let counter = counter(LETTERS);
        let measured = Calibration::Measured { tokens_per_word: 9.0, overhead: 11.2 };
        let gauge = Gauge::of(measured, Some(counter));
        assert_eq!((gauge.room(100), gauge.room(5), gauge.room(0), gauge.part(100)), (89, 1, 0, 100));
        let gauge = Gauge::of(Calibration::Measured { tokens_per_word: 2.0, overhead: 20.0 }, None);
        assert_eq!((gauge.room(500), gauge.room(5), gauge.room(0), gauge.part(100)), (240, 1, 0, 50));
    }
}
