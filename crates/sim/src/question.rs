//! What a request asks for: the JSON body of a chat or completion request, and its prompt counted in tokens.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::random::hash;

/// Tokens that the chat template adds to each message: its role and the marks around it.
const PER_MESSAGE: u32 = 4;
/// Tokens that the chat template adds at the end, to begin the answer.
const PER_CHAT: u32 = 2;

/// The body of a request. Unknown fields are ignored, as vLLM does.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Question<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    pub(crate) prompt: Option<Prompt<'a>>,
    pub(crate) stream: Option<bool>,
    pub(crate) max_tokens: Option<i64>,
    pub(crate) max_completion_tokens: Option<i64>,
    pub(crate) min_tokens: Option<i64>,
    pub(crate) ignore_eos: Option<bool>,
    pub(crate) n: Option<i64>,
    pub(crate) stream_options: Option<StreamOptions>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: Option<bool>,
    pub(crate) continuous_usage_stats: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// A message's text, whole or in parts; parts that are no text count for nothing.
#[derive(Debug)]
struct Content<'a>(Vec<Cow<'a, str>>);

/// Prompts of a completion request.
#[derive(Debug)]
pub(crate) enum Prompt<'a> {
    Texts(Vec<Cow<'a, str>>),
    Tokens(Vec<Vec<i64>>),
}

/// A prompt as the engine sees it.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) tokens: u32,
    /// Running hashes of its full blocks; empty without a prefix cache.
    pub(crate) blocks: Arc<[u64]>,
    /// Hash of the whole.
    pub(crate) hash: u64,
}

impl Question<'_> {
    /// The prompts, counted: one for a chat, one or more for a completion; `None` when there is nothing asked.
    pub(crate) fn count(&self, block_size: Option<u32>) -> Option<Vec<Counted>> {
        if let Some(messages) = &self.messages {
            let mut counter = Counter::new(block_size);
            for message in messages {
                counter.template(message.role.as_bytes(), PER_MESSAGE);
                for text in message.content.iter().flat_map(|content| &content.0) {
                    counter.text(text);
                }
            }
            counter.template(b"assistant", PER_CHAT);
            return Some(vec![counter.finish()]);
        }
        let one = |add: &dyn Fn(&mut Counter)| {
            let mut counter = Counter::new(block_size);
            add(&mut counter);
            counter.finish()
        };
        Some(match self.prompt.as_ref()? {
            Prompt::Texts(texts) => texts.iter().map(|text| one(&|counter| counter.text(text))).collect(),
            Prompt::Tokens(lists) => lists
                .iter()
                .map(|list| one(&|counter| list.iter().for_each(|token| counter.token(&token.to_le_bytes()))))
                .collect(),
        })
    }
}

/// Counts a prompt's tokens and hashes its blocks in one pass.
struct Counter {
    block_size: Option<u32>,
    tokens: u32,
    hash: u64,
    blocks: Vec<u64>,
}

impl Counter {
    fn new(block_size: Option<u32>) -> Self {
        Self { block_size, tokens: 0, hash: 0, blocks: Vec::new() }
    }

    fn token(&mut self, bytes: &[u8]) {
        self.hash = hash(self.hash, bytes);
        self.tokens += 1;
        if self.block_size.is_some_and(|size| self.tokens.is_multiple_of(size)) {
            self.blocks.push(self.hash);
        }
    }

    fn template(&mut self, role: &[u8], tokens: u32) {
        (0..tokens).for_each(|_| self.token(role));
    }

    fn text(&mut self, text: &str) {
        let words = || text.as_bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        if self.block_size.is_some() {
            words().for_each(|word| self.token(word));
        } else {
            self.tokens += words().count() as u32;
            self.hash = hash(self.hash, text.as_bytes());
        }
    }

    /// A prompt is never empty: what begins it counts.
    fn finish(self) -> Counted {
        Counted { tokens: self.tokens.max(1), blocks: self.blocks.into(), hash: self.hash }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content(vec![Cow::Borrowed(text)]))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content(vec![Cow::Owned(text.to_owned())]))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Content(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(borrow, default)]
            text: Option<Cow<'a, str>>,
        }
        let mut texts = Vec::new();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            texts.extend(part.text);
        }
        Ok(Content(texts))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(de::Error::invalid_type(de::Unexpected::Map, &self))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Prompt<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PromptVisitor)
    }
}

struct PromptVisitor;

impl<'de> Visitor<'de> for PromptVisitor {
    type Value = Prompt<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list of texts, a list of token ids, or a list of such lists")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Prompt::Texts(vec![Cow::Borrowed(text)]))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Prompt::Texts(vec![Cow::Owned(text.to_owned())]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Item<'a> {
            Token(i64),
            Text(#[serde(borrow)] Cow<'a, str>),
            Tokens(Vec<i64>),
        }
        let (mut texts, mut lists, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(item) = items.next_element::<Item<'de>>()? {
            match item {
                Item::Token(token) => tokens.push(token),
                Item::Text(text) => texts.push(text),
                Item::Tokens(list) => lists.push(list),
            }
        }
        match (texts.is_empty(), lists.is_empty(), tokens.is_empty()) {
            (_, true, true) => Ok(Prompt::Texts(texts)),
            (true, false, true) => Ok(Prompt::Tokens(lists)),
            (true, true, false) => Ok(Prompt::Tokens(vec![tokens])),
            _ => Err(de::Error::custom("a prompt is of one kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(body: &str, block_size: Option<u32>) -> Vec<Counted> {
        serde_json::from_str::<Question<'_>>(body).unwrap().count(block_size).unwrap()
    }

    #[test]
    fn words_are_counted_in_every_form_of_a_prompt() {
        for (body, tokens) in [
            (r#"{"messages":[{"role":"user","content":"one two  three\nfour"}]}"#, vec![4 + 4 + 2]),
            (
                r#"{"messages":[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b c"},{"type":"image_url","image_url":{"url":"x"}}]}]}"#,
                vec![4 + 1 + 4 + 2 + 2],
            ),
            (r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":1}]}]}"#, vec![6]),
            (r#"{"prompt":"one two","temperature":0,"stop":["x"]}"#, vec![2]),
            (r#"{"prompt":["one two","three"]}"#, vec![2, 1]),
            (r#"{"prompt":[1,2,3]}"#, vec![3]),
            (r#"{"prompt":[[1,2],[3]]}"#, vec![2, 1]),
            (r#"{"prompt":""}"#, vec![1]),
        ] {
            for block_size in [None, Some(4)] {
                let counted: Vec<u32> = count(body, block_size).iter().map(|c| c.tokens).collect();
                assert_eq!(counted, tokens, "{body}");
            }
        }
        assert!(serde_json::from_str::<Question<'_>>("{}").unwrap().count(None).is_none());
        assert!(serde_json::from_str::<Question<'_>>(r#"{"prompt":[1,"a"]}"#).is_err());
        assert!(serde_json::from_str::<Question<'_>>(r#"{"messages":[{"content":{}}]}"#).is_err());
    }

    #[test]
    fn equal_starts_have_equal_blocks() {
        let one = &count(r#"{"prompt":"a b c d e f g h x"}"#, Some(4))[0];
        let two = &count(r#"{"prompt":"a b c d e f g y"}"#, Some(4))[0];
        assert_eq!((one.blocks.len(), two.blocks.len()), (2, 2));
        assert_eq!(one.blocks[0], two.blocks[0]);
        assert_ne!(one.blocks[1], two.blocks[1]);
    }
}
