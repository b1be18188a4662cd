//! What went wrong, in the server's own words.

use serde_json::Value;
use ttft_model::{ErrorClass, Failure};

use crate::json::{Hit, Kind, append};
use crate::rules::{Matcher, Meaning};

/// The most characters of a message that are kept.
const MAX_MESSAGE: usize = 500;

/// The failure that an event or a document tells of. `error` is the value that said so, if a rule found it.
pub(super) fn failure(
    class: ErrorClass,
    matcher: &Matcher,
    hits: &[Hit],
    json: &[u8],
    error: Option<&Hit>,
) -> Failure {
    let best = |meaning: Meaning| {
        let told = hits.iter().flat_map(|hit| matcher.rules(hit.slot).iter().map(move |rule| (rule, hit)));
        told.filter(|(rule, hit)| rule.meaning == meaning && rule.applies(hit, hits, json))
            .filter_map(|(rule, hit)| Some((rule.rank, words(hit, json)?)))
            .min_by_key(|(rank, _)| *rank)
            .map(|(_, words)| words)
    };
    let own =
        error.filter(|hit| matches!(hit.kind, Kind::String | Kind::Number)).and_then(|hit| words(hit, json));
    let code = best(Meaning::ErrorCode).or_else(|| best(Meaning::ErrorType));
    let message = best(Meaning::ErrorMessage).or(own);
    if let (Some(_), Some(message)) = (&code, &message) {
        return Failure { class, code, message: cut(message) };
    }
    // What the dialect does not know of it may be in the words of others.
    let raw = error.map_or(json, |hit| hit.raw(json));
    let holds_words = matches!(raw.first(), Some(b'{' | b'['));
    let (other_code, other_message) = if holds_words { of_page(raw) } else { (None, None) };
    let whole = || String::from_utf8_lossy(raw).into_owned();
    let message = message.or(other_message).unwrap_or_else(whole);
    Failure { class, code: code.or(other_code.filter(|_| error.is_some())), message: cut(&message) }
}

/// A value as words; nothing for what is empty or holds other values.
fn words(hit: &Hit, json: &[u8]) -> Option<String> {
    let mut text = String::new();
    match hit.kind {
        Kind::String => append(&mut text, hit.raw(json)),
        Kind::Number => text.push_str(&String::from_utf8_lossy(hit.raw(json))),
        _ => {}
    }
    (!text.is_empty()).then_some(text)
}

/// The class of an HTTP status that is not 2xx.
pub(super) const fn class_of_status(status: u16) -> ErrorClass {
    match status {
        401 | 403 => ErrorClass::HttpAuth,
        404 => ErrorClass::HttpNotFound,
        429 => ErrorClass::HttpRateLimited,
        503 | 529 => ErrorClass::HttpOverloaded,
        _ => ErrorClass::HttpError,
    }
}

/// What messages are called in error pages.
const MESSAGES: [&str; 6] = ["message", "detail", "msg", "error_msg", "errorMessage", "Message"];

/// What errors are called in them.
const ERRORS: [&str; 3] = ["error", "errors", "Error"];

/// Whether a JSON document that holds no answer has the words of an error.
pub(super) fn tells_error(body: &[u8]) -> bool {
    let json = inner_of_list(serde_json::from_slice(body).unwrap_or_default());
    let is_told = |error: &&Value| !matches!(error, Value::Null | Value::Bool(false));
    MESSAGES.iter().any(|name| json.get(name).and_then(as_words).is_some())
        || ERRORS.iter().filter_map(|name| json.get(name)).any(|error| is_told(&error))
}

/// Some servers put their error into a list.
fn inner_of_list(json: Value) -> Value {
    match json {
        Value::Array(mut list) if list.first().is_some_and(Value::is_object) => list.swap_remove(0),
        other => other,
    }
}

/// The code and message of an error page, whatever server or proxy wrote it.
pub(super) fn of_page(body: &[u8]) -> (Option<String>, Option<String>) {
    // Some servers write their error as an event although the status tells it already.
    let data =
        String::from_utf8_lossy(body).lines().find_map(|line| line.strip_prefix("data:").map(str::to_owned));
    let text = data.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let text = text.trim();
    let Ok(json) = serde_json::from_str::<Value>(text) else {
        return (None, page_text(text));
    };

    let json = inner_of_list(json);
    let error = ERRORS.iter().find_map(|name| json.get(name).filter(|error| !error.is_null()));
    let inner = match error.unwrap_or(&json) {
        Value::Array(list) => list.first().unwrap_or(&json),
        error => error,
    };
    let get = |name: &str| inner.get(name).or_else(|| json.get(name)).and_then(as_words);
    let message = MESSAGES.into_iter().find_map(get);
    let code = ["code", "error_code", "status_code", "type"].into_iter().find_map(get);
    let message = message.or_else(|| as_words(inner)).or_else(|| (!text.is_empty()).then(|| text.to_owned()));
    (code, message.map(|message| cut(&message)))
}

fn as_words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        // FastAPI lists what it did not like.
        Value::Array(list) => list.first().and_then(|first| first.get("msg").and_then(as_words)),
        _ => None,
    }
}

/// The title of an HTML page, or the beginning of a text.
pub(super) fn page_text(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let start = start + "<title>".len();
        Some(text[start..start + lower[start..].find("</title>")?].trim())
    });
    let words = title.unwrap_or(text);
    (!words.is_empty()).then(|| cut(words))
}

/// Words of pages that proxies, load balancers and sign-ins write instead of an answer.
const ERROR_WORDS: [&str; 14] = [
    "error",
    "bad gateway",
    "bad request",
    "unavailable",
    "timed out",
    "time-out",
    "timeout",
    "forbidden",
    "denied",
    "unauthorized",
    "not found",
    "too many requests",
    "overloaded",
    "failed",
];

/// Whether the title of a page, or a text, tells of an error.
pub(super) fn page_tells_error(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    page_code(&words).is_some() || ERROR_WORDS.iter().any(|word| words.contains(word))
}

/// The status that the title of a page begins with, such as `502 Bad Gateway`.
pub(super) fn page_code(words: &str) -> Option<String> {
    let first = words.split_whitespace().next()?;
    let status: u16 = first.parse().ok()?;
    (400..600).contains(&status).then(|| first.to_owned())
}

/// The first line of something that should have been JSON.
pub(super) fn first_line(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(&data[..data.len().min(8 * MAX_MESSAGE)]).into_owned();
    cut(text.trim_start().lines().next().unwrap_or_default())
}

/// A message cut to a sane length.
pub(super) fn cut(message: &str) -> String {
    let message = message.trim();
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, code: Option<&str>, message: Option<&str>) {
        let (found_code, found_message) = of_page(body.as_bytes());
        assert_eq!((found_code.as_deref(), found_message.as_deref()), (code, message), "{body}");
    }

    #[test]
    fn error_pages_of_many_kinds() {
        check(r#"{"error":{"message":"m","type":"t","code":429}}"#, Some("429"), Some("m"));
        check(r#"{"error":{"message":"m","type":"t","code":null}}"#, Some("t"), Some("m"));
        check(r#"{"error":"Unauthorized"}"#, None, Some("Unauthorized"));
        check(r#"{"detail":"Not Found"}"#, None, Some("Not Found"));
        check(r#"{"detail":[{"msg":"field required","type":"missing"}]}"#, None, Some("field required"));
        check(r#"{"object":"error","message":"m","code":400}"#, Some("400"), Some("m"));
        check(r#"{"error_code":17,"error_msg":"m"}"#, Some("17"), Some("m"));
        check(r#"[{"error":{"message":"m","code":429}}]"#, Some("429"), Some("m"));
        check(r#"{"errors":[{"message":"m","code":7}],"success":false}"#, Some("7"), Some("m"));
        check(r#"{"a":1}"#, None, Some(r#"{"a":1}"#));
        check("event: error\ndata: {\"error\":{\"message\":\"m\"}}\n\n", None, Some("m"));
        check("<html><head><title>502 Bad Gateway</title>", None, Some("502 Bad Gateway"));
        check("  Internal Server Error\n", None, Some("Internal Server Error"));
        check("", None, None);
    }

    #[test]
    fn pages_that_tell_an_error() {
        for words in ["502 Bad Gateway", "Attention! Access denied", "upstream connect error or reset", "504"]
        {
            assert!(page_tells_error(words), "{words}");
        }
        for words in ["Open WebUI", "OK", "# HELP vllm:x Y", "300 tokens"] {
            assert!(!page_tells_error(words), "{words}");
        }
        assert_eq!(page_code("502 Bad Gateway").as_deref(), Some("502"));
    }

    #[test]
    fn messages_are_cut() {
        assert_eq!(cut(&"é".repeat(501)), "é".repeat(500) + "…");
        assert_eq!(first_line(b"\n a\nb"), "a");
    }
}
