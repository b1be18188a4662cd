//! The known formats, and how a record's fields tell one.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A format of prompts or traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Mooncake's JSON lines: `timestamp` in ms, `input_length`, `output_length`, `hash_ids`.
    Mooncake,
    /// Azure's LLM inference traces of 2023 and 2024: csv with `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`.
    Azure,
    /// `BurstGPT`: csv with `Timestamp` in seconds, `Request tokens`, `Response tokens`.
    BurstGpt,
    /// `ShareGPT`: `conversations` of `from` and `value`.
    ShareGpt,
    /// `OpenAI` style: `messages` of `role` and `content`.
    Messages,
    /// `AIPerf`'s own JSON lines: `text`, `texts`, `text_input` or `turns`; `timestamp` in ms.
    AiPerf,
    /// `GuideLLM`'s JSON lines: `prompt`, `output_tokens_count`; `timestamp` in seconds.
    GuideLlm,
    /// vLLM's custom JSON lines: `prompt`, `output_tokens`.
    Vllm,
    /// JSON lines with nothing but a `prompt`.
    Prompts,
    /// A prompt a line.
    Text,
}

/// Each format with its name in flags and its name in answers.
const NAMES: [(Format, &str, &str); 10] = [
    (Format::Mooncake, "mooncake", "mooncake"),
    (Format::Azure, "azure", "azure-llm-inference-2023/2024"),
    (Format::BurstGpt, "burstgpt", "burstgpt"),
    (Format::ShareGpt, "sharegpt", "sharegpt"),
    (Format::Messages, "messages", "openai-messages"),
    (Format::AiPerf, "aiperf", "aiperf"),
    (Format::GuideLlm, "guidellm", "guidellm"),
    (Format::Vllm, "vllm", "vllm-custom"),
    (Format::Prompts, "prompts", "prompts-jsonl"),
    (Format::Text, "text", "text"),
];

impl Format {
    /// Its name in flags and plans.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(format, ..)| *format == self).map_or("", |(_, name, _)| name)
    }

    /// Its name in answers, which says which file it is.
    pub fn title(self) -> &'static str {
        NAMES.iter().find(|(format, ..)| *format == self).map_or("", |(.., title)| title)
    }

    /// Whether its files are tables of comma-separated values.
    pub(crate) const fn is_csv(self) -> bool {
        matches!(self, Self::Azure | Self::BurstGpt)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.to_ascii_lowercase();
        let found = NAMES.iter().find(|(_, name, title)| *name == wanted || *title == wanted);
        found.map(|(format, ..)| *format).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(_, name, _)| *name).collect();
            format!("there is no format `{text}`; there are {}", names.join(", "))
        })
    }
}

/// Names under which files keep the length of a prompt in tokens.
pub(crate) const INPUT: [&str; 6] =
    ["input_length", "prompt_tokens_count", "input_tokens", "prompt_tokens", "input_len", "prompt_len"];

/// Names under which files keep the length of an answer in tokens.
pub(crate) const OUTPUT: [&str; 9] = [
    "output_length",
    "output_tokens_count",
    "output_tokens",
    "completion_tokens",
    "output_len",
    "expected_output_len",
    "max_completion_tokens",
    "max_tokens",
    "max_output_tokens",
];

/// Names under which files keep the text of a prompt.
pub(crate) const PROMPT: [&str; 7] =
    ["prompt", "text_input", "text", "texts", "question", "instruction", "input"];

/// The format that a JSON record's fields tell.
pub(crate) fn of_json(record: &Value) -> Result<Format, String> {
    let Value::Object(map) = record else {
        return Err("it is no JSON object".to_owned());
    };
    let has = |names: &[&str]| names.iter().any(|name| map.contains_key(*name));
    Ok(if has(&["conversations", "conversation"]) {
        Format::ShareGpt
    } else if has(&["turns", "text", "texts", "text_input"]) {
        Format::AiPerf
    } else if has(&["messages", "body"]) {
        Format::Messages
    } else if has(&PROMPT) {
        match () {
            () if has(&["output_tokens_count", "prompt_tokens_count"]) => Format::GuideLlm,
            () if has(&OUTPUT) => Format::Vllm,
            () => Format::Prompts,
        }
    } else if has(&INPUT) {
        Format::Mooncake
    } else {
        let names: Vec<&str> = map.keys().take(8).map(String::as_str).collect();
        return Err(format!(
            "no known field; a prompt is `prompt`, `messages`, `conversations`, `text` or `turns`, a length \
             `input_length` or `prompt_tokens`; there are: {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ));
    })
}
