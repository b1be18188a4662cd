//! How long a user of a closed loop thinks between an answer and the next request.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Span;

/// A distribution of think times. Written `2s`, `uniform:1s:3s` or `exp:2s` (exponential of that mean).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Think {
    /// Always this long.
    Fixed(Span),
    /// Anything from the first to the second, equally likely.
    Uniform(Span, Span),
    /// Exponential with this mean.
    Exponential(Span),
}

/// A text that is no think time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no think time; write it as `2s`, `uniform:1s:3s` or `exp:2s`")]
pub struct ParseThinkError(String);

impl FromStr for Think {
    type Err = ParseThinkError;

    fn from_str(text: &str) -> Result<Self, ParseThinkError> {
        let span = |part: &str| part.parse::<Span>().map_err(|_| ParseThinkError(text.to_owned()));
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["exp", mean] => Ok(Self::Exponential(span(mean)?)),
            ["uniform", from, to] => {
                let (from, to) = (span(from)?, span(to)?);
                if from <= to { Ok(Self::Uniform(from, to)) } else { Err(ParseThinkError(text.to_owned())) }
            }
            [fixed] => Ok(Self::Fixed(span(fixed)?)),
            _ => Err(ParseThinkError(text.to_owned())),
        }
    }
}

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(span) => write!(f, "{span}"),
            Self::Uniform(from, to) => write!(f, "uniform:{from}:{to}"),
            Self::Exponential(mean) => write!(f, "exp:{mean}"),
        }
    }
}

impl Serialize for Think {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Think {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a think time such as \"2s\", \"uniform:1s:3s\" or \"exp:2s\"";
        let text = crate::units::text_or_number(deserializer, expected)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_it_is_read() {
        for text in ["2s", "uniform:500ms:3s", "exp:90s"] {
            assert_eq!(text.parse::<Think>().unwrap().to_string(), text);
        }
        for text in ["", "exp", "uniform:3s:1s", "normal:1s:2s", "exp:1s:2s"] {
            assert!(text.parse::<Think>().is_err(), "{text}");
        }
    }
}
