//! A dialect: how to ask a kind of server, and how to read its answer.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::Error;
use crate::error::Problem;
use crate::framing::Framing;
use crate::request::Request;
use crate::rules::{DialectFile, Rules, compile, line_of};

/// The dialects that the binary carries: name and text of each. An answer is told by trying them in this order.
const EMBEDDED: &[(&str, &str)] = &[
    ("qianfan-v1", include_str!("../../../dialects/qianfan-v1/dialect.toml")),
    ("openai-chat", include_str!("../../../dialects/openai-chat/dialect.toml")),
    ("openai-completions", include_str!("../../../dialects/openai-completions/dialect.toml")),
    ("openai-responses", include_str!("../../../dialects/openai-responses/dialect.toml")),
    ("azure-openai-chat", include_str!("../../../dialects/azure-openai-chat/dialect.toml")),
    ("mistral-chat", include_str!("../../../dialects/mistral-chat/dialect.toml")),
    ("anthropic-messages", include_str!("../../../dialects/anthropic-messages/dialect.toml")),
    ("gemini-sse", include_str!("../../../dialects/gemini-sse/dialect.toml")),
    ("gemini-json", include_str!("../../../dialects/gemini-json/dialect.toml")),
    ("ollama-generate", include_str!("../../../dialects/ollama-generate/dialect.toml")),
    ("ollama-chat", include_str!("../../../dialects/ollama-chat/dialect.toml")),
    ("tgi-generate", include_str!("../../../dialects/tgi-generate/dialect.toml")),
    ("triton-generate", include_str!("../../../dialects/triton-generate/dialect.toml")),
    ("cohere-v2-chat", include_str!("../../../dialects/cohere-v2-chat/dialect.toml")),
    ("bedrock-converse", include_str!("../../../dialects/bedrock-converse/dialect.toml")),
    ("bedrock-invoke", include_str!("../../../dialects/bedrock-invoke/dialect.toml")),
    ("sglang-generate", include_str!("../../../dialects/sglang-generate/dialect.toml")),
    ("llamacpp-completion", include_str!("../../../dialects/llamacpp-completion/dialect.toml")),
    ("dashscope-native", include_str!("../../../dialects/dashscope-native/dialect.toml")),
    ("dashscope-multimodal", include_str!("../../../dialects/dashscope-multimodal/dialect.toml")),
    ("hunyuan-native", include_str!("../../../dialects/hunyuan-native/dialect.toml")),
];

static BUILTIN: LazyLock<Vec<Arc<Dialect>>> = LazyLock::new(|| {
    let parse = |(name, text): &(&str, &str)| Dialect::parse(name, text).ok().map(Arc::new);
    EMBEDDED.iter().filter_map(parse).collect()
});

/// One dialect, compiled and ready to use.
#[derive(Debug)]
pub struct Dialect {
    name: String,
    title: String,
    source: Box<str>,
    extends: bool,
    pub(crate) request: Request,
    pub(crate) rules: Rules,
}

impl Dialect {
    /// The dialect of that name that the binary carries.
    pub fn builtin(name: &str) -> Option<Arc<Self>> {
        BUILTIN.iter().find(|dialect| dialect.name == name).cloned()
    }

    /// Names of the dialects that the binary carries.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<_> = EMBEDDED.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names
    }

    /// The dialects that the binary carries.
    pub fn all() -> &'static [Arc<Self>] {
        &BUILTIN
    }

    /// The dialect that a user means: a name, or the path of a `dialect.toml`.
    pub fn named(name: &str) -> Result<Arc<Self>, Error> {
        if let Some(dialect) = Self::builtin(name) {
            return Ok(dialect);
        }
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Self::load(path);
        }
        Err(Error::UnknownDialect { name: name.to_owned(), known: Self::names().join(", ") })
    }

    /// Reads a dialect from a `dialect.toml`.
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::Read { file: file.clone(), source })?;
        Self::parse(&file, &text).map(Arc::new)
    }

    /// Reads a dialect from the text of a `dialect.toml`; `file` names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let wrong = |(position, problem): (usize, Problem)| Error::Dialect {
            file: file.to_owned(),
            line: line_of(text, position),
            problem,
        };
        let parsed = whole(text, 0).map_err(wrong)?;
        Ok(Self {
            rules: compile(&parsed).map_err(wrong)?,
            request: Request::new(parsed.request.as_ref()).map_err(wrong)?,
            name: parsed.name,
            title: parsed.title,
            source: text.into(),
            extends: parsed.extends.is_some(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for, in one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How it cuts its stream into events.
    pub fn framing(&self) -> Framing {
        self.rules.framing
    }

    /// Whether it says only what differs from another dialect.
    pub(crate) fn extends(&self) -> bool {
        self.extends
    }

    /// The text of its `dialect.toml`.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// The longest chain of dialects that extend each other.
const MAX_EXTENDS: usize = 4;

/// A dialect file with what it extends filled in.
fn whole(text: &str, depth: usize) -> Result<DialectFile, (usize, Problem)> {
    let parsed: DialectFile = toml::from_str(text).map_err(|error| {
        (error.span().map_or(0, |span| span.start), Problem::Toml(error.message().to_owned()))
    })?;
    let Some(extends) = &parsed.extends else { return Ok(parsed) };
    let (position, name) = (extends.span().start, extends.get_ref());
    let known = EMBEDDED.iter().find(|(known, _)| known == name).filter(|_| depth < MAX_EXTENDS);
    let (_, base) = known.ok_or_else(|| (position, Problem::Extends(name.clone())))?;
    let base = whole(base, depth + 1).map_err(|(_, problem)| (position, problem))?;
    Ok(parsed.over(base, position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_carried_compiles() {
        for (name, text) in EMBEDDED {
            let dialect = Dialect::parse(name, text).unwrap();
            assert_eq!(dialect.name(), *name);
            assert!(Dialect::builtin(name).is_some());
        }
    }

    const GOOD: &str = r#"name = "x"
title = "X"
[request]
path = "/x"
auth = "authorization: Bearer {key}"
body = '{"model": "{model}", "prompt": "{prompt}"}'
[stream]
framing = "sse"
end_data = ["[DONE]"]
[[rule]]
at = "/text"
is = "text"
"#;

    /// The good file with one line replaced must be refused at that line.
    fn check(line: usize, replacement: &str, problem: &str) {
        check_at(line, line, replacement, problem);
    }

    /// The same, where what replaces line `replaced` is wrong further down.
    fn check_at(line: usize, replaced: usize, replacement: &str, problem: &str) {
        let mut lines: Vec<&str> = GOOD.lines().collect();
        lines[replaced - 1] = replacement;
        let error = Dialect::parse("x.toml", &lines.join("\n")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("x.toml, line {line}: ")), "{replacement}: {error}");
        assert!(error.contains(problem), "{replacement}: {error}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        Dialect::parse("x.toml", GOOD).unwrap();
        check(2, "titel = 'X'", "unknown field `titel`");
        check(5, "auth = 'Bearer {key}'", "name: value");
        check(6, "body = '{'", "not JSON");
        check(6, "body = '{\"model\": \"{modle}\"}'", "`{modle}` is no place");
        check(8, "framing = 'csv'", "unknown variant `csv`");
        check(6, "body = '{\"m\": [\"{messages}\", \"{contents}\"]}'", "`{contents}` is no place");
        let parts = |line: &str| format!("body = '{{}}'\n[request.parts]\n{line}");
        check_at(8, 6, &parts("text = '{'"), "the template is not JSON");
        check_at(8, 6, &parts("text = '\"{url}\"'"), "`{url}` is no place");
        check_at(8, 6, &parts("image = '1'"), "unknown field `image`");
        check(11, "at = 'text'", "a pointer begins with `/`");
        check(11, "at = '/a/0/b'", "one element");
        check(11, "at = 3", "a pointer or a list");
        check(12, "is = 'texts'", "unknown variant `texts`");
        check(11, "at = '/text'\nwhen = { b = 1 }", "a pointer begins with `/`");
        assert_eq!(
            Dialect::parse("x.toml", &GOOD.replace("end_data", "comment_data")).unwrap_err().to_string(),
            "x.toml, line 7: nothing ends the stream: give `end_data`, `end_events`, `finish_ends = true`, \
             `body_ends = true` or a rule with `is = \"end\"`"
        );
    }

    const MINE: &str = r#"name = "mine"
title = "Mine"
extends = "openai-chat"
[request]
auth = ""
[stream]
end_data = ["END"]
[[rule]]
at = "/choices/*/delta/refusal"
is = "refusal"
only = "x"
"#;

    #[test]
    fn a_dialect_says_only_what_differs() {
        let base = Dialect::builtin("openai-chat").unwrap();
        let mine = Dialect::parse("mine.toml", MINE).unwrap();
        assert_eq!((mine.path("m"), mine.framing()), (base.path("m"), base.framing()));
        assert!(!mine.headers(Some("k")).iter().any(|(name, _)| name == "authorization"));
        assert_eq!(
            (&mine.rules.end_data, &mine.rules.error_fields),
            (&vec![b"END".to_vec()], &base.rules.error_fields)
        );
        assert!(mine.rules.signs.is_empty(), "what tells the base does not tell this one");
        let rules = |dialect: &Dialect| (0..200).flat_map(|slot| dialect.rules.stream.rules(slot)).count();
        assert_eq!(rules(&mine), rules(&base), "a rule of the same place and meaning is replaced");
    }

    #[test]
    fn mistakes_of_what_extends() {
        let check = |from: &str, to: &str, wanted: &str| {
            let error = Dialect::parse("mine.toml", &MINE.replace(from, to)).unwrap_err().to_string();
            assert_eq!(error, wanted);
        };
        check("openai-chat", "openai", "mine.toml, line 3: there is no dialect `openai` to extend");
        check("extends = \"openai-chat\"\n", "", "mine.toml, line 5: `framing` is missing");
        check(
            "end_data = [\"END\"]",
            "framing = \"csv\"",
            "mine.toml, line 7: unknown variant `csv`, expected one of `sse`, `ndjson`, `nul`, `json-array`, `aws-eventstream`",
        );
        check(
            "end_data = [\"END\"]",
            "base64 = \"x\"",
            "mine.toml, line 7: `x` cannot be found: a pointer begins with `/`",
        );
    }
}
