//! Objectives that nothing can keep: alone, or beside each other.

use super::{Comparison, Slo, Statistic, Subject};
use crate::Error;
use crate::quantile::PERCENTILES;

/// Reads objectives, and refuses those that exclude each other.
pub fn objectives(texts: &[String]) -> Result<Vec<Slo>, Error> {
    let all: Vec<Slo> = texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    if let Some(alone) = all.iter().find(|slo| slo.is_impossible()) {
        return Err(Error::Impossible(alone.text.clone()));
    }
    for low in &all {
        if let Some(high) = all.iter().find(|high| low.excludes(high)) {
            return Err(Error::Exclusive { first: low.text.clone(), second: high.text.clone() });
        }
    }
    Ok(all)
}

impl Slo {
    fn is_lower_bound(&self) -> bool {
        matches!(self.comparison, Comparison::Above | Comparison::AtLeast)
    }

    fn is_strict(&self) -> bool {
        matches!(self.comparison, Comparison::Above | Comparison::Below)
    }

    /// Nothing measured is below 0, and no share above 1.
    fn is_impossible(&self) -> bool {
        let beyond = match (self.is_lower_bound(), &self.subject) {
            (false, _) => -self.threshold,
            (true, Subject::ErrorRate | Subject::Goodput) => self.threshold - 1.0,
            (true, _) => return false,
        };
        beyond > 0.0 || (beyond == 0.0 && self.is_strict())
    }

    /// Whether this lower bound cannot be kept together with that upper bound.
    fn excludes(&self, upper: &Self) -> bool {
        let is_pair = self.is_lower_bound() && !upper.is_lower_bound();
        let crossed = self.threshold > upper.threshold
            || (self.threshold.to_bits() == upper.threshold.to_bits()
                && (self.is_strict() || upper.is_strict()));
        is_pair && crossed && self.subject.is_at_most(&upper.subject)
    }
}

impl Subject {
    /// Whether one is never above the other: the same, or a lower percentile of it.
    fn is_at_most(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Metric(a, None), Self::Metric(b, None)) => a.name == b.name,
            (Self::Metric(a, Some(low)), Self::Metric(b, Some(high))) => {
                a.name == b.name && low.is_at_most(*high)
            }
            (Self::Gaps(a, low), Self::Gaps(b, high)) => a == b && low.is_at_most(*high),
            (Self::ErrorRate, Self::ErrorRate)
            | (Self::Goodput, Self::Goodput)
            | (Self::RequestRate, Self::RequestRate)
            | (Self::OutputRate, Self::OutputRate) => true,
            _ => false,
        }
    }
}

impl Statistic {
    fn is_at_most(self, other: Self) -> bool {
        let ordered = || ["min"].into_iter().chain(PERCENTILES.map(|(name, _)| name)).chain(["max"]);
        let place = |statistic: Self| ordered().position(|name| name == statistic.0);
        self == other || place(self).zip(place(other)).is_some_and(|(low, high)| low <= high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str]) -> Result<usize, String> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        objectives(&texts).map(|all| all.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn bounds_that_exclude_each_other_are_refused() {
        for texts in [
            ["ttft_p95<2s", "ttft_p95>3s"],
            ["ttft_p95<2s", "ttft_p95>=2s"],
            ["ttft_p95<1s", "ttft_p50>2s"],
            ["itl_p99<10ms", "itl_min>20ms"],
            ["ttft<1s", "ttft>2s"],
            ["error_rate<1%", "error_rate>2%"],
            ["requests_per_s<1", "requests_per_s>2"],
        ] {
            let error = check(&texts).unwrap_err();
            assert!(error.contains("no run can keep both"), "{error}");
        }
    }

    #[test]
    fn bounds_that_nothing_can_keep_are_refused() {
        for text in [
            "ttft_p95<0s",
            "tpot<0ms",
            "error_rate<0",
            "error_rate>100%",
            "goodput>=101%",
            "requests_per_s<-1",
        ] {
            let error = check(&[text]).unwrap_err();
            assert!(error.contains("nothing can keep"), "{error}");
        }
    }

    #[test]
    fn all_others_stand_side_by_side() {
        for texts in [
            &["ttft_p95<2s", "ttft_p50<2s"][..],
            &["ttft_p95<3s", "ttft_p95>2s"],
            &["ttft_p95<=2s", "ttft_p95>=2s"],
            &["ttft_p50<1s", "ttft_p95>2s"],
            &["ttft_p95<1s", "tpot_p95>2s"],
            &["ttft_mean<1s", "ttft_p50>2s"],
            &["error_rate<=0", "requests_per_s>0"],
            &[],
        ] {
            assert_eq!(check(texts), Ok(texts.len()), "{texts:?}");
        }
    }
}
