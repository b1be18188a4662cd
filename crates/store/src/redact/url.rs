//! Secrets out of URLs. Works on the text, so that everything else stays byte for byte as it was.

use std::borrow::Cow;

use super::{REDACTED, name};

/// A URL, or a text with one in it, without user info and without the values of secret parameters.
pub fn url(text: &str) -> Cow<'_, str> {
    each_secret(text, &mut |_| {})
}

/// Replaces every secret in a URL, and tells each.
pub(super) fn each_secret<'a>(text: &'a str, found: &mut dyn FnMut(&str)) -> Cow<'a, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (from, to) in secret_spans(text) {
        if &text[from..to] != REDACTED {
            found(&text[from..to]);
        }
        out.push_str(&text[copied..from]);
        out.push_str(REDACTED);
        copied = to;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Byte ranges that hold secrets, from left to right.
fn secret_spans(text: &str) -> Vec<(usize, usize)> {
    let mut spans: Vec<_> = user_info(text).into_iter().collect();
    let Some(query) = text.find(['?', '#']) else { return spans };
    let mut at = query + 1;
    for pair in text[at..].split(['&', ';', '?', '#']) {
        if let Some((name, value)) = pair.split_once('=')
            && !value.is_empty()
            && name::is_secret_param(&name.replace("%5F", "_").replace("%2D", "-"))
        {
            spans.push((at + name.len() + 1, at + pair.len()));
        }
        at += pair.len() + 1;
    }
    spans
}

/// What stands before the `@` of an authority; without a scheme only `user:password`.
fn user_info(text: &str) -> Option<(usize, usize)> {
    let scheme = text.find("://");
    let from = scheme.map_or(0, |at| at + 3);
    let rest = &text[from..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let info = &authority[..authority.rfind('@')?];
    let is_one = scheme.is_some() || (info.contains(':') && !info.contains(char::is_whitespace));
    (is_one && !info.is_empty()).then_some((from, from + info.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_info_and_secret_parameters_go() {
        for (text, clean) in [
            ("https://host/v1", "https://host/v1"),
            ("https://user:pass@host:8/v1?x=1", "https://<redacted>@host:8/v1?x=1"),
            ("https://tok@host", "https://<redacted>@host"),
            ("https://a@b:p@ss@host/", "https://<redacted>@host/"),
            ("user:pass@host:8000/v1", "<redacted>@host:8000/v1"),
            (
                "https://host/m:stream?alt=sse&key=AIza&x=2",
                "https://host/m:stream?alt=sse&key=<redacted>&x=2",
            ),
            (
                "https://host/?api_key=&token=a#access_token=b",
                "https://host/?api_key=&token=<redacted>#access_token=<redacted>",
            ),
            (
                "https://host/?api-version=2024-10-21&max_tokens=5",
                "https://host/?api-version=2024-10-21&max_tokens=5",
            ),
            ("https://host/@scope/path", "https://host/@scope/path"),
            ("nats://u:p@h:4222", "nats://<redacted>@h:4222"),
            ("mail a: b@c.d", "mail a: b@c.d"),
            ("长://ключ@x?key=名", "长://<redacted>@x?key=<redacted>"),
            ("", ""),
        ] {
            assert_eq!(url(text), clean);
            assert_eq!(url(clean), clean, "once is enough");
        }
    }
}
