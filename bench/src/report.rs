//! What a benchmark says: tables for people, figures for a file.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};

use crate::machine;

/// The result of one benchmark.
pub(crate) struct Report {
    title: &'static str,
    text: String,
    figures: Value,
}

impl Report {
    /// `text` holds the tables and remarks, `figures` the same for programs.
    pub(crate) fn new(title: &'static str, text: String, figures: &impl Serialize) -> anyhow::Result<Self> {
        Ok(Self { title, text, figures: serde_json::to_value(figures)? })
    }

    /// Prints it, and writes the figures to the file.
    pub(crate) fn publish(&self, file: Option<&Path>) -> anyhow::Result<()> {
        let machine = machine::describe();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}\n{machine}\n\n{}", self.title, self.text.trim_end())?;
        if let Some(path) = file {
            let figures = json!({"benchmark": self.title, "machine": machine, "figures": self.figures});
            std::fs::write(path, serde_json::to_vec_pretty(&figures)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// A line about what is going on, on standard error.
pub(crate) fn note(line: &str) {
    // Nobody is told if nobody reads it.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
