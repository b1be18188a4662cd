//! Objectives as users write them: `ttft_p95<2s`, `tpot<50ms`, `error_rate<1%`.

mod conflict;

use std::fmt;
use std::str::FromStr;

use ttft_model::{Span, nearest};

use crate::Error;
use crate::metrics::{GAP_METRICS, METRICS, Metric};
use crate::quantile::PERCENTILES;

pub use conflict::objectives;

/// An objective.
#[derive(Debug, Clone)]
pub struct Slo {
    /// As it was written.
    pub text: String,
    /// What must keep it.
    pub subject: Subject,
    /// How it is compared.
    pub comparison: Comparison,
    /// Milliseconds for metrics, a share for `error_rate`, per second for rates.
    pub threshold: f64,
}

/// What an objective is about.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A metric; with a statistic it judges a stage, and each request by the same threshold.
    Metric(&'static Metric, Option<Statistic>),
    /// A statistic of a metric with many values a request, which judges the stage alone.
    Gaps(&'static str, Statistic),
    /// Failed requests over all that came to an end.
    ErrorRate,
    /// Requests that met every objective on a single request, over all.
    Goodput,
    /// Requests per second.
    RequestRate,
    /// Output tokens per second.
    OutputRate,
}

/// A statistic of a distribution, by its name in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistic(pub &'static str);

/// How a value is compared with its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Whether the value keeps the threshold.
    pub fn holds(self, value: f64, threshold: f64) -> bool {
        match self {
            Self::Below => value < threshold,
            Self::AtMost => value <= threshold,
            Self::Above => value > threshold,
            Self::AtLeast => value >= threshold,
        }
    }
}

/// Objectives about a whole stage.
const STAGE_WIDE: [&str; 4] = ["error_rate", "goodput", "requests_per_s", "output_tokens_per_s"];

impl FromStr for Slo {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (at, comparison, width) = ["<=", ">=", "<", ">"]
            .into_iter()
            .zip([Comparison::AtMost, Comparison::AtLeast, Comparison::Below, Comparison::Above])
            .filter_map(|(sign, comparison)| Some((text.find(sign)?, comparison, sign.len())))
            .min_by_key(|(at, _, width)| (*at, usize::MAX - width))
            .ok_or_else(|| Error::NoComparison(text.to_owned()))?;
        let (name, value) = (text[..at].trim(), text[at + width..].trim());
        let subject = subject(text, name)?;
        let threshold = match subject {
            Subject::Metric(..) | Subject::Gaps(..) => milliseconds(text, value)?,
            _ => number(text, value)?,
        };
        Ok(Self { text: text.trim().to_owned(), subject, comparison, threshold })
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn subject(text: &str, name: &str) -> Result<Subject, Error> {
    match name {
        "error_rate" => return Ok(Subject::ErrorRate),
        "goodput" => return Ok(Subject::Goodput),
        "requests_per_s" => return Ok(Subject::RequestRate),
        "output_tokens_per_s" => return Ok(Subject::OutputRate),
        _ => {}
    }
    // The longest metric that the name begins with: `ttft_scheduled_p95` is not a statistic of `ttft`.
    let names = METRICS.iter().map(|m| m.name).chain(GAP_METRICS.map(|(name, _)| name));
    let metric = names
        .filter(|metric| {
            name == *metric || name.strip_prefix(metric).is_some_and(|rest| rest.starts_with('_'))
        })
        .max_by_key(|metric| metric.len())
        .ok_or_else(|| unknown(text, name))?;
    let rest = name[metric.len()..].trim_start_matches('_');
    let statistic = if rest.is_empty() { None } else { Some(statistic(text, metric, rest)?) };
    match METRICS.iter().find(|m| m.name == metric) {
        Some(of_request) => Ok(Subject::Metric(of_request, statistic)),
        None => statistic
            .map(|statistic| Subject::Gaps(metric, statistic))
            .ok_or_else(|| Error::GapsNeedStatistic { text: text.to_owned(), metric: metric.to_owned() }),
    }
}

fn statistic(text: &str, metric: &str, name: &str) -> Result<Statistic, Error> {
    let name = name.replace('.', "_");
    ["mean", "min", "max"]
        .into_iter()
        .chain(PERCENTILES.map(|(name, _)| name))
        .find(|known| *known == name)
        .map(Statistic)
        .ok_or_else(|| Error::UnknownStatistic { text: text.to_owned(), name, metric: metric.to_owned() })
}

fn unknown(text: &str, name: &str) -> Error {
    let known: Vec<&str> =
        METRICS.iter().map(|m| m.name).chain(GAP_METRICS.map(|(name, _)| name)).chain(STAGE_WIDE).collect();
    // A statistic behind a misspelt metric should not pull the guess towards long names.
    let base = name.rsplit_once("_p").map_or(name, |(base, _)| base);
    let near = nearest(base, known.iter().copied()).map_or("", |(nearest, _)| nearest);
    Error::UnknownMetric {
        text: text.to_owned(),
        name: name.to_owned(),
        nearest: near.to_owned(),
        known: known.join(", "),
    }
}

fn milliseconds(text: &str, value: &str) -> Result<f64, Error> {
    if value.parse::<f64>().is_ok_and(|n| n != 0.0) {
        return Err(Error::NoUnit { text: text.to_owned(), value: value.to_owned() });
    }
    let span: Span = value.parse().map_err(|source| Error::Threshold { text: text.to_owned(), source })?;
    Ok(span.0.as_millis_f64())
}

fn number(text: &str, value: &str) -> Result<f64, Error> {
    let (digits, scale) = value.strip_suffix('%').map_or((value, 1.0), |digits| (digits.trim(), 0.01));
    match digits.parse::<f64>() {
        Ok(n) if n.is_finite() => Ok(n * scale),
        _ => Err(Error::Number { text: text.to_owned(), value: value.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, metric: &str, statistic: Option<&str>, threshold: f64) {
        let slo: Slo = text.parse().unwrap();
        let got = match slo.subject {
            Subject::Metric(m, s) => (m.name, s.map(|s| s.0)),
            Subject::Gaps(name, s) => (name, Some(s.0)),
            Subject::ErrorRate => ("error_rate", None),
            Subject::Goodput => ("goodput", None),
            Subject::RequestRate => ("requests_per_s", None),
            Subject::OutputRate => ("output_tokens_per_s", None),
        };
        assert_eq!((got, slo.threshold.to_bits()), ((metric, statistic), threshold.to_bits()), "{text}");
    }

    #[test]
    fn both_forms() {
        check("ttft_p95<2s", "ttft", Some("p95"), 2000.0);
        check(" ttft < 2s ", "ttft", None, 2000.0);
        check("tpot<=50ms", "tpot", None, 50.0);
        check("ttft_scheduled_p99.9<1m", "ttft_scheduled", Some("p99_9"), 60_000.0);
        check("ttft_answer_p99_9<1s", "ttft_answer", Some("p99_9"), 1000.0);
        check("e2e_mean<10s", "e2e", Some("mean"), 10_000.0);
        check("itl_p99<100ms", "itl", Some("p99"), 100.0);
        check("error_rate<1%", "error_rate", None, 0.01);
        check("goodput>0.95", "goodput", None, 0.95);
        check("output_tokens_per_s>=1000", "output_tokens_per_s", None, 1000.0);
    }

    #[test]
    fn errors_help() {
        for (text, part) in [
            ("ttft_p95", "no comparison"),
            ("ttfft_p95<2s", "did you mean `ttft`"),
            ("tp0t<50ms", "did you mean `tpot`"),
            ("ttft_p97<2s", "`p97` is no statistic of `ttft`"),
            ("ttft<500", "`500ms` or `500s`"),
            ("ttft<soon", "not a length of time"),
            ("itl<50ms", "itl_p99"),
            ("error_rate<few", "no number"),
            ("<2s", "known are ttft,"),
        ] {
            let message = text.parse::<Slo>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = text.parse::<Slo>();
        }

        #[test]
        fn any_mixture_of_parts_is_read_or_refused(text in "(ttft|itl|error_rate|é){0,2}(_p9|_){0,2}(<|<=|>|=){0,2}[0-9.]{0,4}(ms|s|%| ){0,2}") {
            let _ = text.parse::<Slo>();
        }
    }
}
