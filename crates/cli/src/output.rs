//! Where text goes: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use ttft_show::Style;

/// Widest line that is pleasant to read.
const WIDEST: usize = 120;

/// The style of a terminal, or of a pipe.
pub(crate) fn style(stream: &impl IsTerminal) -> Style {
    let terminal = stream.is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = terminal_size::terminal_size().filter(|_| terminal).map(|(width, _)| usize::from(width.0));
    Style { color, width: asked.or(seen).unwrap_or(100).min(WIDEST) }
}

/// Prints a result. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("cannot write to standard output"),
        _ => Ok(()),
    }
}

/// Prints a line for people. Nobody is told if nobody reads it.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A result for machines or for people: JSON on standard output and the text on standard error, or only the text.
pub(crate) fn show(
    json: bool,
    value: &impl serde::Serialize,
    text: impl Fn(&Style) -> String,
) -> anyhow::Result<()> {
    if json {
        note(text(&style(&io::stderr())).trim_end());
        print(&json_text(value)?)
    } else {
        print(&text(&style(&io::stdout())))
    }
}

/// Indented JSON in which nothing is left that a terminal could take for a command: what JSON allows and terminals
/// obey is escaped as well.
pub(crate) fn json_text(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let json = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    let mut text = harmless(&json);
    text.push('\n');
    Ok(text)
}

/// JSON with everything that a terminal could take for a command escaped.
pub(crate) fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if c != '\n' && ttft_show::is_hostile(c) {
            let mut units = [0; 2];
            text.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    text
}
