//! The run folder: records to and from disk.
