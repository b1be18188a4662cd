//! Prometheus text and `OpenMetrics`: lines in, samples out.
//!
//! A line that cannot be read is named and left out: half a page is worth more than none, as long as it is said.

use std::borrow::Cow;

use crate::Error;
use crate::page::{Format, Kind, Labels, Page};

/// Lines with errors that are told one by one.
const TOLD: usize = 3;

/// Parses a page of text.
pub(crate) fn parse(text: &str) -> Result<Page, Error> {
    let mut page = Page::new(Format::Prometheus);
    let mut wrong: Vec<(usize, &'static str)> = Vec::new();
    let mut samples = 0_usize;
    let mut ended = false;
    for (number, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_matches([' ', '\t']);
        if line.is_empty() || ended {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            let words = comment.trim_start_matches([' ', '\t']);
            if words == "EOF" {
                page.format = Format::OpenMetrics;
                ended = true;
            } else {
                describe(&mut page, words);
            }
            continue;
        }
        match sample(line) {
            Ok(Sample { name, labels, value }) => {
                samples += 1;
                page.push(name, labels, value);
            }
            Err(problem) => wrong.push((number + 1, problem)),
        }
    }
    if samples == 0 {
        return Err(wrong
            .first()
            .map_or(Error::NoSamples, |(line, problem)| Error::Malformed { line: *line, problem }));
    }
    for (line, problem) in wrong.iter().take(TOLD) {
        page.marks.push(format!("line {line} is left out: {problem}"));
    }
    if wrong.len() > TOLD {
        page.marks.push(format!("{} more lines are left out", wrong.len() - TOLD));
    }
    if !ended && !text.ends_with(['\n', '\r']) {
        page.marks.push("the page does not end with a line end: it may be cut off".to_owned());
    }
    page.settle();
    Ok(page)
}

/// A comment that says something: `HELP name text`, `TYPE name kind`, `UNIT name unit`.
fn describe(page: &mut Page, words: &str) {
    let Some((keyword, rest)) = words.split_once([' ', '\t']) else { return };
    if !matches!(keyword, "HELP" | "TYPE") {
        return;
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let (name, text) = if rest.starts_with('"') {
        let Ok((name, after)) = quoted(rest) else { return };
        (name.into_owned(), after)
    } else {
        let (name, text) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        (name.to_owned(), text)
    };
    let text = text.trim_start_matches([' ', '\t']);
    let about = page.about.entry(name).or_default();
    if keyword == "HELP" {
        text.clone_into(&mut about.help);
    } else {
        about.kind = Some(match text {
            "counter" => Kind::Counter,
            "gauge" => Kind::Gauge,
            "histogram" => Kind::Histogram,
            "summary" => Kind::Summary,
            _ => Kind::Untyped,
        });
    }
}

struct Sample {
    name: String,
    labels: Labels,
    value: f64,
}

/// `name{label="value",…} value timestamp # {exemplar} …`, the name maybe in quotes within the braces.
fn sample(line: &str) -> Result<Sample, &'static str> {
    let end = line.find(['{', ' ', '\t']).unwrap_or(line.len());
    let (bare, rest) = line.split_at(end);
    let mut name = (!bare.is_empty()).then(|| bare.to_owned());
    if name.as_ref().is_some_and(|name| !is_name(name)) {
        return Err("the name of a series has letters, digits, `_` and `:`");
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inner) => labels(inner, &mut name)?,
        None => (Labels::new(), rest),
    };
    let name = name.ok_or("a series without a name")?;
    let mut words = rest.split([' ', '\t']).filter(|word| !word.is_empty());
    let value = words.next().and_then(number).ok_or("the value is no number")?;
    match words.next() {
        None | Some("#") => {}
        Some(stamp) if number(stamp).is_some() => match words.next() {
            None | Some("#") => {}
            Some(_) => return Err("something follows the timestamp"),
        },
        Some(_) => return Err("what follows the value is no timestamp"),
    }
    Ok(Sample { name, labels, value })
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '.';
    name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// What stands between braces, and what follows them. A quoted word without `=` is the name of the series.
fn labels<'a>(inner: &'a str, name: &mut Option<String>) -> Result<(Labels, &'a str), &'static str> {
    let mut labels = Labels::new();
    let mut rest = inner.trim_start_matches([' ', '\t']);
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            labels.sort();
            return Ok((labels, after));
        }
        let (key, after) = if rest.starts_with('"') {
            quoted(rest)?
        } else {
            let end = rest.find(['=', ' ', '\t', ',', '}']).ok_or("the braces do not close")?;
            (Cow::Borrowed(&rest[..end]), &rest[end..])
        };
        let was_quoted = rest.starts_with('"');
        rest = after.trim_start_matches([' ', '\t']);
        if let Some(after) = rest.strip_prefix('=') {
            if key.is_empty() {
                return Err("a label without a name");
            }
            let (value, after) = quoted(after.trim_start_matches([' ', '\t']))?;
            labels.push((key.into_owned(), value.into_owned()));
            rest = after.trim_start_matches([' ', '\t']);
        } else if was_quoted && name.is_none() {
            *name = Some(key.into_owned());
        } else {
            return Err("a label without a value");
        }
        rest = match rest.strip_prefix(',') {
            Some(after) => after.trim_start_matches([' ', '\t']),
            None if rest.starts_with('}') => rest,
            None => return Err("labels are parted by commas, and end with a brace"),
        };
    }
}

/// A text in quotes at the start of `rest`, with its escapes undone, and what follows it.
fn quoted(rest: &str) -> Result<(Cow<'_, str>, &str), &'static str> {
    let inner = rest.strip_prefix('"').ok_or("a value without quotes")?;
    let bytes = inner.as_bytes();
    let Some(first) = memchr::memchr2(b'"', b'\\', bytes) else { return Err("quotes that do not close") };
    if bytes[first] == b'"' {
        return Ok((Cow::Borrowed(&inner[..first]), &inner[first + 1..]));
    }
    let mut text = String::with_capacity(inner.len().min(256));
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Cow::Owned(text), &inner[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, c @ ('\\' | '"'))) => text.push(c),
                // As Prometheus: an escape that does not exist stands for itself.
                Some((_, c)) => text.extend(['\\', c]),
                None => break,
            },
            c => text.push(c),
        }
    }
    Err("quotes that do not close")
}

/// A label value as it is written between quotes.
pub fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "what is written is what is read")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(line: &str) -> (String, Labels, f64) {
        let sample = sample(line).unwrap();
        (sample.name, sample.labels, sample.value)
    }

    fn pairs(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn lines() {
        for (line, name, labels, value) in [
            ("up 1", "up", &[][..], 1.0),
            ("vllm:x{} 1e+06 1700000000000", "vllm:x", &[], 1e6),
            (r#"x{b="2", a = "1",} -Inf"#, "x", &[("a", "1"), ("b", "2")], f64::NEG_INFINITY),
            (r#"x{a="q\"b\\s\nn, } # {"} 2"#, "x", &[("a", "q\"b\\s\nn, } # {")], 2.0),
            (r#"{"vllm.x y",a="1"} 3"#, "vllm.x y", &[("a", "1")], 3.0),
            (r#"{a="1","späte.reihe"} 3"#, "späte.reihe", &[("a", "1")], 3.0),
            (r#"x{"l.ä"="1"} 3"#, "x", &[("l.ä", "1")], 3.0),
            (r#"x_bucket{le="0.1"} 8 # {trace_id="a b"} 0.07 1.7e9"#, "x_bucket", &[("le", "0.1")], 8.0),
            (r#"x_total 8 1700.5 # {a="b"} 1"#, "x_total", &[], 8.0),
            ("x\t{a=\"C:\\dir\"}\t0x", "", &[], 0.0),
        ] {
            if name.is_empty() {
                assert!(sample(line).is_err(), "{line}");
                continue;
            }
            assert_eq!(one(line), (name.to_owned(), pairs(labels), value), "{line}");
        }
        assert!(one("x NaN").2.is_nan());
        for bad in [
            "x",
            "x{",
            "x{a",
            "x{a=",
            "x{a=\"",
            "x{a=\"1\"",
            "x{a=1} 1",
            "x{a=\"1\"b=\"2\"} 1",
            "{} 1",
            "x 1 2 3",
            "x 1 y",
            "5x 1",
            "x{=\"1\"} 1",
            "x{\"a\"} 1",
            "<html>",
            "x{a=\"\\",
            "{\"a\":1}",
        ] {
            assert!(sample(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_page() {
        let text = "# HELP x_seconds What\\nit is\r\n# TYPE x_seconds histogram\r\nx_seconds_count 3\r\n\
                    x_seconds_count 4\r\nx_seconds_created 1.7e9\r\nfiles_created 7\r\n\
                    # TYPE y counter\r\n# UNIT y bytes\r\ny_total 2\r\nbroken{\r\n# EOF\r\nafter 1\r\n";
        let page = parse(text).unwrap();
        assert_eq!(page.format, Format::OpenMetrics);
        assert_eq!((page.kind("x_seconds_count"), page.kind("y_total")), (Kind::Histogram, Kind::Counter));
        assert_eq!(page.series("x_seconds_count")[0].value, 3.0, "the first of two");
        assert!(page.series("x_seconds_created").is_empty(), "a twin is no value");
        assert_eq!(page.created[&("x_seconds".to_owned(), Labels::new())], 1.7e9);
        assert_eq!(page.series("files_created").len(), 1, "a value of its own");
        assert!(page.series("after").is_empty());
        assert_eq!(page.marks.len(), 2, "{:?}", page.marks);
    }

    #[test]
    fn what_is_no_page() {
        assert!(matches!(parse("# only\n# comments\n"), Err(Error::NoSamples)));
        assert!(matches!(parse("a 1 2 3\n"), Err(Error::Malformed { line: 1, .. })));
        let cut = parse("a 1\nb 12").unwrap();
        assert!(cut.marks[0].contains("cut off"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*|([a-z]*[{}\",=\\\\# \n\t0-9]*)*") {
            let _ = parse(&text);
        }

        #[test]
        fn escapes_of_labels_round_trip(name in "[a-z][a-z0-9_]*", value in any::<String>(), number in any::<f64>()) {
            // A carriage return or a line feed that is not escaped would end the line; only the latter has an escape.
            let line = format!("x{{{name}=\"{}\"}} {number}", escape_label(&value));
            let (_, labels, read) = one(&line);
            prop_assert_eq!(labels, vec![(name, value)]);
            prop_assert!(read == number || read.is_nan());
        }
    }
}
