//! Conversations in the shape of `OpenAI` messages, written in the shape of a dialect.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parts::{Part, Writer, calls_of, part_of};
use super::template::{filled, has_place};

/// Whether a message is one of the system's.
pub(super) fn is_system(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("system" | "developer"))
}

fn is_result(message: &Value) -> bool {
    message["role"] == "tool"
}

/// Some of the messages as one text, for dialects that know no messages.
pub(super) fn plain<'a>(
    messages: impl Iterator<Item = &'a Value>,
    writer: &Writer<'_>,
    images_apart: bool,
) -> String {
    let texts = messages.map(|message| {
        if calls_of(message).next().is_some() {
            writer.lack("tool calls of the assistant");
        }
        writer.text(message, !images_apart)
    });
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}

/// Messages by the templates of one: the first is for a message that is one text, the second for one of parts. Where
/// there is no second, the first is for all.
pub(super) fn shaped<'a>(
    messages: impl Iterator<Item = &'a Value>,
    templates: &[Value],
    roles: &BTreeMap<String, String>,
    writer: &Writer<'_>,
) -> Vec<Value> {
    let [whole, ..] = templates else { return Vec::new() };
    let of_parts = templates.get(1).unwrap_or(whole);
    // Such a message has fields for its tool calls.
    let has_calls = has_place(whole, "tool_calls");
    let apart = writer.parts.tools_apart;
    let mut written = Vec::new();
    let mut messages = messages.peekable();
    while let Some(message) = messages.next() {
        if apart && is_result(message) {
            written.extend(writer.result(message));
            continue;
        }
        let in_parts = !has_calls && !apart && (is_result(message) || calls_of(message).next().is_some());
        let mut results = Vec::new();
        if in_parts && is_result(message) {
            results.extend(writer.result(message));
            // Results in a row answer calls of one message, and are one message, too.
            while let Some(next) = messages.next_if(|next| is_result(next)) {
                results.extend(writer.result(next));
            }
        }
        let template = if in_parts || !is_one_text(message) { of_parts } else { whole };
        let has_images = has_place(template, "images");
        let lookup = |place: &str, _: &[Value]| match place {
            "role" => {
                let role = message["role"].as_str().unwrap_or("user");
                Some(roles.get(role).map_or(role, String::as_str).into())
            }
            "content" => Some(writer.text(message, !has_images).into()),
            "parts" if is_result(message) && in_parts => Some(results.clone().into()),
            "parts" => {
                let mut parts = writer.content(message);
                if in_parts {
                    parts.extend(writer.calls(message));
                }
                Some(parts.into())
            }
            "images" => Some(writer.images(message)).filter(|images| !images.is_empty()).map(Value::from),
            "tool_calls" => Some(writer.calls(message)).filter(|calls| !calls.is_empty()).map(Value::from),
            "tool_call_id" => message["tool_call_id"].as_str().map(Value::from),
            _ => writer.tool_name(message).filter(|_| is_result(message)).map(Value::from),
        };
        if in_parts && !has_place(template, "parts") {
            writer.lack("tool calls and their results");
        }
        let calls = if apart { writer.calls(message) } else { Vec::new() };
        let has_content =
            message["content"].is_array() || message["content"].as_str().is_some_and(|text| !text.is_empty());
        if calls.is_empty() || has_content {
            written.extend(filled(template, &lookup));
        }
        written.extend(calls);
    }
    written
}

/// Whether a message's content is one text, be it given as a list of them.
fn is_one_text(message: &Value) -> bool {
    let is_text = |part: &Value| {
        let bare = part.as_object().is_none_or(|part| part.len() == 2);
        bare && matches!(part_of(part), Part::Text(_))
    };
    message["content"].as_array().is_none_or(|parts| parts.iter().all(is_text))
}
