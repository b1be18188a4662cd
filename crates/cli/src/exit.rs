//! Exit codes, and how an error is told.

use std::fmt;
use std::process::ExitCode;

use crate::output;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Ok,
    /// The measured thing failed: an objective was missed.
    Failed,
    /// The command line or an input is wrong.
    Usage,
    /// Nothing could be measured.
    NotMeasured,
    /// Stopped by the user; all results are kept.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Ok => 0.into(),
            Exit::Failed => 1.into(),
            Exit::Usage => 2.into(),
            Exit::NotMeasured => 3.into(),
            Exit::Interrupted => 130.into(),
        }
    }
}

/// As the outermost context of an error an exit code stands for itself, and prints nothing.
impl fmt::Display for Exit {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Prints an error and gives the code to exit with.
pub(crate) fn report(result: anyhow::Result<Exit>) -> Exit {
    let error = match result {
        Ok(exit) => return exit,
        Err(error) => error,
    };
    let exit = error.downcast_ref::<Exit>().copied().unwrap_or(Exit::NotMeasured);
    tell(&error);
    exit
}

/// Prints an error with its causes.
pub(crate) fn tell(error: &anyhow::Error) {
    output::note(&format!("error: {}", ttft_show::escape(&words(error))));
}

/// An error with its causes, in one line. Not escaped.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Errors of libraries repeat their causes, in part.
        if !cause.is_empty() && !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
    }
    text
}
