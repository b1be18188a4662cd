//! Conversations in the shape of `OpenAI` messages, taken apart for dialects with another one.

use serde_json::Value;

use super::OPEN_PLACE;

/// Messages with their `{prompt}` made open places.
pub(super) fn opened(value: &Value) -> Value {
    match value {
        Value::String(text) if text == "{prompt}" => OPEN_PLACE.into(),
        Value::Array(list) => list.iter().map(opened).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), opened(value))).collect())
        }
        other => other.clone(),
    }
}

/// Whether a message is one of the system's.
pub(super) fn is_system(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("system" | "developer"))
}

/// Some of the messages as one text, for dialects that know no messages.
pub(super) fn plain(messages: &Value, wanted: impl Fn(&Value) -> bool) -> String {
    let wanted = messages.as_array().into_iter().flatten().filter(|message| wanted(message));
    let contents = wanted.map(|message| text_of(&message["content"]));
    let texts: Vec<String> = contents.filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}

/// The text of a message's content, which may be a list of parts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) if text == "{prompt}" => OPEN_PLACE.to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text_of(&part["text"])).collect(),
        _ => String::new(),
    }
}
