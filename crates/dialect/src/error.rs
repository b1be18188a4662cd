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
}
