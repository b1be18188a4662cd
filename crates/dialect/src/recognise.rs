//! Which dialect an answer looks like, from its content type and first bytes.

use std::sync::Arc;

use crate::Dialect;
use crate::framing::Framing;

/// So much of a body is looked at, blanks left out.
const LOOKED_AT: usize = 16 << 10;

/// What the first bytes of a body can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Binary frames.
    Frames,
    /// A JSON array, or a document that is one.
    Array,
    /// JSON values one behind the other, or a document.
    Objects,
    /// Lines of fields.
    Fields,
}

impl Shape {
    fn of(content_type: Option<&str>, start: &[u8]) -> Option<Self> {
        let media = content_type.unwrap_or_default().to_ascii_lowercase();
        let first = *start.iter().find(|b| !b.is_ascii_whitespace())?;
        Some(match first {
            0 => Self::Frames,
            _ if media.starts_with("application/vnd.amazon.eventstream") => Self::Frames,
            b'[' => Self::Array,
            b'{' => Self::Objects,
            _ => Self::Fields,
        })
    }

    /// The kinds of framing that may look so, the likeliest first. A document may be the answer of any dialect.
    const fn framings(self) -> &'static [Framing] {
        match self {
            Self::Frames => &[Framing::AwsEventstream],
            Self::Fields => &[Framing::Sse],
            Self::Array => &[Framing::JsonArray, Framing::Sse],
            Self::Objects => {
                &[Framing::Ndjson, Framing::Nul, Framing::JsonArray, Framing::Sse, Framing::AwsEventstream]
            }
        }
    }
}

impl Dialect {
    /// The dialect, of those that the binary carries, that an answer looks like: by its content type and first bytes.
    /// `None` if it looks like none of them.
    pub fn recognise(content_type: Option<&str>, start: &[u8]) -> Option<Arc<Self>> {
        Self::recognised(content_type, start).next()
    }

    /// The dialect whose requests go to that path of a URL, which may have more before it, as gateways do, and a query.
    /// `None` if it is the path of none.
    pub fn of_path(path: &str) -> Option<Arc<Self>> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut starts = path.match_indices('/').map(|(start, _)| &path[start..]);
        let of = |tail: &str| {
            let found = || Self::all().iter().filter(|dialect| tail.len() > 1 && dialect.has_path(tail));
            // Of several with one path, that whose query is asked for: without any it is the one that has none.
            let asked = |dialect: &&Arc<Self>| {
                let own = dialect.path_template().split_once('?').map_or("", |(_, own)| own);
                query.split('&').any(|pair| pair == own)
            };
            found().find(asked).or_else(|| found().next()).cloned()
        };
        starts.find_map(of)
    }

    /// All dialects that an answer looks like, the likeliest first.
    pub(crate) fn recognised(content_type: Option<&str>, start: &[u8]) -> impl Iterator<Item = Arc<Self>> {
        let solid: Vec<u8> =
            start.iter().copied().filter(|b| !b.is_ascii_whitespace()).take(LOOKED_AT).collect();
        let framings = Shape::of(content_type, start).map_or(&[][..], Shape::framings);
        let in_order = framings.iter().flat_map(|framing| {
            let all = || Self::all().iter().filter(|dialect| dialect.framing() == *framing);
            // What extends another dialect is told by what it has beyond that one.
            all().filter(|dialect| dialect.extends()).chain(all().filter(|dialect| !dialect.extends()))
        });
        in_order
            .filter(move |dialect| {
                dialect.rules.signs.iter().any(|sign| memchr::memmem::find(&solid, sign).is_some())
            })
            .cloned()
    }

    /// Whether that path of a request is one of the dialect's; queries do not matter.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        let without_query = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
        let (own, path) = (without_query(self.path_template()), without_query(path));
        match own.split_once("{model}") {
            None => own == path,
            Some((before, after)) => {
                path.len() > before.len() + after.len() && path.starts_with(before) && path.ends_with(after)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_answers() {
        let check = |content_type: &str, start: &str, wanted: Option<&str>| {
            let found = Dialect::recognise(Some(content_type), start.as_bytes());
            assert_eq!(found.as_ref().map(|dialect| dialect.name()), wanted, "{content_type} {start}");
        };
        let (sse, json) = ("text/event-stream", "application/json");
        check(sse, ": ping\n\ndata: {\"object\": \"chat.completion.chunk\"}\n\n", Some("openai-chat"));
        check(sse, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", Some("openai-chat"));
        check(sse, "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n", Some("openai-completions"));
        check(json, "{\"object\":\"chat.completion\",\"choices\":[]}", Some("openai-chat"));
        check(sse, "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n", Some("azure-openai-chat"));
        check(
            sse,
            "event: message_start\ndata: {\"type\":\"message_start\"}\n\n",
            Some("anthropic-messages"),
        );
        check(sse, "data: {\"candidates\": [{\"content\":{}}]}\r\n\r\n", Some("gemini-sse"));
        check(json, "[{\n  \"candidates\": [\n", Some("gemini-json"));
        check(json, "[{\"generated_text\":\"a\"}]", Some("tgi-generate"));
        check("application/x-ndjson", "{\"message\":{},\"done\":false}\n", Some("ollama-chat"));
        check("", "\0\0\0\u{1}:event-type messageStart", Some("bedrock-converse"));
        check(json, "{\"detail\":\"Not Found\"}", None);
        check("text/html", "<html>", None);
        check("", "", None);
    }

    #[test]
    fn paths_of_urls() {
        let check = |path: &str, wanted: Option<&str>| {
            let found = Dialect::of_path(path);
            assert_eq!(found.as_ref().map(|dialect| dialect.name()), wanted, "{path}");
        };
        check("/v1/chat/completions", Some("openai-chat"));
        check("/openai/v1/chat/completions", Some("openai-chat"));
        check("/v1/completions", Some("openai-completions"));
        check("/gateway/v1/messages", Some("anthropic-messages"));
        check("/openai/deployments/d/chat/completions?api-version=2025-01-01", Some("azure-openai-chat"));
        check("/v1beta/models/g:streamGenerateContent?alt=sse&key=k", Some("gemini-sse"));
        check("/v1beta/models/g:streamGenerateContent", Some("gemini-json"));
        check("/api/chat", Some("ollama-chat"));
        check("/v2/models/m/generate_stream", Some("triton-generate"));
        check("/generate_stream", Some("tgi-generate"));
        check("/v1", None);
        check("/", None);
        check("", None);
    }

    #[test]
    fn paths() {
        let has = |name: &str, path: &str| Dialect::builtin(name).unwrap().has_path(path);
        assert!(has("openai-chat", "/v1/chat/completions?x=1") && !has("openai-chat", "/v1/completions"));
        assert!(has("gemini-sse", "/v1beta/models/g:streamGenerateContent"));
        assert!(!has("gemini-sse", "/v1beta/models/:streamGenerateContent"));
        assert!(has("bedrock-converse", "/model/a%2Fb/converse-stream"));
    }
}
