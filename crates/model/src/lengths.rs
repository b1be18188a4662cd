//! How long prompts or answers are, in tokens, as flags and plans write it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::parse_count;

/// Lengths in tokens. What is drawn is at least 1 and at most [`Lengths::most`].
#[derive(Debug, Clone, PartialEq)]
pub enum Lengths {
    /// All the same: `500`.
    Fixed(u32),
    /// Every whole number of a range as often, its ends included: `uniform:100:900`.
    Uniform {
        /// The shortest.
        least: u32,
        /// The longest.
        most: u32,
    },
    /// Normal: `normal:MEAN:DEVIATION`, cut at four deviations.
    Normal {
        /// Mean before the cut.
        mean: f64,
        /// Standard deviation before the cut.
        deviation: f64,
    },
    /// Log-normal: `lognormal:MEDIAN:SIGMA`, SIGMA being the deviation of the natural logarithm; cut at four of it.
    LogNormal {
        /// Median.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// What the data set or trace says of each request: `recorded`.
    Recorded,
    /// Drawn from the lengths in a file: `empirical:FILE`.
    Empirical(Arc<str>),
}

/// A text that names no lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseLengthsError(String);

impl fmt::Display for ParseLengthsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no length: write 500, 4k, uniform:100:900, normal:500:100, lognormal:500:0.5 or empirical:FILE; \
             the longest is 10M",
            self.0
        )
    }
}

impl std::error::Error for ParseLengthsError {}

impl Lengths {
    /// Tokens of the longest prompt or answer that may be asked for: more than any model takes.
    pub const LONGEST: u32 = 10_000_000;

    /// The longest that can come; 0 where only the file knows.
    pub fn most(&self) -> u32 {
        let longest = match *self {
            Self::Fixed(length) => return length,
            Self::Uniform { most, .. } => return most,
            Self::Normal { mean, deviation } => mean + 4.0 * deviation,
            Self::LogNormal { median, sigma } => median * (4.0 * sigma).exp(),
            Self::Recorded | Self::Empirical(_) => return 0,
        };
        longest.clamp(1.0, f64::from(Self::LONGEST)).round() as u32
    }

    /// One that is typical: the middle.
    pub fn middle(&self) -> u32 {
        match *self {
            Self::Fixed(length) => length,
            Self::Uniform { least, most } => least + most.saturating_sub(least) / 2,
            Self::Normal { mean: middle, .. } | Self::LogNormal { median: middle, .. } => {
                middle.round() as u32
            }
            Self::Recorded | Self::Empirical(_) => 0,
        }
    }
}

impl FromStr for Lengths {
    type Err = ParseLengthsError;

    fn from_str(text: &str) -> Result<Self, ParseLengthsError> {
        let bad = || ParseLengthsError(text.to_owned());
        let whole = |text: &str| {
            let length = parse_count(text).ok().and_then(|n| u32::try_from(n).ok());
            length.filter(|length| *length <= Self::LONGEST).ok_or_else(bad)
        };
        let number = |text: &str| match text.parse::<f64>() {
            Ok(value) if value.is_finite() && (0.0..=f64::from(Self::LONGEST)).contains(&value) => Ok(value),
            _ => Err(bad()),
        };
        // A path may hold colons.
        if let Some(path) = text.trim().strip_prefix("empirical:") {
            return if path.is_empty() { Err(bad()) } else { Ok(Self::Empirical(path.into())) };
        }
        let parts: Vec<&str> = text.trim().split(':').collect();
        match parts.as_slice() {
            ["recorded"] => Ok(Self::Recorded),
            ["uniform", least, most] => {
                let (least, most) = (whole(least)?, whole(most)?);
                if least > most { Err(bad()) } else { Ok(Self::Uniform { least, most }) }
            }
            ["normal", mean, deviation] => {
                let mean = f64::from(whole(mean)?);
                Ok(Self::Normal { mean, deviation: number(deviation)? })
            }
            ["lognormal", median, sigma] => {
                let median = f64::from(whole(median)?);
                let sigma = number(sigma)?;
                if median < 1.0 || sigma > 5.0 { Err(bad()) } else { Ok(Self::LogNormal { median, sigma }) }
            }
            [length] => whole(length).map(Self::Fixed),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(length) => write!(f, "{length}"),
            Self::Uniform { least, most } => write!(f, "uniform:{least}:{most}"),
            Self::Normal { mean, deviation } => write!(f, "normal:{mean}:{deviation}"),
            Self::LogNormal { median, sigma } => write!(f, "lognormal:{median}:{sigma}"),
            Self::Recorded => f.write_str("recorded"),
            Self::Empirical(path) => write!(f, "empirical:{path}"),
        }
    }
}

impl Serialize for Lengths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lengths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a length such as 500, \"4k\" or \"uniform:100:900\"";
        let text = crate::units::text_or_number(deserializer, expected)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_and_written() {
        for (text, most) in [
            ("500", 500),
            ("uniform:100:900", 900),
            ("normal:500:100", 900),
            ("lognormal:500:0", 500),
            ("recorded", 0),
            ("empirical:a:b.csv", 0),
        ] {
            let lengths: Lengths = text.parse().unwrap();
            assert_eq!((lengths.to_string().as_str(), lengths.most()), (text, most));
        }
        assert_eq!("4k".parse(), Ok(Lengths::Fixed(4_000)));
        for text in [
            "",
            "x",
            "-1",
            "uniform:9:1",
            "uniform:1",
            "normal:5",
            "normal:5:-1",
            "lognormal:0:1",
            "5:6",
            "9999999999",
            "empirical:",
        ] {
            assert!(text.parse::<Lengths>().is_err(), "{text}");
        }
    }
}
