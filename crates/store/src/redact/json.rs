//! Secrets out of a JSON object that is merged into request bodies.

use std::borrow::Cow;

use serde_json::Value;

use super::{REDACTED, name};

/// A JSON text without the strings that stand under secret names. A text without any stays as it is; one that
/// is no JSON goes as a whole.
pub fn body_json(text: &str) -> Cow<'_, str> {
    each_secret(text, &mut |_| {})
}

/// Replaces every secret, and tells each.
pub(super) fn each_secret<'a>(text: &'a str, found: &mut dyn FnMut(&str)) -> Cow<'a, str> {
    let Ok(mut value) = serde_json::from_str(text) else {
        return Cow::Borrowed(REDACTED);
    };
    let mut any = false;
    let mut tell = |secret: &str| {
        any = true;
        found(secret);
    };
    visit(&mut value, false, Inside::Values, &mut tell);
    if any { Cow::Owned(value.to_string()) } else { Cow::Borrowed(text) }
}

/// What the keys of an object are.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    /// Names of values.
    Values,
    /// Names of a JSON Schema's properties: a tool may well take an `api_key`, and its type is no secret.
    Properties,
}

fn visit(value: &mut Value, secret: bool, inside: Inside, found: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) if secret && text != REDACTED => {
            found(text);
            REDACTED.clone_into(text);
        }
        Value::String(text) => {
            let clean = super::url::each_secret(text, found).into_owned();
            *text = clean;
        }
        Value::Array(items) => {
            for item in items {
                visit(item, secret, Inside::Values, found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let named = inside == Inside::Values && name::is_secret_param(key);
                let inside = if key == "properties" { Inside::Properties } else { Inside::Values };
                visit(value, secret || named, inside, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_under_secret_names_go() {
        for (text, clean) in [
            (r#"{ "temperature": 0.0 }"#, r#"{ "temperature": 0.0 }"#),
            (r#"{"max_tokens": 5, "stop_token": "</s>"}"#, r#"{"max_tokens": 5, "stop_token": "</s>"}"#),
            (r#"{"api_key":"s"}"#, r#"{"api_key":"<redacted>"}"#),
            (
                r#"{"a":[{"auth":{"user":"u","pins":["1",2]}}]}"#,
                r#"{"a":[{"auth":{"pins":["<redacted>",2],"user":"<redacted>"}}]}"#,
            ),
            (r#"{"image":"https://h/i.png?sig=s"}"#, r#"{"image":"https://h/i.png?sig=<redacted>"}"#),
            (
                r#"{"tools":[{"parameters":{"properties":{"api_key":{"type":"string"}}}}]}"#,
                r#"{"tools":[{"parameters":{"properties":{"api_key":{"type":"string"}}}}]}"#,
            ),
            ("{not json", "<redacted>"),
        ] {
            assert_eq!(body_json(text), clean);
        }
    }
}
