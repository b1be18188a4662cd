//! Lines of foreign logs.

use std::borrow::Cow;

use super::{REDACTED, name};

/// Shorter values are status codes and the like.
const SHORTEST: usize = 8;

/// A line of a log without the values of `name: value` and `name=value` where the name looks secret, and without what
/// stands behind `Bearer` and `Basic`.
pub fn line(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut kept = 0;
    for (at, sign) in text.char_indices().filter(|(_, sign)| matches!(sign, ':' | '=' | ' ')) {
        if at < kept {
            continue;
        }
        let told = last_word(&text[kept..at]);
        let is_secret = match sign {
            ' ' => is_scheme(told),
            _ => name::is_secret_param(told),
        };
        if !is_secret {
            continue;
        }
        let begin = value_at(text, at + 1);
        let length = text[begin..].find(is_end).unwrap_or(text.len() - begin);
        if length >= SHORTEST {
            clean.push_str(&text[kept..begin]);
            clean.push_str(REDACTED);
            kept = begin + length;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[kept..]);
    Cow::Owned(clean)
}

/// The word that ends a text, without the quotes and blanks behind it.
fn last_word(text: &str) -> &str {
    let text = text.trim_end_matches(['"', '\'', '\\', ' ']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.rsplit(|c| !is_part(c)).next().unwrap_or_default()
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Where a value begins: behind blanks, quotes and the name of a scheme.
fn value_at(text: &str, from: usize) -> usize {
    let is_before = |c: char| matches!(c, ' ' | '"' | '\'' | '\\' | '[' | ':' | '=');
    let begin = |from: usize| text[from..].find(|c| !is_before(c)).map_or(text.len(), |more| from + more);
    let first = begin(from);
    let word = text[first..].split(is_end).next().unwrap_or_default();
    if is_scheme(word) { begin(first + word.len()) } else { first }
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '&' | ',' | ';' | ']' | '}' | ')')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_go_and_all_else_stays() {
        for (text, clean) in [
            ("GET /v1?api_key=sk-123456789&x=1 200", "GET /v1?api_key=<redacted>&x=1 200"),
            ("Authorization: Bearer abcdefgh.ijk ok", "Authorization: Bearer <redacted> ok"),
            ("sent bearer abcdefgh, done", "sent bearer <redacted>, done"),
            (r#"{"x-api-key":"sk-12345678","n":3}"#, r#"{"x-api-key":"<redacted>","n":3}"#),
            (r#"{\"api_key\": \"sk-12345678\"}"#, r#"{\"api_key\": \"<redacted>\"}"#),
            ("code=200 max_tokens=100000000 time: 12:34:56.789123", ""),
            ("a basic fact: 16:20:05", ""),
            ("password:", ""),
            ("", ""),
        ] {
            assert_eq!(line(text), if clean.is_empty() { text } else { clean });
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "([a-z]{0,3}|key|token|bearer|[:=\" é\\\\]){0,30}") {
            prop_assert!(line(&text).len() <= text.len() * 3 + REDACTED.len());
        }
    }
}
