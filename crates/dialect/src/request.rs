//! Requests, written from a dialect's template: path, headers, body.

mod body;
mod messages;
mod parts;
mod template;
mod tools;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};
use toml::Spanned;

pub use body::BodyTemplate;
use messages::{is_system, plain, shaped};
use parts::{Parts, Writer};
use template::{filled, has_place, opened, unknown_place};
use tools::{ToolChoice, are_tools, is_choice};

use crate::error::Problem;
use crate::rules::RequestFile;
use crate::{Dialect, Error};

/// What to ask.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSpec {
    /// The model's name.
    pub model: String,
    /// The prompt.
    pub prompt: Prompt,
    /// Most tokens to generate.
    pub max_tokens: Option<u64>,
    /// Ask the engine to go on to `max_tokens`, where the dialect can say so.
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
    /// A whole conversation as `OpenAI` messages. A string in it that is exactly `{prompt}` is the place that
    /// [`BodyTemplate::fill`] fills.
    Messages(Value),
}

/// The places that a body may have, between braces.
const PLACES: &[&str] = &[
    "model",
    "prompt",
    "messages",
    "system",
    "images",
    "tools",
    "tool_choice",
    "max_tokens",
    "ignore_eos",
    "stream",
];
/// Those of one message.
const OF_MESSAGE: &[&str] =
    &["role", "content", "parts", "images", "tool_calls", "tool_call_id", "tool_name"];

/// The request part of a dialect, checked.
#[derive(Debug)]
pub(crate) struct Request {
    path: String,
    auth: Option<(String, String)>,
    headers: Vec<(String, String)>,
    roles: BTreeMap<String, String>,
    /// What the system says has a place of its own, outside of the messages.
    system_apart: bool,
    /// Messages are sent as they are.
    as_given: bool,
    body: Value,
    parts: Parts,
    tool_choice: ToolChoice,
}

impl Request {
    /// Checks the request part of a dialect file.
    pub(crate) fn new(file: Option<&Spanned<RequestFile>>) -> Result<Self, (usize, Problem)> {
        let nothing = RequestFile::default();
        let (at, file) = file.map_or((0, &nothing), |file| (file.span().start, file.get_ref()));
        let path = file.path.as_ref().ok_or((at, Problem::Missing("path")))?;
        let text = file.body.as_ref().ok_or((at, Problem::Missing("body")))?;
        let position = text.span().start;
        let body: Value = serde_json::from_str(text.get_ref())
            .map_err(|error| (position, Problem::Body(error.to_string())))?;
        let of_elements = |name: &str| match name {
            "messages" => Some(OF_MESSAGE),
            "tools" => Some(tools::OF_TOOL),
            _ => None,
        };
        if let Some(place) = unknown_place(&body, PLACES, &of_elements) {
            return Err((position, Problem::Place(place.to_owned())));
        }

        let auth = match file.auth.as_ref().filter(|text| !text.get_ref().is_empty()) {
            None => None,
            Some(text) => {
                let (name, value) =
                    text.get_ref().split_once(':').ok_or((text.span().start, Problem::Header))?;
                Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            }
        };
        let headers = file.headers.iter().filter(|(_, value)| !value.is_empty());
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        Ok(Self {
            path: path.get_ref().clone(),
            auth,
            headers: headers.collect(),
            roles: file.roles.clone(),
            system_apart: has_place(&body, "system"),
            as_given: has_place(&body, "messages")
                && !OF_MESSAGE.iter().chain(&["system"]).any(|place| has_place(&body, place)),
            body,
            parts: Parts::new(&file.parts)?,
            tool_choice: ToolChoice::new(&file.tool_choice)?,
        })
    }

    /// The body, without the fields that are merged into it, and what could not be written into it.
    fn body(&self, spec: &RequestSpec) -> (Value, Option<String>) {
        let messages = match &spec.prompt {
            Prompt::Text(_) => serde_json::json!([{"role": "user", "content": "{prompt}"}]),
            Prompt::Messages(messages) => messages.clone(),
        };
        let list = messages.as_array().map_or(&[][..], Vec::as_slice);
        let writer = Writer::new(&self.parts, list);
        let lookup = |place: &str, elements: &[Value]| self.value(place, elements, spec, &messages, &writer);
        let body = filled(&self.body, &lookup).unwrap_or_else(|| Value::Object(Map::new()));
        (body, writer.lacks())
    }

    /// The value of one place, if it has one.
    fn value(
        &self,
        place: &str,
        elements: &[Value],
        spec: &RequestSpec,
        messages: &Value,
        writer: &Writer<'_>,
    ) -> Option<Value> {
        let list = || messages.as_array().into_iter().flatten();
        let spoken = || list().filter(|message| !self.system_apart || !is_system(message));
        match place {
            "model" => Some(spec.model.as_str().into()),
            "prompt" => Some(plain(list(), writer, has_place(&self.body, "images")).into()),
            "messages" if !messages.is_array() => Some(opened(messages)),
            "messages" if elements.is_empty() => Some(spoken().map(opened).collect()),
            "messages" => Some(shaped(spoken(), elements, &self.roles, writer).into()),
            "system" => {
                let text = plain(list().filter(|message| is_system(message)), writer, false);
                (!text.is_empty()).then(|| text.into())
            }
            "images" => {
                let images: Vec<Value> = list().flat_map(|message| writer.images(message)).collect();
                (!images.is_empty()).then(|| images.into())
            }
            "tools" => tools::shaped(self.given_tools(spec)?, elements.first()),
            "tool_choice" => self.tool_choice.shaped(self.given_choice(spec)?, writer),
            "max_tokens" => spec.max_tokens.map(Value::from),
            "ignore_eos" => spec.ignore_eos.then_some(Value::Bool(true)),
            _ => spec.stream.then_some(Value::Bool(true)),
        }
    }

    /// The tools among the fields to merge, if they are in `OpenAI`'s shape and the body has a place for them.
    fn given_tools<'a>(&self, spec: &'a RequestSpec) -> Option<&'a Value> {
        let tools = spec.extra.as_ref()?.get("tools").filter(|tools| are_tools(tools));
        tools.filter(|_| has_place(&self.body, "tools"))
    }

    /// The same of what is said about their use.
    fn given_choice<'a>(&self, spec: &'a RequestSpec) -> Option<&'a Value> {
        let choice = spec.extra.as_ref()?.get("tool_choice").filter(|choice| is_choice(choice));
        choice.filter(|_| has_place(&self.body, "tool_choice"))
    }

    /// The fields to merge into the body.
    fn extra(&self, spec: &RequestSpec) -> Option<Value> {
        let mut extra = spec.extra.clone()?;
        if let Value::Object(fields) = &mut extra {
            if self.given_tools(spec).is_some() {
                fields.remove("tools");
            }
            if self.given_choice(spec).is_some() {
                fields.remove("tool_choice");
            }
        }
        Some(extra)
    }
}

impl Dialect {
    /// The path to append to a base URL, such as `/v1/chat/completions`.
    pub fn path(&self, model: &str) -> String {
        self.request.path.replace("{model}", &percent_encoded(model))
    }

    /// The path as the dialect file has it, with `{model}` in it where the path names the model.
    pub fn path_template(&self) -> &str {
        &self.request.path
    }

    /// The headers that the dialect wants: content type, its own, and the key in its shape.
    pub fn headers(&self, key: Option<&str>) -> Vec<(String, String)> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(self.request.headers.iter().cloned());
        if let (Some((name, value)), Some(key)) = (&self.request.auth, key) {
            headers.push((name.clone(), value.replace("{key}", key)));
        }
        headers
    }

    /// Whether the dialect can say all of that: images, tool calls, tools.
    pub fn check(&self, spec: &RequestSpec) -> Result<(), Error> {
        match self.request.body(spec).1 {
            None => Ok(()),
            Some(what) => Err(Error::Unsayable { dialect: self.name().to_owned(), what }),
        }
    }

    /// Whether messages are sent as they are, so that [`Dialect::check`] finds nothing in them.
    pub fn sends_messages_as_given(&self) -> bool {
        self.request.as_given
    }

    /// The body of one request.
    pub fn request_body(&self, spec: &RequestSpec) -> Vec<u8> {
        let prompt = match &spec.prompt {
            Prompt::Text(text) => text.as_str(),
            Prompt::Messages(_) => "{prompt}",
        };
        self.template(spec).fill(prompt)
    }

    /// A template for many requests that differ in the prompt only. A text prompt of the spec is not used; of
    /// messages, the strings that are exactly `{prompt}` are left open. What the dialect cannot say is left out:
    /// [`Dialect::check`] tells.
    pub fn template(&self, spec: &RequestSpec) -> BodyTemplate {
        let (mut body, _) = self.request.body(spec);
        if let Some(extra) = self.request.extra(spec) {
            merge(&mut body, &extra);
        }
        BodyTemplate::new(&body)
    }
}

/// A name as one segment of a path.
fn percent_encoded(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' | b',' => {
                encoded.push(byte as char);
            }
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

/// JSON merge patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(map) = target {
        for (key, value) in patch {
            if value.is_null() {
                map.remove(key);
            } else {
                merge(map.entry(key).or_insert(Value::Null), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn spec(prompt: Prompt) -> RequestSpec {
        RequestSpec {
            model: "m".to_owned(),
            prompt,
            max_tokens: Some(8),
            ignore_eos: false,
            stream: true,
            extra: None,
        }
    }

    fn body(dialect: &str, spec: &RequestSpec) -> Value {
        serde_json::from_slice(&Dialect::builtin(dialect).unwrap().request_body(spec)).unwrap()
    }

    #[test]
    fn chat() {
        let mut spec = spec(Prompt::Text("say \"hi\"\n".to_owned()));
        let mut expected = json!({
            "model": "m", "messages": [{"role": "user", "content": "say \"hi\"\n"}], "max_tokens": 8,
            "stream": true, "stream_options": {"include_usage": true}
        });
        assert_eq!(body("openai-chat", &spec), expected);

        spec.ignore_eos = true;
        spec.extra = Some(json!({"temperature": 0, "stream_options": {"x": 1}, "max_tokens": null}));
        expected["ignore_eos"] = true.into();
        expected["temperature"] = 0.into();
        expected["stream_options"]["x"] = 1.into();
        expected.as_object_mut().unwrap().remove("max_tokens");
        assert_eq!(body("openai-chat", &spec), expected);

        (spec.stream, spec.extra, spec.max_tokens, spec.ignore_eos) = (false, None, None, false);
        let expected = json!({"model": "m", "messages": [{"role": "user", "content": "say \"hi\"\n"}]});
        assert_eq!(body("openai-chat", &spec), expected);
    }

    #[test]
    fn other_dialects() {
        let mut spec = spec(Prompt::Text("hi".to_owned()));
        assert_eq!(body("openai-completions", &spec)["prompt"], "hi");
        spec.max_tokens = None;
        assert_eq!(body("anthropic-messages", &spec)["max_tokens"], 1024);
        assert_eq!(body("ollama-chat", &spec)["stream"], true);
        let headers = Dialect::builtin("anthropic-messages").unwrap().headers(Some("k"));
        assert!(headers.contains(&("x-api-key".to_owned(), "k".to_owned())), "{headers:?}");
    }

    #[test]
    fn messages_with_an_open_place() {
        let messages =
            json!([{"role": "system", "content": "be {prompt}"}, {"role": "user", "content": "{prompt}"}]);
        let spec = spec(Prompt::Messages(messages.clone()));
        assert_eq!(body("openai-chat", &spec)["messages"], messages);
        let template = Dialect::builtin("openai-chat").unwrap().template(&spec);
        let filled: Value = serde_json::from_slice(&template.fill("é")).unwrap();
        assert_eq!(filled["messages"][1]["content"], "é");
        assert_eq!(body("openai-completions", &spec)["prompt"], "be {prompt}\n\n{prompt}");
    }

    #[test]
    fn a_key_goes_where_the_dialect_wants_it() {
        let headers = Dialect::builtin("openai-chat").unwrap().headers(Some("secret"));
        assert!(headers.contains(&("authorization".to_owned(), "Bearer secret".to_owned())));
        assert_eq!(Dialect::builtin("openai-chat").unwrap().headers(None).len(), 1);
    }

    proptest! {
        #[test]
        fn any_prompt_survives(prompt in "(?s).*") {
            let body = body("openai-chat", &spec(Prompt::Text(prompt.clone())));
            prop_assert_eq!(&body["messages"][0]["content"], &Value::from(prompt));
        }
    }
}
