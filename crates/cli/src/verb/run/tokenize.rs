//! A server's own `/tokenize`: what it counts for a prompt, its chat template included.

use serde_json::{Value, json};
use ttft_drive::post;
use ttft_model::Endpoint;
use ttft_plan::root_url;
use ttft_wire::Target;

use crate::endpoint::Reached;
use crate::model;

/// The token ids of a short prompt are never more bytes.
const LIMIT: usize = 1 << 20;

/// Dialects of engines that have it.
const CHAT: &str = "openai-chat";
const COMPLETIONS: &str = "openai-completions";

/// A server that may have it.
pub(super) struct Tokenize<'a> {
    reached: &'a Reached,
    endpoint: &'a Endpoint,
    is_chat: bool,
}

impl<'a> Tokenize<'a> {
    /// Of an endpoint whose dialect is one of those engines'.
    pub(super) fn of(reached: &'a Reached, endpoint: &'a Endpoint) -> Option<Self> {
        let name = reached.dialect.name();
        let is_known = name == CHAT || name == COMPLETIONS;
        is_known.then_some(Self { reached, endpoint, is_chat: name == CHAT })
    }

    /// The tokens of a prompt as the engine would read it; `None` where the server does not answer as one that counts.
    pub(super) fn count(&self, text: &str) -> Option<u64> {
        let model = self.endpoint.model.as_deref();
        let messages = json!([{"role": "user", "content": text}]);
        // vLLM and those like it.
        let question = if self.is_chat {
            json!({"model": model, "messages": messages, "add_generation_prompt": true})
        } else {
            json!({"model": model, "prompt": text})
        };
        let answer = self.ask("tokenize", &question)?;
        if let Some(count) = answer["count"].as_u64().filter(|count| *count > 0) {
            return Some(count);
        }
        // llama.cpp finds nothing in that question, and answers it.
        answer["tokens"].as_array()?;
        let text = if self.is_chat {
            self.ask("apply-template", &json!({"messages": messages}))?["prompt"].as_str()?.to_owned()
        } else {
            text.to_owned()
        };
        let answer = self.ask("tokenize", &json!({"content": text, "add_special": true}))?;
        answer["tokens"].as_array().map(|tokens| tokens.len() as u64).filter(|count| *count > 0)
    }

    fn ask(&self, what: &str, question: &Value) -> Option<Value> {
        let (reached, endpoint) = (self.reached, self.endpoint);
        let path = reached.dialect.path(endpoint.model.as_deref().unwrap_or_default());
        let target = Target::parse(&root_url(&reached.url, &path, what).ok()?).ok()?;
        let headers = model::headers(reached, endpoint);
        let body = question.to_string().into_bytes();
        let (status, body) = post(&target, &reached.connect, &endpoint.resolve, headers, body, LIMIT).ok()?;
        (status == 200).then(|| serde_json::from_slice(&body).ok())?
    }
}
