//! What is put into conversations in the shape of `OpenAI` messages.

use serde_json::{Value, json};

/// Puts a text at the front of the first thing said, which may be a list of parts.
pub(crate) fn put_in_front(messages: &mut [Value], front: &str) {
    let Some(Value::Object(first)) = messages.first_mut().filter(|_| !front.is_empty()) else { return };
    match first.get_mut("content") {
        Some(Value::String(text)) => text.insert_str(0, &format!("{front} ")),
        Some(Value::Array(parts)) => {
            let text = parts.iter_mut().find_map(|part| match part.get_mut("text") {
                Some(Value::String(text)) => Some(text),
                _ => None,
            });
            match text {
                Some(text) => text.insert_str(0, &format!("{front} ")),
                None => parts.insert(0, json!({"type": "text", "text": front})),
            }
        }
        _ => drop(first.insert("content".to_owned(), front.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_first_message_is() {
        for (content, expect) in [
            (json!("a"), json!("[s] a")),
            (
                json!([{"type": "image_url"}, {"type": "text", "text": "a"}]),
                json!([{"type": "image_url"}, {"type": "text", "text": "[s] a"}]),
            ),
            (json!([{"type": "image_url"}]), json!([{"type": "text", "text": "[s]"}, {"type": "image_url"}])),
            (json!(null), json!("[s]")),
        ] {
            let mut messages =
                vec![json!({"role": "user", "content": content}), json!({"role": "user", "content": "b"})];
            put_in_front(&mut messages, "[s]");
            assert_eq!((&messages[0]["content"], &messages[1]["content"]), (&expect, &json!("b")));
        }
        put_in_front(&mut [], "[s]");
    }
}
