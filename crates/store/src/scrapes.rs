//! What was scraped beside a run: `server.jsonl` and `gpu.jsonl`, one scrape a line.
//!
//! A killed run may leave half a line at the end; the reader passes over it, and over any other line that is none.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};
use ttft_model::Nanos;

use crate::StoreError;
use crate::error::io_error;
use crate::folder::names;
use crate::redact::Secrets;

/// The schema that the first line of such a file names.
pub const SCRAPES_SCHEMA: &str = "ttft.scrapes/1";

/// Which of the two files a scrape is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScrapeFile {
    /// Engines, gateways and whatever else stands on the way of a request.
    Server,
    /// Accelerators.
    Gpu,
}

impl ScrapeFile {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Server, Self::Gpu];

    /// Its name in the run folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => names::SERVER,
            Self::Gpu => names::GPU,
        }
    }
}

/// Why a page was scraped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScrapeKind {
    /// A second had passed.
    Sample,
    /// A stage was about to begin: nothing of it was sent yet.
    Begin,
    /// A stage was over: nothing of it was under way any more.
    End,
}

/// One scrape of one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scrape {
    /// Why.
    pub kind: ScrapeKind,
    /// The URL without its secrets, or the program.
    pub source: String,
    /// Index into the plan's stages; `None` in the warm-up and between stages.
    pub stage: Option<u32>,
    /// When the page was asked for, on the axis of the run.
    pub at_ns: Nanos,
    /// The same on the wall clock (nanoseconds since 1970).
    pub unix_ns: i64,
    /// Until it was there, or given up.
    pub duration_ns: Nanos,
    /// What the page is of, by its name in the catalogue.
    #[serde(default)]
    pub engine: Option<String>,
    /// Canonical values that are no distributions; what the page did not tell is not there.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
    /// Why there is no page: a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Missed>,
    /// The page itself, at the edges of a stage: what a window is computed from.
    #[serde(default, rename = "page_gz", with = "packed", skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// Why there is no page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// In a word: an error class of a request, or what came instead of a page.
    pub class: String,
    /// In words.
    pub message: String,
}

impl Scrape {
    /// Without the secrets that a server may repeat.
    pub(crate) fn scrubbed(&self, secrets: &Secrets) -> Self {
        let clean = |text: &str| secrets.scrub(text).into_owned();
        Self {
            source: clean(&self.source),
            error: self
                .error
                .as_ref()
                .map(|missed| Missed { message: clean(&missed.message), ..missed.clone() }),
            page: self.page.as_deref().map(clean),
            ..self.clone()
        }
    }
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) schema: String,
}

impl Head {
    pub(crate) fn known() -> Self {
        Self { schema: SCRAPES_SCHEMA.to_owned() }
    }
}

/// How many scrapes a file had, and how many lines could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrapesRead {
    /// Scrapes.
    pub scrapes: u64,
    /// Lines that are none; the last one of a killed run may be.
    pub unreadable: u64,
}

/// Tells each scrape of a run, in the order in which they were made; nothing where nothing was scraped.
pub fn read_scrapes(
    folder: &Path,
    file: ScrapeFile,
    mut each: impl FnMut(Scrape),
) -> Result<ScrapesRead, StoreError> {
    let path = folder.join(file.name());
    let mut read = ScrapesRead::default();
    let mut lines = match File::open(&path) {
        Ok(file) => BufReader::new(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(read),
        Err(e) => return Err(io_error("read", &path)(e)),
    };
    let mut line = Vec::new();
    let mut known = false;
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(io_error("read", &path))? == 0 {
            return Ok(read);
        }
        if !known {
            known = true;
            match serde_json::from_slice::<Head>(&line) {
                Ok(head) if head.schema == SCRAPES_SCHEMA => continue,
                Ok(head) => {
                    let (path, found) = (path.clone(), head.schema);
                    return Err(StoreError::Version { path, found, known: SCRAPES_SCHEMA });
                }
                // Torn before the end of its first line, or not ours: no line of it will be read.
                Err(_) => {}
            }
        }
        match serde_json::from_slice(&line) {
            Ok(scrape) => {
                read.scrapes += 1;
                each(scrape);
            }
            Err(_) => read.unreadable += 1,
        }
    }
}

/// A page as base64 of gzip: such text shrinks to a tenth.
mod packed {
    use std::io::{Read, Write};

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use flate2::Compression;
    use flate2::read::GzDecoder;
    use flate2::write::GzEncoder;
    use serde::{Deserialize, Deserializer, Serializer, de, ser};

    /// Nothing larger was ever packed.
    const MOST: u64 = 64 << 20;

    #[expect(clippy::ref_option, reason = "as serde calls it")]
    pub(super) fn serialize<S: Serializer>(page: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
        let Some(page) = page else { return to.serialize_none() };
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(page.as_bytes()).map_err(ser::Error::custom)?;
        to.serialize_str(&BASE64_STANDARD.encode(packer.finish().map_err(ser::Error::custom)?))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let bytes = BASE64_STANDARD.decode(text).map_err(de::Error::custom)?;
        let mut page = String::new();
        GzDecoder::new(&bytes[..]).take(MOST).read_to_string(&mut page).map_err(de::Error::custom)?;
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn scrape(at: i64) -> Scrape {
        Scrape {
            kind: ScrapeKind::Begin,
            source: "http://h:8000/metrics".to_owned(),
            stage: Some(1),
            at_ns: Nanos(at),
            unix_ns: 1_700_000_000_000_000_000 + at,
            duration_ns: Nanos(3_000_000),
            engine: Some("vllm".to_owned()),
            values: BTreeMap::from([("running".to_owned(), 3.0), ("kv_cache_usage_ratio".to_owned(), 0.25)]),
            error: None,
            page: Some("x_total 1\n".to_owned()),
        }
    }

    fn read(text: &str) -> Result<(Vec<Scrape>, ScrapesRead), StoreError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(names::SERVER), text).unwrap();
        let mut all = Vec::new();
        let read = read_scrapes(folder.path(), ScrapeFile::Server, |scrape| all.push(scrape))?;
        Ok((all, read))
    }

    fn line(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap() + "\n"
    }

    #[test]
    fn what_is_written_is_read() {
        let all = [scrape(1), Scrape { kind: ScrapeKind::Sample, page: None, stage: None, ..scrape(2) }];
        let text = line(&Head::known()) + &all.iter().map(line).collect::<String>();
        assert!(text.contains("\"page_gz\":\"H4s") && text.matches("page_gz").count() == 1, "{text}");
        assert_eq!(read(&text).unwrap(), (all.into(), ScrapesRead { scrapes: 2, unreadable: 0 }));
    }

    #[test]
    fn a_torn_line_is_passed_over() {
        let whole = line(&Head::known()) + &line(&scrape(1)) + &line(&scrape(2));
        let (all, told) = read(&whole[..whole.len() - 20]).unwrap();
        assert_eq!((all.len(), told.unreadable), (1, 1));
        assert_eq!(read("{\"sche").unwrap().1, ScrapesRead { scrapes: 0, unreadable: 1 });
        assert_eq!(read("").unwrap().1, ScrapesRead::default());
    }

    #[test]
    fn another_version_is_told() {
        let told = read("{\"schema\":\"ttft.scrapes/9\"}\n").unwrap_err().to_string();
        assert!(told.contains("ttft.scrapes/9") && told.contains("newer"), "{told}");
    }

    #[test]
    fn no_file_is_no_scrape() {
        let folder = tempfile::tempdir().unwrap();
        let read = read_scrapes(folder.path(), ScrapeFile::Gpu, |_| unreachable!()).unwrap();
        assert_eq!(read, ScrapesRead::default());
    }

    #[test]
    fn secrets_go() {
        let mut secrets = Secrets::default();
        secrets.add("sk-hidden-0");
        let mut telling = scrape(1);
        telling.page = Some("x{key=\"sk-hidden-0\"} 1\n".to_owned());
        let message = "no sk-hidden-0".to_owned();
        telling.error = Some(Missed { class: "http_auth".to_owned(), message });
        let clean = telling.scrubbed(&secrets);
        assert_eq!(clean.page.as_deref(), Some("x{key=\"<redacted>\"} 1\n"));
        assert_eq!(clean.error.unwrap().message, "no <redacted>");
    }

    proptest! {
        #[test]
        fn any_lines_are_survived(text in "\\PC{0,200}") {
            let _ = read(&(line(&Head::known()) + &text));
            let _ = read(&text);
        }

        #[test]
        fn any_page_survives(page in "\\PC{0,300}") {
            let kept = Scrape { page: Some(page), ..scrape(5) };
            let (all, _) = read(&(line(&Head::known()) + &line(&kept))).unwrap();
            prop_assert_eq!(&all[0], &kept);
        }
    }
}
