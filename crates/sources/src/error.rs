//! Why a page or an engine file cannot be used.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing on the page.
    #[error("the page is empty")]
    Empty,
    /// A page for people.
    #[error("the page is HTML{}, not metrics: is this the right address?", title_of(.title.as_deref()))]
    Html {
        /// Its title, where it has one.
        title: Option<String>,
    },
    /// JSON of no engine that is known.
    #[error("the page is JSON that no engine of the catalogue writes, not Prometheus text")]
    Json,
    /// More than is read.
    #[error("the page is larger than {} MiB", .limit >> 20)]
    TooLarge {
        /// Bytes that are read at most.
        limit: usize,
    },
    /// Begins as gzip but cannot be unpacked.
    #[error("the page begins like gzip but cannot be unpacked: {0}")]
    Gzip(#[source] std::io::Error),
    /// No line of the page is a sample.
    #[error("the page is no Prometheus text: line {line}: {problem}")]
    Malformed {
        /// The first line that could not be read, from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Comments, but no sample.
    #[error("the page has no samples")]
    NoSamples,
    /// An engine file is wrong.
    #[error("{file}, line {line}: {problem}")]
    Engine {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    /// What the page is instead, in a word: `empty`, `html`, `json`, `unknown`.
    pub fn format(&self) -> &'static str {
        match self {
            Self::Empty | Self::NoSamples => "empty",
            Self::Html { .. } => "html",
            Self::Json => "json",
            _ => "unknown",
        }
    }
}

fn title_of(title: Option<&str>) -> String {
    title.map_or_else(String::new, |title| format!(" (`{title}`)"))
}
