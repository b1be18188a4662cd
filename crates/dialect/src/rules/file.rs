//! The TOML form of a dialect.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::Meaning;
use crate::framing::Framing;

/// A `dialect.toml`. What it leaves out may come from the dialect that it extends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DialectFile {
    pub(crate) name: String,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) extends: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) request: Option<Spanned<RequestFile>>,
    #[serde(default)]
    pub(crate) stream: Option<Spanned<StreamFile>>,
    #[serde(default, rename = "rule")]
    pub(crate) rules: Vec<Spanned<RuleFile>>,
}

/// How to ask.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestFile {
    #[serde(default)]
    pub(crate) path: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) auth: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Names of roles that differ from the usual ones.
    #[serde(default)]
    pub(crate) roles: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) parts: PartsFile,
    #[serde(default)]
    pub(crate) tool_choice: ToolChoiceFile,
}

/// The shapes of what a message may hold, each the JSON text of a template. An empty one takes that of a base away.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartsFile {
    #[serde(default)]
    pub(crate) text: Option<Spanned<String>>,
    /// A text of the assistant, where it has a shape of its own.
    #[serde(default)]
    pub(crate) answer: Option<Spanned<String>>,
    /// An image that is given as a data: URL.
    #[serde(default)]
    pub(crate) image_data: Option<Spanned<String>>,
    /// An image that is to be fetched.
    #[serde(default)]
    pub(crate) image_url: Option<Spanned<String>>,
    /// What stands for an image in a text; not JSON.
    #[serde(default)]
    pub(crate) image_in_text: Option<String>,
    #[serde(default)]
    pub(crate) tool_call: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) tool_result: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) tools_apart: Option<bool>,
}

/// The shapes of what may be said of the use of tools.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolChoiceFile {
    #[serde(default)]
    pub(crate) auto: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) none: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) required: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) function: Option<Spanned<String>>,
}

/// How the answer is cut, and how it ends.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamFile {
    #[serde(default)]
    pub(crate) framing: Option<Framing>,
    /// A pointer to a string that holds the event itself in base64.
    #[serde(default)]
    pub(crate) base64: Option<Spanned<String>>,
    /// Bytes, blanks left out, that tell a recording of this dialect.
    #[serde(default)]
    pub(crate) signs: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) end_data: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) end_events: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) finish_ends: Option<bool>,
    #[serde(default)]
    pub(crate) body_ends: Option<bool>,
    #[serde(default)]
    pub(crate) comment_data: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) ping_events: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) error_events: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) error_fields: Option<Vec<String>>,
}

impl DialectFile {
    /// This file with everything of `base` that it does not say itself. Its own rules come last, and one of them
    /// replaces the rule of the base that has the same `is` and `at`. Whatever is wrong with a part of the base is
    /// said to be at `position`.
    pub(crate) fn over(self, base: Self, position: usize) -> Self {
        let mut rules: Vec<_> = base
            .rules
            .into_iter()
            .filter(|old| {
                let same = |own: &Spanned<RuleFile>| own.get_ref().replaces(old.get_ref());
                !self.rules.iter().any(same)
            })
            .map(|old| old.into_inner().moved(position))
            .map(|old| Spanned::new(position..position, old))
            .collect();
        rules.extend(self.rules);

        let request_at = self.request.as_ref().map_or(position, |request| request.span().start);
        let stream_at = self.stream.as_ref().map_or(position, |stream| stream.span().start);
        let request = inner(self.request).over(inner(base.request), position);
        let stream = inner(self.stream).over(inner(base.stream), position);
        Self {
            rules,
            request: Some(Spanned::new(request_at..request_at, request)),
            stream: Some(Spanned::new(stream_at..stream_at, stream)),
            ..self
        }
    }
}

impl RequestFile {
    fn over(self, base: Self, position: usize) -> Self {
        let mut headers = base.headers;
        headers.extend(self.headers);
        let mut roles = base.roles;
        roles.extend(self.roles);
        Self {
            path: self.path.or(base.path.map(|old| moved(old, position))),
            auth: self.auth.or(base.auth.map(|old| moved(old, position))),
            headers,
            roles,
            body: self.body.or(base.body.map(|old| moved(old, position))),
            parts: self.parts.over(base.parts, position),
            tool_choice: self.tool_choice.over(base.tool_choice, position),
        }
    }
}

impl PartsFile {
    fn over(self, base: Self, position: usize) -> Self {
        let or = |own: Option<_>, old: Option<_>| own.or(old.map(|old| moved(old, position)));
        Self {
            text: or(self.text, base.text),
            answer: or(self.answer, base.answer),
            image_data: or(self.image_data, base.image_data),
            image_url: or(self.image_url, base.image_url),
            image_in_text: self.image_in_text.or(base.image_in_text),
            tool_call: or(self.tool_call, base.tool_call),
            tool_result: or(self.tool_result, base.tool_result),
            tools_apart: self.tools_apart.or(base.tools_apart),
        }
    }
}

impl ToolChoiceFile {
    fn over(self, base: Self, position: usize) -> Self {
        let or = |own: Option<_>, old: Option<_>| own.or(old.map(|old| moved(old, position)));
        Self {
            auto: or(self.auto, base.auto),
            none: or(self.none, base.none),
            required: or(self.required, base.required),
            function: or(self.function, base.function),
        }
    }
}

impl StreamFile {
    fn over(self, base: Self, position: usize) -> Self {
        Self {
            framing: self.framing.or(base.framing),
            base64: self.base64.or(base.base64.map(|old| moved(old, position))),
            // What tells the base must not be taken for this one.
            signs: self.signs,
            end_data: self.end_data.or(base.end_data),
            end_events: self.end_events.or(base.end_events),
            finish_ends: self.finish_ends.or(base.finish_ends),
            body_ends: self.body_ends.or(base.body_ends),
            comment_data: self.comment_data.or(base.comment_data),
            ping_events: self.ping_events.or(base.ping_events),
            error_events: self.error_events.or(base.error_events),
            error_fields: self.error_fields.or(base.error_fields),
        }
    }
}

fn inner<T: Default>(part: Option<Spanned<T>>) -> T {
    part.map(Spanned::into_inner).unwrap_or_default()
}

fn moved<T>(part: Spanned<T>, position: usize) -> Spanned<T> {
    Spanned::new(position..position, part.into_inner())
}

/// What one value means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleFile {
    /// A pointer, or a list of alternatives.
    pub(crate) at: Spanned<Value>,
    pub(crate) is: Meaning,
    #[serde(default, rename = "in")]
    pub(crate) scope: Option<Scope>,
    #[serde(default)]
    pub(crate) only: Option<Value>,
    #[serde(default)]
    pub(crate) not: Option<Value>,
    #[serde(default)]
    pub(crate) when: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) unless: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) cumulative: bool,
    #[serde(default)]
    pub(crate) fallback: bool,
    #[serde(default)]
    pub(crate) beside: bool,
    #[serde(default)]
    pub(crate) unit: Option<Unit>,
}

impl RuleFile {
    fn replaces(&self, old: &Self) -> bool {
        self.is == old.is && self.at.get_ref() == old.at.get_ref()
    }

    fn moved(self, position: usize) -> Self {
        Self { at: moved(self.at, position), ..self }
    }
}

/// Which texts a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Stream,
    Document,
    Both,
}

/// The unit of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    S,
    Ms,
    Us,
    Ns,
}

impl Unit {
    pub(crate) const fn in_ms(self) -> f64 {
        match self {
            Self::S => 1e3,
            Self::Ms => 1.0,
            Self::Us => 1e-3,
            Self::Ns => 1e-6,
        }
    }
}

/// The line, from 1, of a position in a text.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    text.as_bytes().iter().take(position).filter(|b| **b == b'\n').count() + 1
}
