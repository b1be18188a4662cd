//! Lengths drawn from those in a file: a list, a histogram, or the lengths of a trace.
//!
//! Each line of a list is `LENGTH` or, with a header that names the columns, any of `length`, `input_tokens`,
//! `output_tokens` and `weight`. A length may be a range, `100-199`, all of which is as likely. Files that are data
//! sets or traces themselves are taken by the lengths of their records.

use std::path::Path;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ttft_model::Lengths;

use crate::dataset::{DatasetError, INPUT, OUTPUT, Rows};
use crate::draw::mixed;

/// Names of a column that holds lengths of whatever is asked for.
const LENGTH: [&str; 3] = ["length", "tokens", "len"];
/// Names of a column that says how often a line counts.
const WEIGHT: [&str; 4] = ["weight", "count", "frequency", "n"];

/// Most bytes of a list; data sets and traces are not held.
const LARGEST: u64 = 64 << 20;

/// The most that a line may weigh: sums of all lines stay finite.
const HEAVIEST: f64 = 1e15;

/// A length, or a range of them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bin {
    least: u32,
    most: u32,
}

/// Lengths with their weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Empirical {
    inputs: Vec<Option<Bin>>,
    outputs: Vec<Option<Bin>>,
    /// The weights of the lines up to each, summed up.
    until: Vec<f64>,
}

/// Which lengths of a line are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Those of prompts.
    Input,
    /// Those of answers.
    Output,
}

impl Empirical {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, DatasetError> {
        let mut found = Self::default();
        if let Some(text) = as_list(path)? {
            found.read_list(path, &text)?;
        } else {
            for row in Rows::open(path, None)? {
                let row = row?;
                let bin = |length: Option<u32>| length.map(|length| Bin { least: length, most: length });
                found.push(bin(row.input_tokens), bin(row.output_tokens), 1.0);
            }
        }
        let has_lengths = found.inputs.iter().chain(&found.outputs).any(Option::is_some);
        match found.until.last() {
            Some(total) if *total > 0.0 && has_lengths => Ok(found),
            _ => Err(DatasetError::Kind { path: path.to_owned(), what: "holds no lengths".to_owned() }),
        }
    }

    fn push(&mut self, input: Option<Bin>, output: Option<Bin>, weight: f64) {
        self.inputs.push(input);
        self.outputs.push(output);
        self.until.push(self.until.last().unwrap_or(&0.0) + weight);
    }

    fn read_list(&mut self, path: &Path, text: &str) -> Result<(), DatasetError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
        let columns = lines.peek().and_then(|(_, first)| Columns::of_header(first));
        if columns.is_some() {
            lines.next();
        }
        let columns = columns.unwrap_or_default();
        for (at, line) in lines {
            let bad = |why: String| DatasetError::Record { path: path.to_owned(), line: at as u64 + 1, why };
            let cells: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
            let bin = |column: Option<usize>| match column.and_then(|column| cells.get(column)) {
                None | Some(&"") => Ok(None),
                Some(text) => bin(text).map(Some).map_err(bad),
            };
            let weight = match columns.weight.and_then(|column| cells.get(column)) {
                None => 1.0,
                Some(text) => match text.parse::<f64>() {
                    Ok(weight) if (0.0..=HEAVIEST).contains(&weight) => weight,
                    _ => return Err(bad(format!("`{text}` is no weight"))),
                },
            };
            self.push(bin(columns.input)?, bin(columns.output)?, weight);
        }
        Ok(())
    }

    /// The length that number `number` draws; prompts and answers of one number come from one line.
    pub(crate) fn draw(&self, side: Side, seed: u64, number: u64) -> Option<u32> {
        let mut random = SmallRng::seed_from_u64(mixed(seed, number));
        let at = random.random_range(0.0..*self.until.last()?);
        let line = self.until.partition_point(|until| *until <= at);
        let Bin { least, most } = self.side(side).get(line).copied().flatten()?;
        Some(random.random_range(least..=most).max(1))
    }

    /// The longest that can come.
    pub(crate) fn most(&self, side: Side) -> Option<u32> {
        self.side(side).iter().flatten().map(|bin| bin.most).max()
    }

    /// A file of one kind of lengths has them for whatever is asked.
    fn side(&self, side: Side) -> &[Option<Bin>] {
        let (own, other) = match side {
            Side::Input => (&self.inputs, &self.outputs),
            Side::Output => (&self.outputs, &self.inputs),
        };
        if own.iter().any(Option::is_some) { own } else { other }
    }

    /// Whether its lines say how long prompts and answers are.
    pub(crate) fn has_pairs(&self) -> bool {
        [&self.inputs, &self.outputs].iter().all(|side| side.iter().any(Option::is_some))
    }
}

/// Where the columns of a list are.
#[derive(Debug, Clone, Copy)]
struct Columns {
    input: Option<usize>,
    output: Option<usize>,
    weight: Option<usize>,
}

impl Default for Columns {
    /// Those of a list without a header.
    fn default() -> Self {
        Self { input: Some(0), output: None, weight: Some(1) }
    }
}

impl Columns {
    fn of_header(line: &str) -> Option<Self> {
        let names: Vec<String> =
            line.split([',', ';', '\t']).map(|name| name.trim().to_ascii_lowercase()).collect();
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        let (input, output) = (find(&INPUT).or(find(&LENGTH)), find(&OUTPUT));
        (input.is_some() || output.is_some()).then(|| Self { input, output, weight: find(&WEIGHT) })
    }
}

/// A length or a range of lengths.
fn bin(text: &str) -> Result<Bin, String> {
    let length = |text: &str| match text.trim().parse::<f64>() {
        Ok(length) if (0.0..=f64::from(Lengths::LONGEST)).contains(&length) => Ok(length.round() as u32),
        _ => Err(format!("`{text}` is no number of tokens")),
    };
    let (least, most) = match text.split_once('-') {
        Some((least, most)) => (length(least)?, length(most)?),
        None => (length(text)?, length(text)?),
    };
    if least > most { Err(format!("`{text}` ends before it begins")) } else { Ok(Bin { least, most }) }
}

/// The text of a file that is a list of lengths: its first line is a length, or a header that names one.
fn as_list(path: &Path) -> Result<Option<String>, DatasetError> {
    let read = |source| DatasetError::Read { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(read)?.len() > LARGEST {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(read)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(None) };
    let Some(first) = text.lines().find(|line| !line.trim().is_empty()) else { return Ok(None) };
    let first_cell = first.split([',', ';', '\t']).next().unwrap_or_default();
    let is_header = Columns::of_header(first).is_some() && !first.starts_with(['{', '[']);
    Ok((is_header || bin(first_cell).is_ok()).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Empirical, DatasetError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        Empirical::load(file.path())
    }

    /// How often each pair comes in a thousand draws.
    fn draws(text: &str) -> std::collections::BTreeMap<(Option<u32>, Option<u32>), u32> {
        let lengths = load(text).unwrap();
        let mut seen = std::collections::BTreeMap::new();
        for number in 0..1000 {
            let pair = (lengths.draw(Side::Input, 3, number), lengths.draw(Side::Output, 3, number));
            *seen.entry(pair).or_default() += 1;
        }
        seen
    }

    #[test]
    fn lists_and_histograms() {
        let seen = draws("100\r\n300\r\n\r\n");
        assert_eq!(
            seen.keys().copied().collect::<Vec<_>>(),
            [(Some(100), Some(100)), (Some(300), Some(300))]
        );
        let seen = draws("\u{feff}length,weight\n10,9\n20,1\n30,0");
        let tens = seen[&(Some(10), Some(10))];
        assert!(seen.len() == 2 && (850..950).contains(&tens), "{seen:?}");
        let binned = load("length;count\n100-199;3").unwrap();
        let all: Vec<u32> = (0..500).filter_map(|number| binned.draw(Side::Input, 1, number)).collect();
        assert!(all.iter().all(|length| (100..200).contains(length)));
        assert!(all.iter().min() < Some(&110) && all.iter().max() > Some(&190));
        assert_eq!(binned.most(Side::Output), Some(199));
    }

    #[test]
    fn pairs_are_drawn_together() {
        for text in [
            "input_tokens,output_tokens\n100,1\n200,2\n",
            "output_tokens,weight,input_tokens\n1,5,100\n2,5,200",
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799500,100,1\n2023-11-16 18:17:04,200,2",
            "{\"input_length\": 100, \"output_length\": 1}\n{\"input_length\": 200, \"output_length\": 2}",
        ] {
            assert!(load(text).unwrap().has_pairs());
            let seen = draws(text);
            assert_eq!(
                seen.keys().copied().collect::<Vec<_>>(),
                [(Some(100), Some(1)), (Some(200), Some(2))],
                "{text}"
            );
        }
    }

    #[test]
    fn what_holds_no_lengths() {
        for (text, part) in [
            ("", "holds no prompt"),
            ("{\"prompt\": \"a\"}", "holds no lengths"),
            ("100\nmany\n", "line 2: `many` is no number of tokens"),
            ("200-100\n", "holds no"),
            ("length,weight\n5,-1", "line 2: `-1` is no weight"),
            ("length,weight\n5,1e308\n6,1e308", "line 2: `1e308` is no weight"),
            ("length,weight\n5,0", "holds no lengths"),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
