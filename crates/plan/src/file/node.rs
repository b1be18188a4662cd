//! A value of a plan file that knows where it was written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::FileError;

/// A value, and where it was written.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// The same value, wherever it was written.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Keys with their values.
pub(super) type Table = BTreeMap<String, Node>;

/// What TOML can say. Dates are of no use in a plan, and texts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Truth(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Origin {
    /// Nowhere: it follows from the others.
    #[default]
    Implied,
    /// A line of the file, from 1.
    Line(usize),
    /// A flag, as given.
    Flag(Arc<str>),
}

impl Value {
    /// A flag's value in the words of a file. `None` if TOML has no such number.
    pub(super) fn of(value: &impl Serialize, origin: &Origin) -> Option<Self> {
        toml::Value::try_from(value).ok().map(|value| Self::of_toml(value, origin))
    }

    fn of_toml(value: toml::Value, origin: &Origin) -> Self {
        let node = |value| Node { value: Self::of_toml(value, origin), origin: origin.clone() };
        match value {
            toml::Value::String(text) => Self::Text(text),
            toml::Value::Integer(number) => Self::Whole(number),
            toml::Value::Float(number) => Self::Real(number),
            toml::Value::Boolean(truth) => Self::Truth(truth),
            toml::Value::Datetime(date) => Self::Text(date.to_string()),
            toml::Value::Array(list) => Self::List(list.into_iter().map(node).collect()),
            toml::Value::Table(table) => {
                Self::Table(table.into_iter().map(|(key, value)| (key, node(value))).collect())
            }
        }
    }

    /// What kind of value it is, for messages: values themselves may be secret.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Whole(_) | Self::Real(_) => "a number",
            Self::Truth(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// As a name of a stage shows it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Truth(truth) => write!(f, "{truth}"),
            Self::List(_) | Self::Table(_) => f.write_str(self.kind()),
        }
    }
}

impl Node {
    /// A value that follows from others.
    pub(super) fn implied(value: Value) -> Self {
        Self { value, origin: Origin::Implied }
    }

    /// What a flag says.
    pub(super) fn flag(flag: &str, value: Value) -> Self {
        Self { value, origin: Origin::Flag(flag.into()) }
    }

    /// A text that follows from others.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::implied(Value::Text(text.into()))
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is called, if it is a table with a name.
    pub(super) fn name(&self) -> Option<&str> {
        self.as_table()?.get("name")?.as_text()
    }

    pub(super) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// The table that a file is. `name` is the file's, for messages.
pub(super) fn parse(text: &str, name: &str) -> Result<Table, FileError> {
    let lines = Lines::of(text);
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| lines.at(span.start));
        FileError::Toml {
            at: line.map_or(name.to_owned(), |line| format!("{name}, line {line}")),
            what: error.message().to_owned(),
        }
    })?;
    Ok(of_table(table.get_ref(), &lines))
}

/// One value as it might stand behind `key =` in a file, or the text as it is where it is no TOML.
pub(super) fn parse_value(text: &str, origin: &Origin) -> Node {
    let parsed = text.parse::<toml::Value>().ok();
    let value = parsed.map_or(Value::Text(text.to_owned()), |value| Value::of_toml(value, origin));
    Node { value, origin: origin.clone() }
}

fn of_table(table: &DeTable<'_>, lines: &Lines) -> Table {
    let pair = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let line = lines.at(key.span().start);
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), of_value(value.get_ref(), line, lines))
    };
    table.iter().map(pair).collect()
}

fn of_value(value: &DeValue<'_>, line: usize, lines: &Lines) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Whole(number),
            // Too large for a count, and said to be so by what reads it.
            Err(_) => Value::Real(number.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(number) => Value::Real(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(list) => Value::List(
            list.iter().map(|item| of_value(item.get_ref(), lines.at(item.span().start), lines)).collect(),
        ),
        DeValue::Table(table) => Value::Table(of_table(table, lines)),
    };
    Node { value, origin: Origin::Line(line) }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The number of the line, from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}
