//! The tables of Azure and `BurstGPT`: their columns by name, whatever their order.

use ttft_model::Lengths;

use super::{Format, Instant, Row, clock};

/// Where the columns are that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) format: Format,
    time: usize,
    input: usize,
    output: usize,
    session: Option<usize>,
    count: usize,
}

impl Columns {
    /// The columns that a header names; `None` when it is no header of a known table.
    pub(super) fn of_header(header: &str) -> Option<Self> {
        let names: Vec<String> = split(header).ok()?.iter().map(|name| plain(name)).collect();
        let at = |wanted: &str| names.iter().position(|name| name == wanted);
        let time = at("timestamp")?;
        let (format, input, output) = match (at("contexttokens"), at("generatedtokens")) {
            (Some(input), Some(output)) => (Format::Azure, input, output),
            _ => (Format::BurstGpt, at("requesttokens")?, at("responsetokens")?),
        };
        Some(Self { format, time, input, output, session: at("sessionid"), count: names.len() })
    }

    /// One line of the table.
    pub(super) fn row(&self, line: u64, text: &str) -> Result<Row, String> {
        let cells = split(text)?;
        if cells.len() != self.count {
            return Err(format!("{} columns where the header has {}", cells.len(), self.count));
        }
        let time = cells[self.time].trim();
        let time = if self.format == Format::Azure {
            clock::calendar(time).map(Instant::Calendar)
        } else {
            clock::billionths(time).map(Instant::Number)
        };
        let time = time.ok_or_else(|| match self.format {
            Format::Azure => format!("`{}` is no date such as 2023-11-16 18:17:03.9799500", cells[self.time]),
            _ => format!("`{}` is no number of seconds", cells[self.time]),
        })?;
        let session = self.session.map(|at| cells[at].trim()).filter(|session| !session.is_empty());
        Ok(Row {
            time: Some(time),
            input_tokens: Some(tokens(&cells[self.input])?),
            output_tokens: Some(tokens(&cells[self.output])?),
            session: session.map(str::to_owned),
            ..Row::at(line)
        })
    }
}

/// A column's name without what writers differ in.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn tokens(cell: &str) -> Result<u32, String> {
    let whole = clock::billionths(cell).filter(|value| value % 1_000_000_000 == 0);
    let count = whole.and_then(|value| u32::try_from(value / 1_000_000_000).ok());
    let count = count.filter(|count| *count <= Lengths::LONGEST);
    count.ok_or_else(|| format!("`{}` is no number of tokens", cell.trim()))
}

/// The cells of a line; quotes may hold commas, and two quotes in quotes are one.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut cells = vec![String::new()];
    let mut in_quotes = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.last_mut().ok_or("no cell")?;
        match c {
            '"' if in_quotes && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    if in_quotes { Err("a quote is not closed".to_owned()) } else { Ok(cells) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_old_and_new() {
        for (header, format) in [
            ("TIMESTAMP,ContextTokens,GeneratedTokens", Format::Azure),
            ("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens", Format::Azure),
            ("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", Format::BurstGpt),
            (
                "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
                Format::BurstGpt,
            ),
            ("timestamp, \"request_tokens\" ,response_tokens", Format::BurstGpt),
        ] {
            assert_eq!(Columns::of_header(header).map(|columns| columns.format), Some(format), "{header}");
        }
        assert_eq!(Columns::of_header("Say hello, please, Timestamp"), None);
    }

    #[test]
    fn cells_in_quotes() {
        assert_eq!(split("a,\"b,\"\"c\"\"\",").unwrap(), ["a", "b,\"c\"", ""]);
        assert!(split("a,\"b").is_err());
    }

    #[test]
    fn a_line_that_is_no_row_says_why() {
        let columns = Columns::of_header("Timestamp,Model,Request tokens,Response tokens").unwrap();
        let why = |line| columns.row(2, line).unwrap_err();
        assert!(why("1,GPT-4,2").contains("3 columns where the header has 4"));
        assert!(why("x,GPT-4,2,3").contains("`x` is no number of seconds"));
        assert!(why("1,GPT-4,-2,3").contains("`-2` is no number of tokens"));
        assert!(why("1,GPT-4,2.5,3").contains("`2.5` is no number of tokens"));
        assert_eq!(columns.row(2, "1.0,GPT-4,2.0,3").unwrap().input_tokens, Some(2));
    }
}
