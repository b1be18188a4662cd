//! Request bodies, written from a dialect's template.

use serde_json::Value;

use crate::Dialect;

/// What to ask.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSpec {
    /// The model's name.
    pub model: String,
    /// The prompt.
    pub prompt: Prompt,
    /// Most tokens to generate.
    pub max_tokens: Option<u64>,
    /// Ask the engine to go on to `max_tokens` where the dialect can say so.
    pub ignore_eos: bool,
    /// Ask for a stream.
    pub stream: bool,
    /// Fields to merge into the body (JSON merge patch: objects merge, null removes).
    pub extra: Option<Value>,
}

/// The prompt of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// One user message.
    Text(String),
    /// A whole conversation as `OpenAI` messages. A string that is exactly `{prompt}` is the place that
    /// [`BodyTemplate::fill`] fills.
    Messages(Value),
}

/// A body with one open place for the prompt, to make many bodies cheaply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyTemplate {
    parts: Vec<Vec<u8>>,
}

impl BodyTemplate {
    /// The body with that prompt.
    pub fn fill(&self, prompt: &str) -> Vec<u8> {
        self.parts.join(prompt.as_bytes())
    }
}

impl Dialect {
    /// The body of one request.
    pub fn request_body(&self, spec: &RequestSpec) -> Vec<u8> {
        spec.model.clone().into_bytes()
    }

    /// A template for many requests that differ in the prompt only.
    pub fn template(&self, spec: &RequestSpec) -> BodyTemplate {
        BodyTemplate { parts: vec![self.request_body(spec)] }
    }
}
