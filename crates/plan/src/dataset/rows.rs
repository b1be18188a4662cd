//! The rows of a file, whatever its format, one at a time.

use std::path::Path;

use serde_json::Value;

use super::csv::Columns;
use super::lines::{Place, Records, Shape};
use super::{DatasetError, Format, Instant, Item, format, json};

/// One request, prompt or conversation of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Where it begins, from 1.
    pub line: u64,
    /// When it arrived.
    pub time: Option<Instant>,
    /// How long after the answer of the turn before it, in ms.
    pub delay_ms: Option<f64>,
    /// Tokens of its prompt.
    pub input_tokens: Option<u32>,
    /// Tokens of its answer.
    pub output_tokens: Option<u32>,
    /// Ids of the blocks of its prompt; equal ones at the front are equal text.
    pub blocks: Vec<u64>,
    /// The conversation that it belongs to.
    pub session: Option<String>,
    /// Its own name.
    pub id: Option<String>,
    /// Turns or messages in it.
    pub turns: Option<u32>,
    /// Its conversation begins with an answer.
    pub begins_with_answer: bool,
    /// The prompt itself.
    pub item: Option<Item>,
    /// Where it is in the file, unless that is packed.
    pub place: Option<Place>,
}

impl Row {
    /// An empty row of that line.
    pub(super) fn at(line: u64) -> Self {
        Self { line, ..Self::default() }
    }
}

/// How much of a conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// What a request that stands alone is made of.
    First,
    /// What is asked in every turn.
    Whole,
}

/// How a record becomes a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reader {
    Table(Columns),
    Json(Part),
    Text,
}

/// The rows of a file. After an error of one record the next row can still be asked for.
#[derive(Debug)]
pub struct Rows {
    records: Records,
    reader: Reader,
    format: Format,
    /// The first record, when it is no header.
    first: Option<(u64, String, Option<Place>)>,
}

impl Rows {
    /// Opens a file, and tells its format from its first record unless one is given.
    pub fn open(path: &Path, asked: Option<Format>) -> Result<Self, DatasetError> {
        Self::of(Records::open(path)?, asked)
    }

    /// The same, with so much of each conversation.
    pub(super) fn open_part(path: &Path, part: Part) -> Result<Self, DatasetError> {
        let mut rows = Self::open(path, None)?;
        if let Reader::Json(_) = rows.reader {
            rows.reader = Reader::Json(part);
        }
        Ok(rows)
    }

    pub(super) fn of(mut records: Records, asked: Option<Format>) -> Result<Self, DatasetError> {
        let path = records.path().to_owned();
        let is_array = records.shape() == Shape::Array;
        let Some((line, first)) = records.next()? else {
            return Err(DatasetError::Empty(path));
        };
        let first = first.to_owned();
        let place = records.place();
        let bad = |why: String| DatasetError::Record { path: path.clone(), line, why };
        let is_json = is_array || first.trim_start().starts_with('{');
        let columns = Columns::of_header(&first);
        let (reader, format) = match (asked, columns) {
            (Some(Format::Text), _) => (Reader::Text, Format::Text),
            (Some(asked), columns) if asked.is_csv() => {
                let columns = columns.filter(|columns| columns.format == asked).ok_or_else(|| {
                    bad(format!(
                        "not the header of {asked}, which is {}",
                        match asked {
                            Format::Azure => "TIMESTAMP,ContextTokens,GeneratedTokens",
                            _ => "Timestamp,…,Request tokens,Response tokens,…",
                        }
                    ))
                })?;
                (Reader::Table(columns), asked)
            }
            (Some(_), _) if !is_json => return Err(bad("it is no JSON object".to_owned())),
            (Some(asked), _) => (Reader::Json(Part::First), asked),
            (None, Some(columns)) if !is_json => {
                let format = columns.format;
                (Reader::Table(columns), format)
            }
            (None, _) if is_json => {
                let record: Value = serde_json::from_str(&first).map_err(|e| bad(not_json(&e)))?;
                (Reader::Json(Part::First), format::of_json(&record).map_err(bad)?)
            }
            (None, _) if Columns::of_header(&first.replace([';', '\t'], ",")).is_some() => {
                return Err(
                    bad("its columns are not separated by commas: write them with commas".to_owned()),
                );
            }
            (None, _) => (Reader::Text, Format::Text),
        };
        let first = (!matches!(reader, Reader::Table(_))).then_some((line, first, place));
        Ok(Self { records, reader, format, first })
    }

    /// The format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// How the records are kept: `csv`, `jsonl`, `json` or `text`.
    pub const fn container(&self) -> &'static str {
        match (&self.reader, self.records.shape()) {
            (Reader::Table(_), _) => "csv",
            (Reader::Text, _) => "text",
            (Reader::Json(_), Shape::Array) => "json",
            (Reader::Json(_), Shape::Lines) => "jsonl",
        }
    }

    pub(super) fn reader(&self) -> Reader {
        self.reader.clone()
    }

    fn read(&mut self) -> Result<Option<Row>, DatasetError> {
        let (line, row, place) = if let Some((line, text, place)) = self.first.take() {
            (line, self.reader.row(line, &text), place)
        } else {
            let Some((line, text)) = self.records.next()? else {
                return Ok(None);
            };
            (line, self.reader.row(line, text), self.records.place())
        };
        row.map(|row| Some(Row { place, ..row })).map_err(|why| self.records.bad(line, why))
    }
}

impl Iterator for Rows {
    type Item = Result<Row, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl Reader {
    pub(super) fn row(&self, line: u64, text: &str) -> Result<Row, String> {
        match self {
            Self::Table(columns) => columns.row(line, text),
            Self::Json(part) => {
                let record = serde_json::from_str(text).map_err(|e| not_json(&e))?;
                json::row(line, record, *part)
            }
            Self::Text => {
                Ok(Row { item: Some(Item::Text(text.to_owned())), turns: Some(1), ..Row::at(line) })
            }
        }
    }
}

/// What is wrong with a text that should be JSON. The line that the parser names is within the record.
fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    // An object over several lines is the likely reason.
    let hint = if error.is_eof() {
        "; a record is one line, or an element of one array: `jq -c` writes it so"
    } else {
        ""
    };
    format!("it is no JSON: {what} (column {}){hint}", error.column())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn rows(bytes: &[u8], asked: Option<Format>) -> Result<Rows, DatasetError> {
        Rows::of(Records::new(Path::new("f"), Cursor::new(bytes.to_vec()))?, asked)
    }

    fn format(text: &str) -> (Format, &'static str, usize) {
        let rows = rows(text.as_bytes(), None).unwrap_or_else(|e| panic!("{e}"));
        let (format, container) = (rows.format(), rows.container());
        (format, container, rows.map(Result::unwrap).count())
    }

    #[test]
    fn formats_are_told_from_the_content() {
        for (text, expect) in [
            (
                "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799500,1,2",
                (Format::Azure, "csv", 1),
            ),
            ("Timestamp,Model,Request tokens,Response tokens\n5,GPT-4,1,2\n", (Format::BurstGpt, "csv", 1)),
            (
                r#"{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[0]}"#,
                (Format::Mooncake, "jsonl", 1),
            ),
            (r#"{"prompt":"a","output_tokens":1}"#, (Format::Vllm, "jsonl", 1)),
            (r#"{"prompt":"a","output_tokens_count":1}"#, (Format::GuideLlm, "jsonl", 1)),
            (r#"{"prompt":"a"}"#, (Format::Prompts, "jsonl", 1)),
            (r#"{"text":"a"}"#, (Format::AiPerf, "jsonl", 1)),
            (r#"{"messages":[{"role":"user","content":"a"}]}"#, (Format::Messages, "jsonl", 1)),
            (
                "[\n  {\"id\":\"a\",\"conversations\":[]},\n  {\"conversations\":[]}\n]",
                (Format::ShareGpt, "json", 2),
            ),
            ("Say hello\n\nand, again\n", (Format::Text, "text", 2)),
            ("[warm] hello\n", (Format::Text, "text", 1)),
        ] {
            assert_eq!(format(text), expect, "{text}");
        }
    }

    #[test]
    fn reading_goes_on_behind_a_bad_record() {
        let all: Vec<_> = rows(b"{\"prompt\":\"a\"}\n{oops\n{\"prompt\":\"b\"}", None).unwrap().collect();
        assert_eq!(all.len(), 3);
        let error = all[1].as_ref().unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("no JSON"), "{error}");
    }

    #[test]
    fn a_format_asked_for_is_held_to() {
        let text = b"just a text";
        assert!(rows(text, Some(Format::Azure)).unwrap_err().to_string().contains("TIMESTAMP,ContextTokens"));
        assert!(rows(text, Some(Format::Mooncake)).unwrap_err().to_string().contains("no JSON object"));
        let as_text = rows(b"{\"prompt\":\"a\"}", Some(Format::Text)).unwrap().next().unwrap().unwrap();
        assert_eq!(as_text.item, Some(Item::Text("{\"prompt\":\"a\"}".to_owned())));
        assert!(matches!(rows(b" \n", None), Err(DatasetError::Empty(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(rows) = rows(&bytes, None) {
                prop_assert!(rows.count() <= bytes.len());
            }
        }

        #[test]
        fn nearly_right_files_come_to_an_end(
            head in "(\\[|TIMESTAMP,ContextTokens,GeneratedTokens\n|Timestamp,Request tokens,Response tokens\n|)",
            body in "([{}\\[\\]\",:\n\r 0-9-]|\"prompt\"|\"messages\"|\"timestamp\"|\"input_length\"|é|\\\\){0,60}",
        ) {
            let text = head + &body;
            if let Ok(rows) = rows(text.as_bytes(), None) {
                prop_assert!(rows.count() <= text.len());
            }
        }
    }
}
