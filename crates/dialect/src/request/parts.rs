//! What a message holds beside its text, images and tool calls, in a dialect's own shape.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;
use toml::Spanned;

use super::body::OPEN_PLACE;
use super::template::{filled, opened, unknown_place};
use crate::error::Problem;
use crate::rules::PartsFile;

const OF_TEXT: &[&str] = &["text"];
const OF_IMAGE: &[&str] = &["url", "media_type", "format", "data", "detail"];
const OF_CALL: &[&str] = &["id", "name", "arguments", "arguments_text"];
const OF_RESULT: &[&str] = &["id", "name", "text"];

/// The shapes of parts. What has none cannot be sent, but for texts, which are sent as they are.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) text: Option<Value>,
    pub(super) answer: Option<Value>,
    pub(super) image_data: Option<Value>,
    pub(super) image_url: Option<Value>,
    pub(super) image_in_text: Option<String>,
    pub(super) tool_call: Option<Value>,
    pub(super) tool_result: Option<Value>,
    /// Tool calls and their results stand among the messages, not in them.
    pub(super) tools_apart: bool,
}

impl Parts {
    pub(super) fn new(file: &PartsFile) -> Result<Self, (usize, Problem)> {
        Ok(Self {
            text: shape(file.text.as_ref(), OF_TEXT)?,
            answer: shape(file.answer.as_ref(), OF_TEXT)?,
            image_data: shape(file.image_data.as_ref(), OF_IMAGE)?,
            image_url: shape(file.image_url.as_ref(), OF_IMAGE)?,
            image_in_text: file.image_in_text.clone().filter(|text| !text.is_empty()),
            tool_call: shape(file.tool_call.as_ref(), OF_CALL)?,
            tool_result: shape(file.tool_result.as_ref(), OF_RESULT)?,
            tools_apart: file.tools_apart.unwrap_or(false),
        })
    }
}

/// A template of a part; none where it is empty.
pub(super) fn shape(
    text: Option<&Spanned<String>>,
    places: &[&str],
) -> Result<Option<Value>, (usize, Problem)> {
    let Some(text) = text.filter(|text| !text.get_ref().is_empty()) else { return Ok(None) };
    let position = text.span().start;
    let template: Value = serde_json::from_str(text.get_ref())
        .map_err(|error| (position, Problem::Template(error.to_string())))?;
    match unknown_place(&template, places, &|_| None) {
        Some(place) => Err((position, Problem::Place(place.to_owned()))),
        None => Ok(Some(template)),
    }
}

/// One kind of part of a content.
pub(super) enum Part<'a> {
    Text(&'a str),
    Image(&'a str, &'a Value),
    Other(&'a Value),
}

/// What a part is, in the words of either of `OpenAI`'s interfaces.
pub(super) fn part_of(part: &Value) -> Part<'_> {
    match part["type"].as_str() {
        Some("text" | "input_text" | "output_text") => match part["text"].as_str() {
            Some(text) => Part::Text(text),
            None => Part::Other(part),
        },
        Some("image_url" | "input_image") => {
            let image = &part["image_url"];
            match image.as_str().or_else(|| image["url"].as_str()) {
                Some(url) => {
                    Part::Image(url, if image.is_object() { &image["detail"] } else { &part["detail"] })
                }
                None => Part::Other(part),
            }
        }
        _ => part.as_str().map_or(Part::Other(part), Part::Text),
    }
}

/// A text, with `{prompt}` made the open place.
pub(super) fn open_text(text: &str) -> &str {
    if text == "{prompt}" { OPEN_PLACE } else { text }
}

/// Writes parts, and notes what it has no shape for.
pub(super) struct Writer<'a> {
    pub(super) parts: &'a Parts,
    /// The name of the function of each call so far, by the call's id.
    names: HashMap<&'a str, &'a str>,
    lacks: RefCell<Option<String>>,
}

impl<'a> Writer<'a> {
    /// A writer for those messages.
    pub(super) fn new(parts: &'a Parts, messages: &'a [Value]) -> Self {
        let calls = messages.iter().flat_map(calls_of);
        let names = calls
            .filter_map(|call| Some((call["id"].as_str()?, call["function"]["name"].as_str()?)))
            .collect();
        Self { parts, names, lacks: RefCell::new(None) }
    }

    /// The first thing that could not be written.
    pub(super) fn lacks(self) -> Option<String> {
        self.lacks.into_inner()
    }

    /// Notes what cannot be written.
    pub(super) fn lack(&self, what: impl Into<String>) {
        self.lacks.borrow_mut().get_or_insert_with(|| what.into());
    }

    /// One image.
    pub(super) fn image(&self, url: &str, detail: &Value) -> Option<Value> {
        let data = data_of(url);
        let from_web = url.starts_with("http://") || url.starts_with("https://");
        let template = match (&data, from_web) {
            (Some(_), _) => &self.parts.image_data,
            (None, true) => &self.parts.image_url,
            (None, false) => {
                self.lack("an image that is neither an http URL nor a data: URL with base64");
                return None;
            }
        };
        let Some(template) = template else {
            self.lack(match (from_web, &self.parts.image_data) {
                (true, Some(_)) => "images by http URL (give them as data: URLs)",
                _ => "images",
            });
            return None;
        };
        let media_type = data.map(|(media_type, _)| media_type).or_else(|| media_type_of(url));
        filled(template, &|place, _| match place {
            "url" => Some(url.into()),
            "data" => data.map(|(_, data)| data.into()),
            "media_type" => media_type.map(Value::from),
            "format" => media_type
                .and_then(|name| name.split_once('/'))
                .map(|(_, format)| if format == "jpg" { "jpeg".into() } else { format.into() }),
            _ => Some(detail.clone()).filter(|detail| !detail.is_null()),
        })
    }

    /// The images of a message.
    pub(super) fn images(&self, message: &Value) -> Vec<Value> {
        let parts = message["content"].as_array().into_iter().flatten();
        parts
            .filter_map(|part| match part_of(part) {
                Part::Image(url, detail) => self.image(url, detail),
                _ => None,
            })
            .collect()
    }

    /// The text of a message; `alone` if nothing else of its content is written elsewhere.
    pub(super) fn text(&self, message: &Value, alone: bool) -> String {
        match &message["content"] {
            Value::String(text) => open_text(text).to_owned(),
            Value::Array(parts) => {
                let piece = |part| match (part_of(part), &self.parts.image_in_text) {
                    (Part::Text(text), _) => open_text(text).to_owned(),
                    (Part::Image(url, _), Some(shape)) if alone => shape.replace("{url}", url),
                    (Part::Image(..), _) if !alone => String::new(),
                    (Part::Image(..), _) => {
                        self.lack("images");
                        String::new()
                    }
                    (Part::Other(part), _) => {
                        let kind = part["type"].as_str().unwrap_or("?");
                        self.lack(format!("parts of the type `{}`", kind.escape_default()));
                        String::new()
                    }
                };
                parts.iter().map(piece).collect()
            }
            _ => String::new(),
        }
    }

    /// What a message's content holds as parts. One of a type that is not known is sent as it is.
    pub(super) fn content(&self, message: &Value) -> Vec<Value> {
        let answer = self.parts.answer.as_ref().filter(|_| message["role"] == "assistant");
        let template = answer.or(self.parts.text.as_ref());
        let text =
            |text: &str| template.and_then(|template| filled(template, &|_, _| Some(open_text(text).into())));
        match &message["content"] {
            Value::String(own) if own.is_empty() && calls_of(message).next().is_some() => Vec::new(),
            Value::String(own) => {
                let plain = || serde_json::json!({ "type": "text", "text": open_text(own) });
                vec![text(own).unwrap_or_else(plain)]
            }
            Value::Array(parts) => {
                let write = |part| match part_of(part) {
                    Part::Text(own) => Some(text(own).unwrap_or_else(|| opened(part))),
                    Part::Image(url, detail) => self.image(url, detail),
                    Part::Other(part) => Some(opened(part)),
                };
                parts.iter().filter_map(write).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The tool calls of a message.
    pub(super) fn calls(&self, message: &Value) -> Vec<Value> {
        calls_of(message).filter_map(|call| self.call(call)).collect()
    }

    fn call(&self, call: &Value) -> Option<Value> {
        let Some(template) = &self.parts.tool_call else {
            self.lack("tool calls of the assistant");
            return None;
        };
        let function = &call["function"];
        let arguments = &function["arguments"];
        filled(template, &|place, _| match place {
            "id" => call["id"].as_str().map(Value::from),
            "name" => function["name"].as_str().map(Value::from),
            "arguments" => match arguments.as_str() {
                Some(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
                None => Some(arguments.clone()),
            },
            _ => Some(arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned).into()),
        })
    }

    /// The answer of a tool.
    pub(super) fn result(&self, message: &Value) -> Option<Value> {
        let Some(template) = &self.parts.tool_result else {
            self.lack("the results of tools");
            return None;
        };
        filled(template, &|place, _| match place {
            "id" => message["tool_call_id"].as_str().map(Value::from),
            "name" => self.tool_name(message).map(Value::from),
            _ => Some(self.text(message, true).into()),
        })
    }

    /// The name of the tool that answers.
    pub(super) fn tool_name<'m>(&self, message: &'m Value) -> Option<&'m str>
    where
        'a: 'm,
    {
        let called = || self.names.get(message["tool_call_id"].as_str()?).copied();
        message["name"].as_str().or_else(called)
    }
}

/// The tool calls of a message.
pub(super) fn calls_of(message: &Value) -> impl Iterator<Item = &Value> {
    message["tool_calls"].as_array().into_iter().flatten()
}

/// Media type and base64 of a data: URL.
fn data_of(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    Some((media_type.split(';').next().unwrap_or(media_type), data))
}

/// What the name of a file says that it holds.
fn media_type_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "heic" => "image/heic",
        _ => return None,
    })
}
