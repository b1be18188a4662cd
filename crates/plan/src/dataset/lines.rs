//! The records of a text file, one at a time in bounded memory: its lines, or the elements of a JSON array.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::DatasetError;

/// Most bytes of one record. Files with lines of 100 MB exist.
pub(super) const LONGEST: usize = 256 << 20;

/// How a file holds its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One a line.
    Lines,
    /// The elements of one JSON array.
    Array,
}

/// Where a record is in its file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where it begins.
    pub at: u64,
    /// How long it is.
    pub len: u32,
}

/// The records of a file.
pub(super) struct Records {
    path: PathBuf,
    input: Box<dyn BufRead>,
    shape: Shape,
    /// The line that the next byte is in, from 1.
    line: u64,
    record: Vec<u8>,
    /// Bytes consumed, and how many of them when the record began.
    position: u64,
    start: u64,
    is_packed: bool,
    is_over: bool,
    limit: usize,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("path", &self.path).field("line", &self.line).finish_non_exhaustive()
    }
}

impl Records {
    /// Opens a file; one that gzip has packed is unpacked on the way.
    pub(super) fn open(path: &Path) -> Result<Self, DatasetError> {
        let read = |source| DatasetError::Read { path: path.to_owned(), source };
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(read)?);
        if file.fill_buf().map_err(read)?.starts_with(&[0x1f, 0x8b]) {
            let unpacked = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file));
            Self::new(path, unpacked).map(|records| Self { is_packed: true, ..records })
        } else {
            Self::new(path, file)
        }
    }

    pub(super) fn new(path: &Path, mut input: impl BufRead + 'static) -> Result<Self, DatasetError> {
        let read = |source| DatasetError::Read { path: path.to_owned(), source };
        let head = input.fill_buf().map_err(read)?;
        if let Some(what) = foreign(head) {
            return Err(DatasetError::Kind { path: path.to_owned(), what: what.to_owned() });
        }
        let mark = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        input.consume(mark);
        let mut records = Self {
            path: path.to_owned(),
            input: Box::new(input),
            shape: Shape::Lines,
            line: 1,
            record: Vec::new(),
            position: mark as u64,
            start: 0,
            is_packed: false,
            is_over: false,
            limit: LONGEST,
        };
        if records.skip_blank()? == Some(b'[') && records.begins_an_array()? {
            records.consume(1);
            records.shape = Shape::Array;
        }
        Ok(records)
    }

    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Where the last record is in the file, unless that is packed.
    pub(super) fn place(&self) -> Option<Place> {
        (!self.is_packed).then_some(Place { at: self.start, len: self.record.len() as u32 })
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.position += bytes as u64;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next record that is not blank, with the line where it begins.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &str)>, DatasetError> {
        if self.is_over {
            return Ok(None);
        }
        let found = match self.shape {
            Shape::Lines => self.next_line(),
            Shape::Array => self.next_element(),
        };
        let line = match found {
            Ok(Some(line)) => line,
            Ok(None) => {
                self.is_over = true;
                return Ok(None);
            }
            Err(error) => {
                self.is_over |= !error.is_of_one_record();
                return Err(error);
            }
        };
        match std::str::from_utf8(&self.record) {
            Ok(text) => Ok(Some((line, text.trim_end_matches(['\r', '\n'])))),
            Err(error) => {
                let why = format!(
                    "it is not UTF-8 (byte {} of the record); convert the file, for instance with `iconv -f latin1 \
                     -t utf-8`",
                    error.valid_up_to() + 1
                );
                Err(self.bad(line, why))
            }
        }
    }

    fn next_line(&mut self) -> Result<Option<u64>, DatasetError> {
        loop {
            let line = self.line;
            self.record.clear();
            self.start = self.position;
            let mut limited = self.input.by_ref().take(self.limit as u64 + 1);
            let read = limited
                .read_until(b'\n', &mut self.record)
                .map_err(|source| DatasetError::Read { path: self.path.clone(), source })?;
            self.position += read as u64;
            if read == 0 {
                return Ok(None);
            }
            if self.record.len() > self.limit {
                return Err(self.too_long(line));
            }
            self.line += u64::from(self.record.ends_with(b"\n"));
            if !self.record.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(line));
            }
        }
    }

    fn next_element(&mut self) -> Result<Option<u64>, DatasetError> {
        self.record.clear();
        loop {
            match self.skip_blank()? {
                None => return Err(self.cut_off()),
                Some(b',') => self.consume(1),
                Some(b']') => return self.end_of_array(),
                Some(_) => break,
            }
        }
        let line = self.line;
        self.start = self.position;
        let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
        loop {
            let bytes = self
                .input
                .fill_buf()
                .map_err(|source| DatasetError::Read { path: self.path.clone(), source })?;
            if bytes.is_empty() {
                return Err(self.cut_off());
            }
            let mut used = 0;
            let mut is_whole = false;
            for byte in bytes {
                let is_outside = depth == 0 && !in_string;
                // The comma or bracket behind a bare value belongs to the array.
                if is_outside && matches!(byte, b',' | b']') {
                    is_whole = true;
                    break;
                }
                used += 1;
                self.line += u64::from(*byte == b'\n');
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' | b'[' if !in_string => depth += 1,
                    b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            self.record.extend_from_slice(&bytes[..used]);
            self.consume(used);
            if self.record.len() > self.limit {
                return Err(self.too_long(line));
            }
            if is_whole {
                return Ok(Some(line));
            }
        }
    }

    /// Behind the array there is nothing: another array, or lines, would be left out in silence.
    fn end_of_array(&mut self) -> Result<Option<u64>, DatasetError> {
        self.consume(1);
        if self.skip_blank()?.is_none() {
            return Ok(None);
        }
        self.is_over = true;
        let why = "there is more behind the end of the JSON array: a file is one array, or one record a line";
        Err(self.bad(self.line, why.to_owned()))
    }

    /// Skips white space; the byte behind it.
    fn skip_blank(&mut self) -> Result<Option<u8>, DatasetError> {
        loop {
            let bytes = self
                .input
                .fill_buf()
                .map_err(|source| DatasetError::Read { path: self.path.clone(), source })?;
            let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let (next, is_end) = (bytes.get(blank).copied(), bytes.is_empty());
            self.line += memchr::memchr_iter(b'\n', &bytes[..blank]).count() as u64;
            self.consume(blank);
            if next.is_some() || is_end {
                return Ok(next);
            }
        }
    }

    /// Whether the bracket ahead opens a JSON array: an object, a bracket, or a line's end follows. A text may begin
    /// with a bracket too.
    fn begins_an_array(&mut self) -> Result<bool, DatasetError> {
        let bytes =
            self.input.fill_buf().map_err(|source| DatasetError::Read { path: self.path.clone(), source })?;
        let next = bytes[1..].iter().find(|byte| !byte.is_ascii_whitespace());
        Ok(matches!(next, None | Some(b'{' | b']' | b'"')))
    }

    pub(super) fn bad(&self, line: u64, why: String) -> DatasetError {
        DatasetError::Record { path: self.path.clone(), line, why }
    }

    fn too_long(&self, line: u64) -> DatasetError {
        DatasetError::TooLong { path: self.path.clone(), line, limit: self.limit }
    }

    /// The array has no end: nothing behind this can be read.
    fn cut_off(&mut self) -> DatasetError {
        self.is_over = true;
        self.bad(self.line, "the file ends within its JSON array: it is cut off".to_owned())
    }
}

/// What a file is that is no text in UTF-8.
fn foreign(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 6] = [
        (b"\xff\xfe", "is UTF-16; convert it with `iconv -f utf-16 -t utf-8`"),
        (b"\xfe\xff", "is UTF-16; convert it with `iconv -f utf-16 -t utf-8`"),
        (b"PAR1", "is a Parquet file; write it as JSON lines first"),
        (b"\x28\xb5\x2f\xfd", "is packed by zstd; unpack it first"),
        (b"PK\x03\x04", "is a zip archive; unpack it first"),
        (b"\x80\x04", "is a Python pickle, which could run code when read; write it as JSON lines first"),
    ];
    if let Some((_, what)) = known.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(what);
    }
    let is_binary = head.iter().take(4096).any(|byte| *byte == 0);
    is_binary.then_some("is no text: it holds NUL bytes (UTF-16 without a mark, or a binary file)")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn records(bytes: &[u8]) -> Records {
        Records::new(Path::new("f"), Cursor::new(bytes.to_vec())).unwrap()
    }

    fn all(bytes: &[u8]) -> Vec<Result<(u64, String), String>> {
        let mut records = records(bytes);
        let mut all = Vec::new();
        loop {
            match records.next() {
                Ok(None) => return all,
                Ok(Some((line, text))) => all.push(Ok((line, text.to_owned()))),
                Err(error) => all.push(Err(error.to_string())),
            }
        }
    }

    #[test]
    fn lines_of_every_ending() {
        let lines = all(b"\xef\xbb\xbfone\r\n\r\n  \ntwo\nthree");
        let expect = [(1, "one"), (4, "two"), (5, "three")].map(|(line, text)| Ok((line, text.to_owned())));
        assert_eq!(lines, expect);
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\n\n"), []);
        assert_eq!(all(b"[note] a text\n").len(), 1);
    }

    #[test]
    fn a_line_in_another_encoding_is_an_error_of_its_own() {
        let lines = all(b"one\nna\xefve\nthree\n");
        assert!(lines[1].as_ref().is_err_and(|e| e.contains("line 2") && e.contains("byte 3")), "{lines:?}");
        assert_eq!(lines[2], Ok((3, "three".to_owned())));
        let packed = Records::new(Path::new("f"), Cursor::new(b"\xff\xfea\0".to_vec())).unwrap_err();
        assert!(packed.to_string().contains("UTF-16"), "{packed}");
    }

    #[test]
    fn elements_of_an_array() {
        let elements = all(b"[\n {\"a\": \"]},\\\"\"},\n\n {\"b\":\n [1]}, 3\n]\n");
        let texts: Vec<_> =
            elements.iter().map(|e| e.as_ref().map(|(line, text)| (*line, text.trim()))).collect();
        assert_eq!(texts, [Ok((2, "{\"a\": \"]},\\\"\"}")), Ok((4, "{\"b\":\n [1]}")), Ok((5, "3"))]);
        assert_eq!(all(b"[]"), []);
        assert_eq!(all(b"[{},]\n\n").len(), 1);
        for more in [&b"[{}]\n[{}]"[..], b"[{}]\n{}\n", b"[{}] and more"] {
            let found = all(more);
            assert!(
                found.len() == 2 && found[1].as_ref().is_err_and(|e| e.contains("behind the end")),
                "{found:?}"
            );
        }
        let cut = all(b"[{\"a\":1},\n{\"b\":");
        assert!(cut[1].as_ref().is_err_and(|e| e.contains("line 2") && e.contains("cut off")), "{cut:?}");
        assert_eq!(cut.len(), 2);
    }

    #[test]
    fn a_record_over_the_limit_ends_the_reading() {
        for bytes in [&b"short\nlonger than ten\nshort\n"[..], b"[{},{\"longer\":\"than ten\"},{}]"] {
            let mut records = records(bytes);
            records.limit = 10;
            assert!(records.next().unwrap().is_some());
            assert!(matches!(records.next(), Err(DatasetError::TooLong { .. })));
            assert!(records.next().unwrap().is_none());
        }
    }
}
