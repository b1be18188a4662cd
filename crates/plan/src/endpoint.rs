//! Which URL a request goes to, from what users write: a base, a base with `/v1`, or the full path.

use url::Url;

/// A text that names no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error("`{given}` is not a URL ({why}); write it as http://HOST:PORT, {hint}")]
    NotUrl {
        /// What was given, without a password.
        given: String,
        /// Why not.
        why: String,
        /// An example close to it.
        hint: String,
    },
    /// Another scheme.
    #[error("cannot speak `{0}`; use http:// or https://")]
    Scheme(String),
}

/// The full URL of an endpoint. `path` is what the dialect appends to a bare host (`/v1/chat/completions`).
///
/// A path that ends with the dialect's last parts is taken as the full one; `…/v1` is completed; any other path is a
/// prefix that a gateway adds. A host without a scheme, such as `localhost:8000`, gets `http://`.
pub fn endpoint_url(given: &str, path: &str) -> Result<String, EndpointError> {
    let mut url = parse(given)?;
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    add_query(&mut url, query);
    let wanted: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let have: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    // `/v1/chat/completions` is recognised by `chat/completions`: gateways put their own versions before it.
    let tail = if wanted.len() > 1 { &wanted[1..] } else { &wanted[..] };
    if !tail.is_empty() && have.ends_with(tail) {
        return Ok(url.into());
    }
    let overlap = (0..=wanted.len()).rev().find(|n| have.ends_with(&wanted[..*n])).unwrap_or(0);
    let full: Vec<&str> = have.iter().chain(&wanted[overlap..]).copied().collect();
    let full = format!("/{}", full.join("/"));
    url.set_path(&full);
    Ok(url.into())
}

/// Adds what the dialect wants in the query, unless the given URL has a value for it.
fn add_query(url: &mut Url, query: &str) {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !url.query_pairs().any(|(known, _)| known == name) {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
}

/// The URL of another path of the same API: `…/v1/chat/completions` and `models` give `…/v1/models`.
pub fn sibling_url(endpoint: &str, path: &str, sibling: &str) -> Result<String, EndpointError> {
    replaced(endpoint, path, 1, sibling)
}

/// The URL of a path beside the API: `…/v1/chat/completions` and `tokenize` give `…/tokenize`.
pub fn root_url(endpoint: &str, path: &str, other: &str) -> Result<String, EndpointError> {
    replaced(endpoint, path, 0, other)
}

/// The URL with another name in place of its API's path, of which so many parts are kept.
fn replaced(endpoint: &str, path: &str, kept: usize, name: &str) -> Result<String, EndpointError> {
    let mut url = parse(endpoint)?;
    let own: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).skip(kept).collect();
    let have: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    let kept = if have.ends_with(&own) { &have[..have.len() - own.len()] } else { &have[..] };
    let full = format!("/{}", kept.iter().copied().chain([name]).collect::<Vec<_>>().join("/"));
    url.set_path(&full);
    url.set_query(None);
    Ok(url.into())
}

fn parse(given: &str) -> Result<Url, EndpointError> {
    let text = given.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let bad = |why: String| EndpointError::NotUrl {
        given: without_userinfo(text),
        why,
        hint: "for instance http://localhost:8000 or https://gateway.example/v1".to_owned(),
    };
    if text.is_empty() {
        return Err(bad("it is empty".to_owned()));
    }
    let url = Url::parse(&with_scheme).map_err(|e| bad(e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EndpointError::Scheme(url.scheme().to_owned()));
    }
    // A bare word is far more often a slip than a host: `ttft run rnu`.
    let host = url.host_str().unwrap_or_default();
    let is_bare_word = !text.contains("://") && !text.contains(['.', ':', '/']) && host != "localhost";
    if is_bare_word {
        return Err(bad("a bare word names no server".to_owned()));
    }
    Ok(url)
}

fn without_userinfo(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: &str = "/v1/chat/completions";

    #[test]
    fn completes_what_users_write() {
        for (given, full) in [
            ("http://host:8000", "http://host:8000/v1/chat/completions"),
            ("http://host:8000/", "http://host:8000/v1/chat/completions"),
            ("localhost:8000", "http://localhost:8000/v1/chat/completions"),
            ("127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/chat/completions"),
            ("http://host/v1/", "http://host/v1/chat/completions"),
            ("http://host/v1/chat", "http://host/v1/chat/completions"),
            ("https://gw/api", "https://gw/api/v1/chat/completions"),
            ("https://gw/v1/chat/completions", "https://gw/v1/chat/completions"),
            (
                "https://x/openai/deployments/d/chat/completions?api-version=1",
                "https://x/openai/deployments/d/chat/completions?api-version=1",
            ),
        ] {
            assert_eq!(endpoint_url(given, CHAT).as_deref(), Ok(full), "{given}");
        }
        assert_eq!(endpoint_url("http://h", "/v1/completions").as_deref(), Ok("http://h/v1/completions"));
        assert_eq!(endpoint_url("http://h/api", "/api/chat").as_deref(), Ok("http://h/api/chat"));

        let gemini = |given: &str| endpoint_url(given, "/v1beta/models/g:stream?alt=sse").unwrap();
        assert_eq!(gemini("http://h"), "http://h/v1beta/models/g:stream?alt=sse");
        assert_eq!(gemini("http://h/v1beta?key=k"), "http://h/v1beta/models/g:stream?key=k&alt=sse");
        assert_eq!(
            gemini("http://h/v1beta/models/g:stream?alt=json"),
            "http://h/v1beta/models/g:stream?alt=json"
        );
    }

    #[test]
    fn finds_siblings() {
        let models = |url| sibling_url(url, CHAT, "models").unwrap();
        assert_eq!(models("http://h:1/v1/chat/completions"), "http://h:1/v1/models");
        assert_eq!(models("https://gw/api/v1/chat/completions?x=y"), "https://gw/api/v1/models");
        assert_eq!(
            root_url("https://gw/api/v1/chat/completions?x=y", CHAT, "tokenize").as_deref(),
            Ok("https://gw/api/tokenize")
        );
    }

    #[test]
    fn refuses_what_is_none() {
        for given in ["", "rnu", "http://", "http://host:port", "ftp://host"] {
            assert!(endpoint_url(given, CHAT).is_err(), "{given}");
        }
        let secret = endpoint_url("http://me:hunter2@host:port", CHAT).unwrap_err().to_string();
        assert!(!secret.contains("hunter2"), "{secret}");
    }
}
