//! Times and counts as people write them: `500ms`, `2s`, `1m30s`, `4k`.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Nanos;

/// A length of time in a plan or on the command line. Written with units (`500ms`, `2s`, `1m30s`); a bare number
/// is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Nanos);

/// A text that is no time or count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUnitError {
    /// Not a length of time.
    #[error("`{0}` is not a length of time; write it as `500ms`, `2s`, `1m30s` or `1h`, up to ten years")]
    Span(String),
    /// Not a count.
    #[error("`{0}` is not a count; write it as `200`, `4k` or `1M`")]
    Count(String),
}

/// Ten years, in nanoseconds: sums of a few lengths stay on the axis.
const LONGEST: f64 = 87_600.0 * 3.6e12;

/// Units from the longest to the shortest, in nanoseconds.
const UNITS: [(&str, f64); 7] =
    [("h", 3.6e12), ("m", 6e10), ("s", 1e9), ("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("ns", 1.0)];

impl FromStr for Span {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let bad = || ParseUnitError::Span(text.to_owned());
        let mut rest = text.trim();
        let mut total = 0.0;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let name = rest[..letters].trim();
            let (_, size) = UNITS
                .iter()
                .find(|(unit, _)| *unit == name || (name.is_empty() && *unit == "s"))
                .ok_or_else(bad)?;
            total += number * size;
            rest = &rest[letters..];
        }
        if total <= LONGEST { Ok(Self(Nanos(total.round() as i64))) } else { Err(bad()) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.0;
        match UNITS.iter().find(|(_, size)| ns != 0 && ns % (*size as i64) == 0) {
            Some((unit, size)) => write!(f, "{}{unit}", ns / *size as i64),
            None => write!(f, "{ns}s"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text_or_number(deserializer, "a length of time such as \"500ms\" or \"2s\"")?;
        text.parse().map_err(D::Error::custom)
    }
}

/// A text; or a number, as a text: where `"2s"` stands, `2` may stand as well.
pub(crate) fn text_or_number<'de, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<String, D::Error> {
    struct Either(&'static str);
    impl Visitor<'_> for Either {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }
    deserializer.deserialize_any(Either(expected))
}

/// A count with an optional suffix: `4k` is 4,000, `1.5M` is 1,500,000; `_` and `,` between digits are allowed.
pub fn parse_count(text: &str) -> Result<u64, ParseUnitError> {
    let bad = || ParseUnitError::Count(text.to_owned());
    let plain: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (digits, size) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => match plain.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1e6),
            None => (plain.as_str(), 1.0),
        },
    };
    let value = digits.parse::<f64>().map_err(|_| bad())? * size;
    let whole = (0.0..1e15).contains(&value)
        && value.fract() == 0.0
        && digits.starts_with(|c: char| c.is_ascii_digit());
    if whole { Ok(value as u64) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_and_write() {
        for (text, ns, shown) in [
            ("500ms", 500_000_000, "500ms"),
            ("2s", 2_000_000_000, "2s"),
            ("2", 2_000_000_000, "2s"),
            ("0.5s", 500_000_000, "500ms"),
            ("1m30s", 90_000_000_000, "90s"),
            ("1h", 3_600_000_000_000, "1h"),
            ("250us", 250_000, "250us"),
            ("0", 0, "0s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0.0, span.to_string().as_str()), (ns, shown), "{text}");
            assert_eq!(span.to_string().parse::<Span>(), Ok(span), "{text}");
        }
        for text in ["", "ms", "2 parsecs", "-1s", "1e30h", "s2", "."] {
            assert!(text.parse::<Span>().is_err(), "{text:?} must be refused");
        }
    }

    #[test]
    fn counts_read() {
        assert_eq!(parse_count("4k"), Ok(4_000));
        assert_eq!(parse_count("1.5M"), Ok(1_500_000));
        assert_eq!(parse_count("12_000"), Ok(12_000));
        for text in ["", "k", "-1", "1.5", "nan", "inf", "1e3k9"] {
            assert!(parse_count(text).is_err(), "{text:?} must be refused");
        }
    }
}
