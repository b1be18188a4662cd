//! Log files of servers and gateways: the lines of one request, and how their clock stands to ours.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use regex::{Regex, RegexBuilder};
use ttft_model::Record;

use super::clocks::{Bounds, Clock, compare};
use super::time::{Told, told};
use crate::usage;

/// A line is read up to here.
const LONGEST: u64 = 64 << 10;
/// A pattern may take so much memory.
const PATTERN_SIZE: usize = 1 << 20;
/// So many lines of other requests are compared to find how the clocks stand.
const ENOUGH: usize = 2_000;
/// So many lines of the request itself are kept of a file.
const MOST_LINES: usize = 1_000;

/// Where lines have their time when no pattern says so, tried in turn: RFC 3339 and its kin (Envoy, LiteLLM, most JSON),
/// nginx and Apache, vLLM, and seconds or milliseconds since 1970.
const TIMES: [&str; 4] = [
    r"(?<time>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)",
    r"(?<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})",
    r"\b(?<time>\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)",
    r"\b(?<time>1\d{9}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?)\b",
];

/// An id of ours within a text: a UUID, or the 32 digits of one or of a trace.
const ID: &str = r"[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}";

/// How lines are understood.
pub(super) struct Reader {
    given: Vec<Regex>,
    times: Vec<Regex>,
    id: Regex,
    /// Of lines that name none.
    year: i64,
}

/// A line of the request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: u64,
    pub(super) text: String,
    /// By the log's clock; `None` if the line names no time that is understood.
    pub(super) told: Option<Told>,
    /// What else the pattern has a name for.
    pub(super) fields: BTreeMap<String, String>,
}

/// What a file says of the request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    pub(super) lines: Vec<Line>,
    /// Lines of it that were not kept.
    pub(super) left_out: u64,
    /// `None` if no line of a request of the run has a time.
    pub(super) clock: Option<Clock>,
}

/// When each request of the run began and was over, on our wall clock; by its id, and by its trace's.
pub(super) type Spans = HashMap<[u8; 16], (i64, i64)>;

impl Reader {
    /// With the patterns that users gave; each is to name the id.
    pub(super) fn new(patterns: &[String], year: i64) -> anyhow::Result<Self> {
        let given = patterns.iter().map(|text| pattern(text)).collect::<anyhow::Result<_>>()?;
        let known = |text: &str| Regex::new(text).context("a pattern of ours is wrong");
        let times = TIMES.iter().map(|text| known(text)).collect::<anyhow::Result<_>>()?;
        Ok(Self { given, times, id: known(ID)?, year })
    }

    /// Reads a file for the lines of one request.
    pub(super) fn read(&self, path: &Path, wanted: &Record, spans: &Spans) -> anyhow::Result<Log> {
        let cannot = || format!("cannot read {}", path.display());
        let mut file = BufReader::new(File::open(path).with_context(cannot).map_err(usage)?);
        let mut log = Log { path: path.to_owned(), lines: Vec::new(), left_out: 0, clock: None };
        let mut bounds = Vec::new();
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            if file.by_ref().take(LONGEST).read_until(b'\n', &mut bytes).with_context(cannot)? == 0 {
                break;
            }
            if bytes.len() as u64 == LONGEST && bytes.last() != Some(&b'\n') {
                skip_rest(&mut file).with_context(cannot)?;
            }
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_end();
            let Some(found) = self.line(number, text, |id| spans.contains_key(id)) else { continue };
            if bounds.len() < ENOUGH
                && let (Some(told), Some((start, end))) = (found.line.told, spans.get(&found.id))
            {
                bounds.push(Bounds::of(told.unix_ns, told.step_ns, *start, *end));
            }
            if found.id != wanted.id.0 && found.id != wanted.trace.trace {
                continue;
            }
            if log.lines.len() < MOST_LINES {
                log.lines.push(found.line);
            } else {
                log.left_out += 1;
            }
        }
        log.clock = compare(&bounds);
        Ok(log)
    }

    /// A line, if it names an id that is known.
    fn line(&self, number: u64, text: &str, is_known: impl Fn(&[u8; 16]) -> bool) -> Option<Found> {
        let known = |text: &str| {
            self.id.find_iter(text).filter_map(|found| sixteen(found.as_str())).find(|id| is_known(id))
        };
        let clean = |text: &str| ttft_store::redact::line(text).into_owned();
        let line = |told: Option<Told>, fields| Line { number, text: clean(text), told, fields };
        if self.given.is_empty() {
            let id = known(text)?;
            let told = self
                .times
                .iter()
                .find_map(|time| told(time.captures(text)?.name("time")?.as_str(), self.year));
            return Some(Found { id, line: line(told, BTreeMap::new()) });
        }
        self.given.iter().find_map(|pattern| {
            let parts = pattern.captures(text)?;
            let id = known(parts.name("id")?.as_str())?;
            let told = parts.name("time").and_then(|time| told(time.as_str(), self.year));
            let names = pattern.capture_names().flatten().filter(|name| !["id", "time"].contains(name));
            let fields = names.filter_map(|name| Some((name.to_owned(), clean(parts.name(name)?.as_str()))));
            Some(Found { id, line: line(told, fields.collect()) })
        })
    }
}

struct Found {
    id: [u8; 16],
    line: Line,
}

fn pattern(text: &str) -> anyhow::Result<Regex> {
    let pattern = RegexBuilder::new(text)
        .size_limit(PATTERN_SIZE)
        .build()
        .map_err(|error| usage(anyhow!("--pattern: {error}")))?;
    if !pattern.capture_names().flatten().any(|name| name == "id") {
        return Err(usage(anyhow!(
            "--pattern has no group for the request's id: put (?<id>…) around it, and (?<time>…) around the time"
        )));
    }
    Ok(pattern)
}

fn sixteen(text: &str) -> Option<[u8; 16]> {
    // Read as a request's id, for the form is the same.
    text.parse::<ttft_model::RequestId>().ok().map(|id| id.0)
}

fn skip_rest(file: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = file.fill_buf()?;
        let (used, done) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        file.consume(used);
        if done {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use ttft_model::RequestId;

    use super::*;

    const START: i64 = 1_796_055_605_000_000_000;
    const TEXT: &str = "019a1b2c-3d4e-7f50-8a6b-0123456789ab";

    fn wanted() -> Record {
        let mut record = Record { id: TEXT.parse().unwrap(), ..Record::default() };
        record.trace.trace = [0xab; 16];
        record
    }

    fn read(text: &str, patterns: &[&str]) -> Log {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, text).unwrap();
        let wanted = wanted();
        let other: RequestId = TEXT.replace("019a", "019b").parse().unwrap();
        let span = (START, START + 2_000_000_000);
        let spans = Spans::from([(wanted.id.0, span), (wanted.trace.trace, span), (other.0, span)]);
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        Reader::new(&patterns, 2026).unwrap().read(&path, &wanted, &spans).unwrap()
    }

    #[test]
    fn logs_of_servers_and_gateways_are_understood_as_they_are() {
        let trace = "ab".repeat(16);
        for line in [
            format!(
                "10.0.0.1 - - [30/Nov/2026:16:20:05 +0000] \"POST /v1/chat/completions HTTP/1.1\" 200 {TEXT} rt=1.9"
            ),
            format!("msec=1796055605.912 id={TEXT} uht=0.120"),
            format!(
                "[2026-11-30T16:20:05.001Z] \"POST /v1 HTTP/1.1\" 200 - 0 512 1900 118 \"{TEXT}\" \"10.0.0.2:8000\""
            ),
            format!("{{\"start_time\":\"2026-11-30T16:20:05.001Z\",\"x_request_id\":\"{TEXT}\"}}"),
            format!("INFO 11-30 16:20:05 [logger.py:39] Received request chatcmpl-{TEXT}: prompt: 'x'"),
            format!("2026-11-30 16:20:05,123 - LiteLLM - INFO - traceparent 00-{trace}-abababababababab-01"),
            format!("{{\"ts\":1796055605123,\"id\":\"{}\"}}", TEXT.replace('-', "").to_uppercase()),
        ] {
            let log = read(&format!("noise 2026-01-01T00:00:00Z\n{line}\n"), &[]);
            assert_eq!(log.lines.len(), 1, "{line}");
            assert_eq!(log.lines[0].number, 2);
            assert_eq!(log.lines[0].told.unwrap().unix_ns / 1_000_000_000, START / 1_000_000_000, "{line}");
            assert_eq!(log.clock.unwrap().ahead_ns, 0, "{line}");
        }
    }

    #[test]
    fn a_pattern_says_where_things_are() {
        let text = format!("t=1796055600.5 start=1796055605.250 req={TEXT} up=0.118 st=200\n");
        let log =
            read(&text, &[r"nothing (?<id>\S+)", r"start=(?<time>\S+) req=(?<id>\S+) up=(?<upstream_s>\S+)"]);
        assert_eq!(log.lines[0].told.unwrap().unix_ns, START + 250_000_000);
        assert_eq!(log.lines[0].fields, BTreeMap::from([("upstream_s".to_owned(), "0.118".to_owned())]));
        assert_eq!(read(&text, &[r"other=(?<id>\S+)"]).lines, []);
        assert!(Reader::new(&["(?<time>x)".to_owned()], 2026).is_err());
        assert!(Reader::new(&["(?<id>".to_owned()], 2026).is_err());
        assert!(Reader::new(&["(?<id>\\w{1000}{1000})".to_owned()], 2026).is_err(), "bounded");
    }

    #[test]
    fn lines_of_others_tell_the_clock_and_are_not_kept() {
        let other = TEXT.replace("019a", "019b");
        let log = read(&format!("2026-11-30T18:20:06.5 {other}\n2026-11-30T18:20:06.7 {TEXT}\n"), &[]);
        assert_eq!(log.lines.len(), 1);
        let clock = log.clock.unwrap();
        assert_eq!((clock.ahead_ns, clock.of), (2 * 3600 * 1_000_000_000, 2));
    }

    #[test]
    fn long_lines_and_broken_bytes_are_survived() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut bytes = format!("{TEXT} ").into_bytes();
        bytes.extend(vec![b'x'; 200 << 10]);
        bytes.extend(b"\n\xff\xfe\x00 ");
        bytes.extend(TEXT.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        let wanted = wanted();
        let spans = Spans::from([(wanted.id.0, (0, 1))]);
        let log = Reader::new(&[], 2026).unwrap().read(&path, &wanted, &spans).unwrap();
        assert_eq!(log.lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2]);
        assert!(log.lines[0].text.len() <= LONGEST as usize && log.clock.is_none());
    }
}
