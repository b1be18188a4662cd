//! Requests, written from a dialect's template: path, headers, body.

mod messages;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};
use toml::Spanned;

use messages::{is_system, opened, plain, text_of};

use crate::Dialect;
use crate::error::Problem;
use crate::rules::RequestFile;

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

/// Stands for the prompt while a body is serialised; a prompt cannot hold it by accident.
const OPEN_PLACE: &str = "\u{0}\u{1}prompt\u{0}";

/// The places that a template may have, between braces.
const PLACES: &[&str] =
    &["model", "prompt", "messages", "system", "role", "content", "max_tokens", "ignore_eos", "stream"];

/// A body with an open place for the prompt, to make many bodies cheaply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyTemplate {
    /// The JSON text before, between and after the places of the prompt.
    parts: Vec<Box<[u8]>>,
}

impl BodyTemplate {
    /// The body with that prompt: one allocation, unless the prompt is full of characters that JSON escapes.
    pub fn fill(&self, prompt: &str) -> Vec<u8> {
        let fixed: usize = self.parts.iter().map(|part| part.len()).sum();
        let places = self.parts.len().saturating_sub(1);
        // Most text grows by the escapes of its line ends and quotes alone.
        let mut body = Vec::with_capacity(fixed + places * (prompt.len() + prompt.len() / 8 + 16));
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                escape(&mut body, prompt);
            }
            body.extend_from_slice(part);
        }
        body
    }
}

/// The request part of a dialect, checked.
#[derive(Debug)]
pub(crate) struct Request {
    path: String,
    auth: Option<(String, String)>,
    headers: Vec<(String, String)>,
    roles: BTreeMap<String, String>,
    /// What the system says has a place of its own, outside of the messages.
    system_apart: bool,
    body: Value,
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
        check_places(&body).map_err(|place| (position, Problem::Place(place)))?;

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
            system_apart: text.get_ref().contains("\"{system}\""),
            body,
        })
    }

    /// A template's value with its places filled. A place without a value vanishes, and so does an object or a
    /// list that is left empty by it.
    fn place(&self, template: &Value, spec: &RequestSpec) -> Option<Value> {
        match template {
            Value::String(text) => match place_of(text) {
                None => Some(template.clone()),
                Some((name, default)) => self.fill(name, spec).or_else(|| {
                    default.map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.into()))
                }),
            },
            Value::Array(list) => match list.as_slice() {
                [Value::String(text), message] if text == "{messages}" => {
                    let messages = self.fill("messages", spec)?;
                    Some(messages.as_array()?.iter().map(|own| self.message(message, own)).collect())
                }
                list => {
                    let filled: Vec<Value> =
                        list.iter().filter_map(|value| self.place(value, spec)).collect();
                    (!filled.is_empty() || list.is_empty()).then_some(Value::Array(filled))
                }
            },
            Value::Object(map) => {
                let filled: Map<String, Value> = map
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), self.place(value, spec)?)))
                    .collect();
                (!filled.is_empty() || map.is_empty()).then_some(Value::Object(filled))
            }
            other => Some(other.clone()),
        }
    }

    /// The value of one place, if it has one.
    fn fill(&self, name: &str, spec: &RequestSpec) -> Option<Value> {
        match name {
            "model" => Some(spec.model.as_str().into()),
            "prompt" => Some(match &spec.prompt {
                Prompt::Text(_) => OPEN_PLACE.into(),
                Prompt::Messages(messages) => plain(messages, |_| true).into(),
            }),
            "messages" => Some(match &spec.prompt {
                Prompt::Text(_) => serde_json::json!([{"role": "user", "content": OPEN_PLACE}]),
                Prompt::Messages(messages) => match messages.as_array() {
                    Some(list) if self.system_apart => {
                        list.iter().filter(|message| !is_system(message)).map(opened).collect()
                    }
                    _ => opened(messages),
                },
            }),
            "system" => match &spec.prompt {
                Prompt::Text(_) => None,
                Prompt::Messages(messages) => {
                    Some(plain(messages, is_system)).filter(|text| !text.is_empty()).map(Value::from)
                }
            },
            "max_tokens" => spec.max_tokens.map(Value::from),
            "ignore_eos" => spec.ignore_eos.then_some(Value::Bool(true)),
            _ => spec.stream.then_some(Value::Bool(true)),
        }
    }

    /// One message in the dialect's own shape.
    fn message(&self, template: &Value, message: &Value) -> Value {
        match template {
            Value::String(text) if text == "{role}" => {
                let role = message["role"].as_str().unwrap_or("user");
                self.roles.get(role).map_or(role, String::as_str).into()
            }
            Value::String(text) if text == "{content}" => text_of(&message["content"]).into(),
            Value::Array(list) => list.iter().map(|value| self.message(value, message)).collect(),
            Value::Object(map) => Value::Object(
                map.iter().map(|(key, value)| (key.clone(), self.message(value, message))).collect(),
            ),
            other => other.clone(),
        }
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

    /// The body of one request.
    pub fn request_body(&self, spec: &RequestSpec) -> Vec<u8> {
        let prompt = match &spec.prompt {
            Prompt::Text(text) => text.as_str(),
            Prompt::Messages(_) => "{prompt}",
        };
        self.template(spec).fill(prompt)
    }

    /// A template for many requests that differ in the prompt only. A text prompt of the spec is not used; of
    /// messages, the strings that are exactly `{prompt}` are left open.
    pub fn template(&self, spec: &RequestSpec) -> BodyTemplate {
        let mut body =
            self.request.place(&self.request.body, spec).unwrap_or_else(|| Value::Object(Map::new()));
        if let Some(extra) = &spec.extra {
            merge(&mut body, extra);
        }
        let text = body.to_string();
        let mut open = Value::from(OPEN_PLACE).to_string();
        open.pop();
        let parts = text.split(&open[1..]).map(|part| part.as_bytes().into()).collect();
        BodyTemplate { parts }
    }
}

/// The first unknown place of a template, if there is one.
fn check_places(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => match place_of(text) {
            Some((name, _)) if !PLACES.contains(&name) => Err(name.to_owned()),
            _ => Ok(()),
        },
        Value::Array(list) => list.iter().try_for_each(check_places),
        Value::Object(map) => map.values().try_for_each(check_places),
        _ => Ok(()),
    }
}

/// The name and default of a string that is a place: `{name}` or `{name|default}`.
fn place_of(text: &str) -> Option<(&str, Option<&str>)> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    Some(inner.split_once('|').map_or((inner, None), |(name, default)| (name, Some(default))))
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

/// Appends a text as the inside of a JSON string.
fn escape(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut from = 0;
    for (i, byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => *byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => 0,
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..i]);
        from = i + 1;
        if short == 0 {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        } else {
            out.extend([b'\\', short]);
        }
    }
    out.extend_from_slice(&bytes[from..]);
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
