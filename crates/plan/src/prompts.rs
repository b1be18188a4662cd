//! The prompts of a workload: one text, made-up words, or a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use ttft_model::Prompt;

use crate::words::WORDS;

/// A file of prompts that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// It cannot be read.
    #[error("cannot read prompts from {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of JSON holds no prompt.
    #[error("{path}, line {line}: {why}; each line needs a `prompt` (text) or `messages` (a list)")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing in it.
    #[error("{0} holds no prompt")]
    Empty(PathBuf),
}

/// One prompt of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// One user message.
    Text(String),
    /// A conversation as `OpenAI` messages.
    Messages(Value),
}

/// Where the prompts of a workload come from, loaded.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompts {
    /// The same text for all.
    Fixed(String),
    /// This many words, different for every number.
    Words {
        /// How many.
        words: u32,
        /// Chooses them.
        seed: u64,
    },
    /// Taken in turn.
    List(Vec<Item>),
}

impl Prompts {
    /// Loads what a plan names.
    pub fn load(prompt: &Prompt, seed: u64) -> Result<Self, PromptError> {
        match prompt {
            Prompt::Text(text) => Ok(Self::Fixed(text.clone())),
            Prompt::Tokens(words) => Ok(Self::Words { words: *words, seed }),
            Prompt::File(path) => read_file(Path::new(path)).map(Self::List),
        }
    }

    /// Writes prompt number `number` to `text`, replacing what was there. With a salt, which counts as one of the
    /// words, no two prompts share a beginning. A conversation is returned instead of written.
    pub fn write(&self, number: u64, salt: Option<&str>, text: &mut String) -> Option<&Value> {
        text.clear();
        if let Some(salt) = salt {
            // Writing to a String cannot fail.
            let _ = write!(text, "[{salt}] ");
        }
        match self {
            Self::Fixed(fixed) => text.push_str(fixed),
            Self::Words { words, seed } => {
                push_words(text, *words - u32::from(salt.is_some()).min(*words), seed ^ number);
            }
            Self::List(items) => match &items[(number % items.len() as u64) as usize] {
                Item::Text(item) => text.push_str(item),
                Item::Messages(messages) => return Some(messages),
            },
        }
        None
    }
}

fn push_words(text: &mut String, words: u32, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    text.reserve(words as usize * 6);
    for i in 0..words {
        if i > 0 {
            text.push(' ');
        }
        text.push_str(WORDS[random.random_range(0..WORDS.len())]);
    }
}

fn read_file(path: &Path) -> Result<Vec<Item>, PromptError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| PromptError::Read { path: path.to_owned(), source })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let is_json = path.extension().is_some_and(|e| e == "jsonl" || e == "ndjson");
    let items: Result<Vec<Item>, PromptError> = lines
        .map(|(i, line)| {
            if is_json {
                parse_line(line).map_err(|why| PromptError::Line { path: path.to_owned(), line: i + 1, why })
            } else {
                Ok(Item::Text(line.to_owned()))
            }
        })
        .collect();
    let items = items?;
    if items.is_empty() { Err(PromptError::Empty(path.to_owned())) } else { Ok(items) }
}

fn parse_line(line: &str) -> Result<Item, String> {
    let mut value: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
    match (value.get("messages"), value.get("prompt").and_then(Value::as_str)) {
        (Some(Value::Array(_)), _) => Ok(Item::Messages(value["messages"].take())),
        (_, Some(prompt)) => Ok(Item::Text(prompt.to_owned())),
        _ => Err("no prompt in this line".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn written(prompts: &Prompts, number: u64, salt: Option<&str>) -> String {
        let mut text = String::new();
        assert!(prompts.write(number, salt, &mut text).is_none());
        text
    }

    #[test]
    fn words_have_the_asked_length_with_and_without_salt() {
        let prompts = Prompts::Words { words: 40, seed: 7 };
        assert_eq!(written(&prompts, 0, None).split_whitespace().count(), 40);
        assert_eq!(written(&prompts, 0, Some("0199")).split_whitespace().count(), 40);
        assert!(written(&prompts, 0, Some("0199")).starts_with("[0199] "));
        assert_eq!(written(&prompts, 3, None), written(&prompts, 3, None));
        assert_ne!(written(&prompts, 3, None), written(&prompts, 4, None));
        assert_eq!(written(&Prompts::Words { words: 0, seed: 7 }, 0, None), "");
    }

    #[test]
    fn reads_files_in_turn() {
        let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
        file.write_all(b"{\"prompt\":\"one\"}\r\n\n{\"messages\":[{\"role\":\"user\",\"content\":\"two\"}]}")
            .unwrap();
        let prompts = Prompts::load(&Prompt::File(file.path().display().to_string()), 0).unwrap();
        assert_eq!(written(&prompts, 2, None), "one");
        assert!(prompts.write(1, None, &mut String::new()).is_some_and(Value::is_array));

        let mut bad = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
        bad.write_all(b"{\"prompt\":\"one\"}\n{\"text\":1}").unwrap();
        let error = Prompts::load(&Prompt::File(bad.path().display().to_string()), 0).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
