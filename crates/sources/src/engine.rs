//! An engine file: which series of an engine is what.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::canonical::shape;
use crate::{Error, page};

/// What a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs a model.
    Engine,
    /// Stands before engines.
    Gateway,
    /// Tells of GPUs and their like.
    Accelerator,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Gateway => "gateway",
            Self::Accelerator => "accelerator",
        }
    }
}

/// What is known of one engine's metrics, in all its versions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Its name in the catalogue.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it is.
    pub role: Role,
    /// A page is this engine's if a series begins with one of these.
    pub(crate) detect: Vec<String>,
    /// What a `*` at the start of a series' name may be.
    #[serde(default)]
    pub(crate) prefixes: Vec<String>,
    #[serde(default)]
    pub(crate) labels: LabelRules,
    #[serde(default)]
    pub(crate) versions: Vec<Version>,
    /// What a reader has to know of these numbers.
    #[serde(default)]
    pub(crate) notes: BTreeMap<String, String>,
    pub(crate) metrics: BTreeMap<String, Vec<Source>>,
}

/// Which label sets overlap.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelRules {
    /// Series that differ only in these say the same thing several times: the largest counts.
    #[serde(default)]
    pub(crate) copies: Vec<String>,
    /// Of series that differ only in this label, the one with this value is the total of the others.
    #[serde(default)]
    pub(crate) totals: BTreeMap<String, String>,
    /// If not empty, series with the same values of these are of one thing, whatever their other labels say.
    #[serde(default)]
    pub(crate) identity: Vec<OneOf>,
    /// The label that names the machine.
    #[serde(default)]
    pub(crate) host: Vec<String>,
}

/// A label with the names it had.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOf {
    One(String),
    Any(Vec<String>),
}

impl OneOf {
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Any(names) => names,
        }
    }
}

/// A sign of a version.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Version {
    /// What it is then.
    pub(crate) says: String,
    /// Series that have to be there.
    #[serde(default)]
    pub(crate) has: Vec<String>,
    /// Series that must not be there.
    #[serde(default)]
    pub(crate) lacks: Vec<String>,
}

/// One way to a value; the first that a page has is taken, and never added to another.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "SourceForm")]
pub(crate) struct Source {
    pub(crate) series: String,
    /// Only series with one of these values of the label.
    pub(crate) only: BTreeMap<String, Vec<String>>,
    /// Only series without these values.
    pub(crate) without: BTreeMap<String, Vec<String>>,
    /// The page's help must hold this word.
    pub(crate) help: Option<String>,
    /// The page's help must not hold this word.
    pub(crate) not_help: Option<String>,
    pub(crate) unit: Unit,
    pub(crate) rule: Rule,
    /// A part of a histogram as a total.
    pub(crate) part: Option<Part>,
    /// The value is a ratio: `series` over the sum of these.
    pub(crate) over: Vec<String>,
    /// The value is a mean: `series` is a sum, this its count.
    pub(crate) count: Option<String>,
    /// What values can be; others are the sentinels of unknown.
    pub(crate) valid: Option<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a series is a name, or a table with `series` and known keys")]
enum SourceForm {
    Name(String),
    Table(SourceTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceTable {
    series: String,
    #[serde(default)]
    only: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    without: BTreeMap<String, Vec<String>>,
    help: Option<String>,
    not_help: Option<String>,
    #[serde(default)]
    unit: Unit,
    rule: Option<Rule>,
    part: Option<Part>,
    #[serde(default)]
    over: Vec<String>,
    count: Option<String>,
    valid: Option<(f64, f64)>,
}

impl From<SourceForm> for Source {
    fn from(form: SourceForm) -> Self {
        let table = match form {
            SourceForm::Table(table) => table,
            SourceForm::Name(series) => SourceTable {
                series,
                only: BTreeMap::new(),
                without: BTreeMap::new(),
                help: None,
                not_help: None,
                unit: Unit::One,
                rule: None,
                part: None,
                over: Vec::new(),
                count: None,
                valid: None,
            },
        };
        Self {
            series: table.series,
            only: table.only,
            without: table.without,
            help: table.help,
            not_help: table.not_help,
            unit: table.unit,
            rule: table.rule.unwrap_or(Rule::Sum),
            part: table.part,
            over: table.over,
            count: table.count,
            valid: table.valid,
        }
    }
}

/// What an engine counts in, against what is told here: seconds, bytes, joules, ratios of one, per cent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub(crate) enum Unit {
    /// The same.
    #[default]
    #[serde(rename = "1")]
    One,
    /// Thousandths: ms, mJ.
    #[serde(rename = "milli")]
    Milli,
    /// Millionths.
    #[serde(rename = "micro")]
    Micro,
    /// 2^20 bytes.
    #[serde(rename = "MiB")]
    Mebi,
    /// Per cent, where a ratio is told.
    #[serde(rename = "percent")]
    Percent,
    /// A ratio, where per cent are told.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    pub(crate) fn scale(self) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Milli => 1e-3,
            Self::Micro => 1e-6,
            Self::Mebi => 1_048_576.0,
            Self::Percent => 1e-2,
            Self::Ratio => 1e2,
        }
    }
}

/// How the label sets that are left become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rule {
    /// They are parts.
    Sum,
    /// The largest stands for all.
    Max,
    /// Each has the same weight: ratios of equal parts.
    Avg,
}

/// A part of a histogram or a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    Sum,
    Count,
}

impl Engine {
    /// Reads an engine file; `file` names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let wrong = |at: usize, problem: String| Error::Engine {
            file: file.to_owned(),
            line: text.get(..at).map_or(1, |before| before.matches('\n').count() + 1),
            problem,
        };
        let engine: Self = toml::from_str(text)
            .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
        for name in engine.metrics.keys().chain(engine.notes.keys()) {
            if shape(name).is_none() {
                let at = text.find(name.as_str()).unwrap_or(0);
                return Err(wrong(at, format!("no value is called `{name}`")));
            }
        }
        if engine.detect.iter().any(String::is_empty) || engine.detect.is_empty() {
            return Err(wrong(0, "`detect` needs the start of a series' name".to_owned()));
        }
        Ok(engine)
    }

    /// The names a series may have on a page: each prefix for the `*`.
    pub(crate) fn names<'a>(&'a self, series: &'a str) -> impl Iterator<Item = String> + 'a {
        let rest = series.strip_prefix('*');
        let prefixed =
            self.prefixes.iter().filter_map(move |prefix| rest.map(|rest| format!("{prefix}{rest}")));
        prefixed.chain(rest.is_none().then(|| series.to_owned()))
    }

    /// Whether a page has series of this engine.
    pub(crate) fn is_on(&self, page: &page::Page) -> bool {
        page.names().any(|name| self.detect.iter().any(|start| name.starts_with(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"x\"\ntitle = \"X\"\nrole = \"engine\"\ndetect = [\"x:\"]\nprefixes = [\"x:\", \"x_\"]\n[metrics]\n";

    #[test]
    fn files() {
        let engine = Engine::parse(
            "f",
            &format!("{GOOD}ttft = [\"*ttft\", {{ series = \"old\", unit = \"milli\" }}]"),
        )
        .unwrap();
        assert_eq!(engine.names("*ttft").collect::<Vec<_>>(), ["x:ttft", "x_ttft"]);
        assert_eq!(engine.names("old").collect::<Vec<_>>(), ["old"]);
        assert_eq!(engine.metrics["ttft"][1].unit, Unit::Milli);
    }

    #[test]
    fn errors_have_lines() {
        for (more, message) in [
            ("ttfd = [\"x\"]", "f, line 7: no value is called `ttfd`"),
            ("ttft = 5", "f, line 7: invalid type"),
            ("ttft = [{ serie = \"x\" }]", "f, line 7: a series is a name, or a table"),
        ] {
            let error = Engine::parse("f", &format!("{GOOD}{more}")).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
