//! What a workload's prompts have beside their words: beginnings that they share, turns, images.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Think;
use crate::Lengths;

/// Beginnings that prompts share, as system prompts and documents are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefixes {
    /// How many there are.
    #[serde(default = "one")]
    pub groups: u32,
    /// Tokens of each; a request's own part comes on top.
    pub tokens: u32,
    /// How a request takes one.
    #[serde(default)]
    pub pick: Pick,
}

fn one() -> u32 {
    1
}

/// How a request takes one of several: `uniform`, or `zipf:EXPONENT`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Pick {
    /// Each as often.
    #[default]
    Uniform,
    /// Number k (from 1) in proportion to k to the power of minus this.
    Zipf(f64),
}

/// Conversations of several turns: each turn's request holds what was said before, with the answers that came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Turns of each conversation; `recorded` is as many as the data set has, other lengths are the most of them.
    pub turns: Lengths,
    /// Between an answer and the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_time: Option<Think>,
}

/// Images that are made up and sent with each prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// How many a request has.
    pub count: u32,
    /// Width and height in pixels.
    #[serde(default)]
    pub size: ImageSize,
}

/// Width and height in pixels, written `512x512`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Default for ImageSize {
    fn default() -> Self {
        Self { width: 512, height: 512 }
    }
}

/// A text that is no size of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size of an image; write it as 512x512, each side from 1 to 8192 pixels")]
pub struct ParseImageSizeError(String);

/// A text that says not how one is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to take a prefix; there are uniform and zipf:EXPONENT, for instance zipf:1.1")]
pub struct ParsePickError(String);

impl FromStr for ImageSize {
    type Err = ParseImageSizeError;

    fn from_str(text: &str) -> Result<Self, ParseImageSizeError> {
        let side = |text: &str| text.parse().ok().filter(|side| (1..=8192).contains(side));
        let sides = text.split_once(['x', '×']);
        let size =
            sides.and_then(|(width, height)| Some(Self { width: side(width)?, height: side(height)? }));
        size.ok_or_else(|| ParseImageSizeError(text.to_owned()))
    }
}

impl fmt::Display for ImageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl FromStr for Pick {
    type Err = ParsePickError;

    fn from_str(text: &str) -> Result<Self, ParsePickError> {
        let exponent = text.strip_prefix("zipf:").and_then(|exponent| exponent.parse::<f64>().ok());
        match (text, exponent) {
            ("uniform", _) => Ok(Self::Uniform),
            (_, Some(exponent)) if exponent > 0.0 && exponent <= 20.0 => Ok(Self::Zipf(exponent)),
            _ => Err(ParsePickError(text.to_owned())),
        }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

impl Serialize for ImageSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ImageSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Pick {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pick {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_written_as_they_are_read() {
        for text in ["512x512", "1x8192"] {
            assert_eq!(text.parse::<ImageSize>().unwrap().to_string(), text);
        }
        for text in ["", "512", "0x5", "5x", "9000x9000", "-1x1"] {
            assert!(text.parse::<ImageSize>().is_err(), "{text}");
        }
        for text in ["uniform", "zipf:1.1"] {
            assert_eq!(text.parse::<Pick>().unwrap().to_string(), text);
        }
        for text in ["", "zipf", "zipf:0", "zipf:x", "zipf:NaN"] {
            assert!(text.parse::<Pick>().is_err(), "{text}");
        }
    }
}
