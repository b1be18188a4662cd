//! What can go wrong outside of a stream: a dialect file or a recording that cannot be used.

/// An error of this crate. Failures of requests are data, not errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {file}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A dialect file is wrong.
    #[error("{file}, line {line}: {problem}")]
    Dialect {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: Problem,
    },
    /// No dialect has that name.
    #[error("there is no dialect `{name}`; there are {known}")]
    UnknownDialect {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A request holds what the dialect has no words for.
    #[error("the dialect {dialect} cannot send {what}")]
    Unsayable {
        /// The dialect.
        dialect: String,
        /// What it cannot send.
        what: String,
    },
    /// A recording is not in a form that is known.
    #[error("{file}, line {line}: {problem}")]
    Recording {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// What is wrong with a dialect file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not TOML, or a key or value that a dialect does not have.
    #[error("{0}")]
    Toml(String),
    /// A key that must be there, in the file itself or in the dialect that it extends.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The dialect to extend does not exist.
    #[error("there is no dialect `{0}` to extend")]
    Extends(String),
    /// A pointer that can never be found.
    #[error("`{pointer}` cannot be found: {why}")]
    Pointer {
        /// The pointer.
        pointer: String,
        /// Why not.
        why: &'static str,
    },
    /// `at` is neither a pointer nor a list of pointers.
    #[error("`at` is a pointer or a list of pointers")]
    At,
    /// A value that cannot be compared with.
    #[error("only texts, numbers and truth values, or lists of them, can be compared with")]
    Value,
    /// More than one way to number the choices, or one that is in arrays of arrays.
    #[error("`choice` is one pointer with at most one `*`")]
    Choice,
    /// Nothing ends the stream.
    #[error(
        "nothing ends the stream: give `end_data`, `end_events`, `finish_ends = true`, `body_ends = true` or a rule with `is = \"end\"`"
    )]
    NoTerminator,
    /// The finish ends the stream, but no rule tells it.
    #[error("`finish_ends` needs a rule with `is = \"finish\"`")]
    NoFinish,
    /// No rule tells output.
    #[error("no rule says where the output is: give one with `is = \"text\"`")]
    NoOutput,
    /// The request body is not JSON.
    #[error("the request body is not JSON: {0}")]
    Body(String),
    /// The template of a part is not JSON.
    #[error("the template is not JSON: {0}")]
    Template(String),
    /// A place in the request that nothing fills.
    #[error("`{{{0}}}` is no place of a request")]
    Place(String),
    /// A header that is not `name: value`.
    #[error("a header is written `name: value`")]
    Header,
}
