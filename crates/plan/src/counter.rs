//! Tokens counted as the server counts them: a `tokenizer.json`, and what each of our words costs by it.
//!
//! Tokenizers of today's models never let a token reach from one word into the next, so the tokens of a prompt are the
//! sum of those of its words, and a prompt of an exact length is made without counting it as a whole. That is checked
//! for every pair of our words when the file is loaded; with a tokenizer of another kind each prompt is counted, and
//! mended.

use std::io::Read as _;
use std::path::Path;

use tokenizers::Tokenizer;

use crate::dataset::DatasetError;
use crate::words::WORDS;

/// A word that others stand behind while they are weighed.
const ANCHOR: &str = "the";

/// What a salt looks like.
const SALT: &str = "[0199c0de-7a5b-7e91-8f3d-26c4b7d0a5f1]";

/// What may be one token behind any word, in the order of liking.
const UNITS: [&str; 8] = [" a", " I", ".", ",", "!", "~", "-", "\n"];

/// Bytes of a file; the largest known ones have some 40 MiB.
const LARGEST: u64 = 256 << 20;

/// Most rounds of mending a prompt.
const ROUNDS: u32 = 40;

/// A tokenizer, and the weights of our words.
#[derive(Debug)]
pub struct Counter {
    tokenizer: Tokenizer,
    /// Of each of [`WORDS`].
    costs: Vec<Cost>,
    /// A text of one token behind any word.
    unit: String,
    /// Tokens of a text are those of its words.
    is_additive: bool,
}

/// Tokens of a word.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// At the front of a text.
    first: u32,
    /// Behind a space.
    behind: u32,
}

impl Counter {
    /// Loads a `tokenizer.json` and weighs our words.
    pub fn load(path: &Path) -> Result<Self, DatasetError> {
        let cannot_read = |source| DatasetError::Read { path: path.to_owned(), source };
        let cannot_use = |why| DatasetError::Tokenizer { path: path.to_owned(), why };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(cannot_read)?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
        if bytes.len() as u64 > LARGEST {
            return Err(cannot_use(format!("it is larger than {} MiB", LARGEST >> 20)));
        }
        // The library takes the parts of a file at their word, and panics where they do not fit.
        let counter = std::panic::catch_unwind(|| Self::of(&bytes));
        counter.unwrap_or_else(|_| Err("its parts do not fit together".to_owned())).map_err(cannot_use)
    }

    fn of(bytes: &[u8]) -> Result<Self, String> {
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|e| e.to_string())?;
        // A file may cut texts, or fill them up: neither would count them.
        tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
        tokenizer.with_padding(None);
        let mut counter = Self { tokenizer, costs: Vec::new(), unit: String::new(), is_additive: true };
        counter.costs = WORDS.iter().map(|word| counter.weigh(word)).collect::<Result<_, _>>()?;
        counter.unit = counter.find_unit()?;
        counter.is_additive = counter.sums_up()?;
        Ok(counter)
    }

    /// Tokens of a text, without those that a chat template or the model puts around it.
    pub fn count(&self, text: &str) -> Result<u32, String> {
        let encoded = self.tokenizer.encode_fast(text, false).map_err(|e| e.to_string())?;
        Ok(encoded.len() as u32)
    }

    fn weigh(&self, word: &str) -> Result<Cost, String> {
        let behind = self.count(&format!("{ANCHOR} {word}"))?.saturating_sub(self.count(ANCHOR)?);
        Ok(Cost { first: self.count(word)?, behind })
    }

    fn find_unit(&self) -> Result<String, String> {
        let words = WORDS.iter().zip(&self.costs).filter(|(_, cost)| cost.behind == 1);
        let words = words.map(|(word, _)| format!(" {word}"));
        for unit in words.chain(UNITS.map(str::to_owned)) {
            let some = self.count(&format!("{ANCHOR}{}", unit.repeat(4)))?;
            if some == self.count(ANCHOR)? + 4 {
                return Ok(unit);
            }
        }
        Err("no word and no sign is one token by it, so that exact lengths cannot be made".to_owned())
    }

    /// Whether the tokens of words add up, for every pair of ours and behind a salt.
    fn sums_up(&self) -> Result<bool, String> {
        // Every pair once: 0 0 1 0 2 … 0 n, 1 1 2 1 3 … 1 n, …, and each row's end meets the next one's beginning.
        let count = WORDS.len();
        let row = |i: usize| std::iter::once(i).chain((i + 1..count).flat_map(move |j| [i, j]));
        let pairs: Vec<usize> = (0..count).flat_map(row).collect();
        let texts: Vec<&str> = pairs.iter().map(|word| WORDS[*word]).collect();
        let behind: u32 = pairs.iter().skip(1).map(|word| self.costs[*word].behind).sum();
        if self.count(&texts.join(" "))? != self.costs[0].first + behind {
            return Ok(false);
        }
        let salt = self.count(SALT)?;
        for (word, cost) in WORDS.iter().zip(&self.costs) {
            if self.count(&format!("{SALT} {word}"))? != salt + cost.behind {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tokens of word number `word`, at the front of a text or behind a space.
    pub(crate) fn cost(&self, word: usize, is_first: bool) -> u32 {
        let cost = self.costs[word];
        if is_first { cost.first } else { cost.behind }
    }

    /// A text of one token behind any word.
    pub(crate) fn unit(&self) -> &str {
        &self.unit
    }

    /// Makes `text` exactly `tokens` long, if words do not simply add up; its first `kept` bytes stay as they are.
    pub(crate) fn mend(&self, text: &mut String, kept: usize, tokens: u32) {
        if self.is_additive {
            return;
        }
        for _ in 0..ROUNDS {
            let Ok(counted) = self.count(text) else { return };
            match counted.cmp(&tokens) {
                std::cmp::Ordering::Equal => return,
                std::cmp::Ordering::Less => {
                    text.push_str(&self.unit.repeat((tokens - counted) as usize));
                }
                std::cmp::Ordering::Greater => {
                    let last = text[kept..].rfind(' ').map_or(kept, |space| kept + space);
                    if last == text.len() {
                        return;
                    }
                    text.truncate(last);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte-level BPE in which some of our words are one token, and some are several.
    const BPE: &[u8] = include_bytes!("../testdata/tokenizer/tokenizer.json");

    #[test]
    fn words_are_weighed() {
        let counter = Counter::of(BPE).unwrap();
        assert!(counter.is_additive);
        let costs: Vec<u32> = (0..WORDS.len()).map(|word| counter.cost(word, false)).collect();
        assert!(costs.contains(&1) && costs.iter().any(|cost| *cost > 3), "{costs:?}");
        assert_eq!(counter.count(counter.unit()), Ok(1));
        assert_eq!(counter.count(""), Ok(0));
    }

    #[test]
    fn a_token_may_be_a_letter_or_a_word() {
        let letters = r#"{"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,"decoder":null,
            "pre_tokenizer":{"type":"Split","pattern":{"Regex":"."},"behavior":"Isolated","invert":false},
            "model":{"type":"WordLevel","vocab":{"?":0},"unk_token":"?"}}"#;
        let counter = Counter::of(letters.as_bytes()).unwrap();
        assert!(counter.is_additive);
        assert_eq!((counter.cost(0, true), counter.cost(0, false), counter.unit()), (3, 4, "."));
        let words = letters.replace(
            r#""Split","pattern":{"Regex":"."},"behavior":"Isolated","invert":false"#,
            r#""Whitespace""#,
        );
        let counter = Counter::of(words.as_bytes()).unwrap();
        assert_eq!((counter.cost(0, true), counter.cost(0, false), counter.unit()), (1, 1, " the"));
    }

    #[test]
    fn what_is_no_tokenizer() {
        for bytes in [&b"{}"[..], b"", b"{\"model\": 1}", b"[1]"] {
            assert!(Counter::of(bytes).is_err());
        }
        let mut misfit = tempfile::NamedTempFile::new().unwrap();
        let text = r#"{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a","a a","a a"]}}"#;
        std::io::Write::write_all(&mut misfit, text.as_bytes()).unwrap();
        let error = Counter::load(misfit.path()).unwrap_err();
        assert!(error.to_string().contains("cannot be used as a tokenizer.json"), "{error}");
        let error = Counter::load(Path::new("nowhere.json")).unwrap_err();
        assert!(error.to_string().contains("cannot read nowhere.json"), "{error}");
    }
}
