//! What is wrong with a plan file, and where.

use super::node::Origin;

/// A plan file, or flags beside it, that make no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// No TOML.
    #[error("{at}: {what}")]
    Toml {
        /// Where.
        at: String,
        /// What the parser says.
        what: String,
    },
    /// A key that nothing has.
    #[error("{at}: unknown key `{key}`{}; {}", inside(.table), guess(.nearest.as_deref(), .known))]
    Unknown {
        /// Where.
        at: String,
        /// The key.
        key: String,
        /// The table that it stands in, as a path; empty for the file itself.
        table: String,
        /// The known key that it is likely meant to be.
        nearest: Option<String>,
        /// All known keys.
        known: Vec<String>,
    },
    /// A value of the wrong kind, or one that says nothing.
    #[error("{at}: `{key}`: {what}")]
    Value {
        /// Where.
        at: String,
        /// The key, as a path.
        key: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A path that leads nowhere.
    #[error("--set {given}: {what}")]
    Path {
        /// As given.
        given: String,
        /// Why not.
        what: String,
    },
    /// A flag that has nothing to hold on to in this plan.
    #[error("{flag}: {what}")]
    Flag {
        /// The flag.
        flag: String,
        /// Why not.
        what: String,
    },
    /// A plan that contradicts itself, or would do nothing.
    #[error("{0}")]
    Contradiction(String),
}

fn inside(table: &str) -> String {
    if table.is_empty() { String::new() } else { format!(" in {table}") }
}

fn guess(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// The known name that a misspelt one is likely meant to be: no more than half of its letters differ.
pub(super) fn likely<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (nearest, letters) = ttft_model::nearest(name, known)?;
    (letters * 2 <= name.chars().count().max(2)).then_some(nearest)
}

impl Origin {
    /// Where it is, for people; `file` is the file's name.
    pub(super) fn place(&self, file: &str) -> String {
        match self {
            Self::Implied => file.to_owned(),
            Self::Line(line) => format!("{file}, line {line}"),
            Self::Flag(flag) => flag.to_string(),
        }
    }
}
