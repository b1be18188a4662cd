//! Several recordings together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::{DecodeOptions, Decoded, decode_answers};
use crate::Error;

/// What a set of recordings says. Only answers that are ok count in the times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecodedSet {
    /// All answers.
    pub requests: usize,
    /// Those that are ok.
    pub ok: usize,
    /// Those that are not.
    pub failed: usize,
    /// The latter by class; `cancelled` for those that this side ended.
    pub failed_class: BTreeMap<String, usize>,
    /// Time to first token of the ok ones.
    pub ttft_ms: Spread,
    /// Each answer.
    pub streams: Vec<Decoded>,
}

/// A sample's middle and ends, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// Values in the sample.
    pub n: usize,
    /// The middle one, or the mean of the two middle ones.
    pub median: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let (Some(min), Some(max)) = (values.first(), values.last()) else { return Self::default() };
        Self {
            n,
            median: Some(f64::midpoint(values[(n - 1) / 2], values[n / 2])),
            mean: Some(values.iter().sum::<f64>() / n as f64),
            min: Some(*min),
            max: Some(*max),
        }
    }
}

/// Decodes all answers of several recordings.
pub fn decode_set(paths: &[PathBuf], options: &DecodeOptions) -> Result<DecodedSet, Error> {
    let mut streams = Vec::new();
    for path in paths {
        streams.extend(decode_answers(path, options)?);
    }
    let mut failed_class = BTreeMap::new();
    let is_ok = |decoded: &&Decoded| decoded.outcome == "ok";
    for decoded in streams.iter().filter(|decoded| !is_ok(decoded)) {
        *failed_class.entry(decoded.error_class.unwrap_or(decoded.outcome).to_owned()).or_default() += 1;
    }
    let ok = streams.iter().filter(is_ok).count();
    let ttft_ms = Spread::of(streams.iter().filter(is_ok).filter_map(|decoded| decoded.ttft_ms).collect());
    Ok(DecodedSet { requests: streams.len(), ok, failed: streams.len() - ok, failed_class, ttft_ms, streams })
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn spreads() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0]);
        let expected = Spread { n: 4, median: Some(2.5), mean: Some(2.5), min: Some(1.0), max: Some(4.0) };
        assert_eq!(spread, expected);
        assert_eq!(Spread::of(vec![7.0]).median, Some(7.0));
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }
}
