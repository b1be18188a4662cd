//! The unit of a trace's timestamps: `Mooncake` and `AIPerf` mean milliseconds by the fields that `GuideLLM` documents as
//! seconds, a factor of a thousand in the load. A guess is made only where the other reading is absurd.

use serde::Serialize;
use ttft_model::Nanos;

use super::Format;

/// The unit of timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TimeUnit {
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Dates, whose unit nobody can mistake.
    #[serde(rename = "calendar")]
    Calendar,
}

/// An instant as a file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instant {
    /// A date, in nanoseconds since 1970.
    Calendar(i64),
    /// A number in the file's unit, in billionths.
    Number(i128),
}

impl Instant {
    /// In nanoseconds, once the unit is known; kept within what 64 bits hold.
    pub fn nanos(self, unit: TimeUnit) -> Nanos {
        let ns = match (self, unit) {
            (Self::Calendar(ns), _) => return Nanos(ns),
            (Self::Number(billionths), TimeUnit::Millis) => billionths / 1_000,
            (Self::Number(billionths), _) => billionths,
        };
        Nanos(ns.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64)
    }

    /// Nanoseconds as if its unit were the second.
    pub(super) fn as_seconds(self) -> i128 {
        match self {
            Self::Calendar(ns) => i128::from(ns),
            Self::Number(billionths) => billionths,
        }
    }

    pub(super) fn is_whole(self) -> bool {
        self.as_seconds() % 1_000_000_000 == 0
    }
}

/// More requests a second than this, and numbers without a unit of their own are not taken as milliseconds.
const MOST_PER_S: f64 = 500.0;

/// The same for numbers with fractions: traces in milliseconds are of whole ones.
const MOST_PER_S_WITH_FRACTIONS: f64 = 10.0;

/// What the timestamps of a whole file say about their unit.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UnitEvidence {
    pub(super) numbers: u64,
    pub(super) dates: u64,
    pub(super) with_fraction: u64,
    range: Option<(i128, i128)>,
}

impl UnitEvidence {
    pub(super) fn push(&mut self, instant: Instant) {
        match instant {
            Instant::Calendar(_) => self.dates += 1,
            Instant::Number(_) => self.numbers += 1,
        }
        self.with_fraction += u64::from(!instant.is_whole());
        let at = instant.as_seconds();
        self.range = Some(self.range.map_or((at, at), |(low, high)| (low.min(at), high.max(at))));
    }

    /// Mean requests a second if the numbers are of that unit; `None` without two distinct instants.
    pub(super) fn rate(&self, unit: TimeUnit) -> Option<f64> {
        let (low, high) = self.range?;
        let per_s = if unit == TimeUnit::Millis { 1e12 } else { 1e9 };
        let span_s = (high - low) as f64 / per_s;
        (span_s > 0.0).then(|| (self.numbers + self.dates - 1) as f64 / span_s)
    }

    /// The unit, if it is certain enough. `asked` is a format that the user named, which decides.
    pub(super) fn unit(&self, format: Format, asked: Option<Format>) -> Option<TimeUnit> {
        if self.dates > 0 {
            return (self.numbers == 0).then_some(TimeUnit::Calendar);
        }
        match asked.unwrap_or(format) {
            Format::BurstGpt | Format::GuideLlm => Some(TimeUnit::Seconds),
            Format::Mooncake | Format::AiPerf if asked.is_some() => Some(TimeUnit::Millis),
            Format::Mooncake | Format::AiPerf => {
                let most = if self.with_fraction > 0 { MOST_PER_S_WITH_FRACTIONS } else { MOST_PER_S };
                self.rate(TimeUnit::Millis).is_none_or(|rate| rate <= most).then_some(TimeUnit::Millis)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(instants: &[&str], format: Format, asked: Option<Format>) -> Option<TimeUnit> {
        let mut evidence = UnitEvidence::default();
        for text in instants {
            evidence.push(Instant::Number(super::super::clock::billionths(text).unwrap()));
        }
        evidence.unit(format, asked)
    }

    #[test]
    fn what_could_be_either_is_refused() {
        let millis = Some(TimeUnit::Millis);
        assert_eq!(unit(&["0", "0", "3000", "5999", "9000"], Format::Mooncake, None), millis);
        assert_eq!(unit(&["27482", "30535"], Format::Mooncake, None), millis);
        assert_eq!(unit(&["0", "0"], Format::Mooncake, None), millis);
        assert_eq!(unit(&["0.5", "1500.25"], Format::AiPerf, None), millis);
        for steps in [&["0", "0.2", "0.4", "0.6"][..], &["0", "1", "2", "3"], &["0.0", "1.5", "2.25"]] {
            assert_eq!(unit(steps, Format::Mooncake, None), None, "{steps:?}");
            assert_eq!(unit(steps, Format::Mooncake, Some(Format::Mooncake)), millis);
            assert_eq!(unit(steps, Format::Mooncake, Some(Format::GuideLlm)), Some(TimeUnit::Seconds));
        }
        assert_eq!(unit(&["0", "3000"], Format::Vllm, None), None);
        assert_eq!(unit(&["0", "1"], Format::BurstGpt, None), Some(TimeUnit::Seconds));
    }

    #[test]
    fn instants_in_nanoseconds() {
        let number = Instant::Number(1_500_000_000);
        assert_eq!(number.nanos(TimeUnit::Millis), Nanos(1_500_000));
        assert_eq!(number.nanos(TimeUnit::Seconds), Nanos(1_500_000_000));
        assert_eq!(Instant::Calendar(5).nanos(TimeUnit::Calendar), Nanos(5));
    }
}
