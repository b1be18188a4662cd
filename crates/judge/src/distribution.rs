//! The figures of one metric, as `summary.json` holds them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::samples::{BIN_WIDTH, Sorted};
use crate::{Samples, interval, quantile};

/// The percentiles that carry an interval and a pessimistic value.
const CLAIMED: [&str; 6] = ["p50", "p75", "p90", "p95", "p99", "p99_9"];

/// One metric over many requests. Values are in the metric's unit, milliseconds unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// Number of samples.
    pub n: u64,
    /// Their mean.
    pub mean: Option<f64>,
    /// Their sample standard deviation (n − 1).
    pub stddev: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// 1st percentile; this and all others by Hyndman–Fan type 7.
    pub p1: Option<f64>,
    /// 5th percentile.
    pub p5: Option<f64>,
    /// 10th percentile.
    pub p10: Option<f64>,
    /// 25th percentile.
    pub p25: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// 95 % intervals; empty for values that are not independent, such as the gaps inside one answer.
    pub ci95: Intervals,
    /// Requests that were ok but whose value is not known.
    pub excluded: u64,
    /// The same percentiles if every failed request had taken for ever.
    pub pessimistic: BTreeMap<String, Bound>,
    /// Percentiles that so few samples cannot support.
    pub weak: Vec<String>,
    /// Width of the bins relative to the value, when there were too many samples to keep each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
}

/// 95 % intervals by name: of the mean by Student's t, of percentiles by order statistics.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Intervals(BTreeMap<String, Interval>);

/// Lower and upper end; `None` (null in files) where no sample lies far enough out to bound that side. Then the other
/// end is a one-sided 95 % bound.
pub type Interval = [Option<f64>; 2];

impl Intervals {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The interval of `mean`, `p50`, …
    pub fn get(&self, name: &str) -> Option<Interval> {
        self.0.get(name).copied()
    }
}

/// A value that may be infinite, which is the text `"inf"` in JSON.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound(pub f64);

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_infinite() { serializer.serialize_str("inf") } else { serializer.serialize_f64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(value) => Ok(Self(value)),
            Form::Text(text) if text == "inf" => Ok(Self(f64::INFINITY)),
            Form::Text(text) => {
                Err(serde::de::Error::custom(format!("`{text}` is neither a number nor inf")))
            }
        }
    }
}

/// Whether samples are independent of each other, without which an interval claims too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Independence {
    /// One value a request.
    Independent,
    /// Many values of one request.
    Clustered,
}

impl Distribution {
    /// The figures of independent samples, of which nothing is excluded and nothing failed.
    pub fn of(samples: &Samples) -> Self {
        Self::new(samples, 0, 0, Independence::Independent)
    }

    /// The figures of samples beside which `excluded` requests have no value and `failed` requests count as +inf.
    pub(crate) fn new(samples: &Samples, excluded: u64, failed: u64, independence: Independence) -> Self {
        let n = samples.len();
        let sorted = samples.sorted();
        let at = |p: f64| quantile::of_nth(n, p, |k| sorted.nth(k));
        let mut all = Self {
            n,
            mean: samples.mean(),
            stddev: samples.stddev(),
            min: samples.min(),
            max: samples.max(),
            excluded,
            resolution: matches!(sorted, Sorted::Binned(_)).then_some(BIN_WIDTH),
            ..Self::default()
        };
        for (name, p) in quantile::PERCENTILES {
            if let Some(slot) = all.slot(name) {
                *slot = at(p);
            }
            if n > 0 && quantile::is_weak(n, p) {
                all.weak.push(name.to_owned());
            }
        }
        if independence == Independence::Independent {
            all.claim(&sorted, failed);
        }
        all
    }

    /// Adds the intervals and the pessimistic percentiles.
    fn claim(&mut self, sorted: &Sorted, failed: u64) {
        if let (Some(mean), Some(stddev)) = (self.mean, self.stddev)
            && let Some([low, high]) = interval::mean_t(self.n, mean, stddev)
        {
            self.ci95.0.insert("mean".to_owned(), [Some(low), Some(high)]);
        }
        for (name, p) in quantile::PERCENTILES.into_iter().filter(|(name, _)| CLAIMED.contains(name)) {
            let (low, high) = interval::order_places(self.n, p);
            if self.n > 0 {
                let value = |place: Option<f64>| Some(interval::at_place(place?, |k| sorted.nth(k)));
                self.ci95.0.insert(name.to_owned(), [low, high].map(value));
            }
            let with_failures = |k| if k < self.n { sorted.nth(k) } else { f64::INFINITY };
            if let Some(value) = quantile::of_nth(self.n + failed, p, with_failures) {
                self.pessimistic.insert(name.to_owned(), Bound(value));
            }
        }
    }

    /// The statistic of that name: `mean`, `min`, `max`, or a percentile.
    pub fn get(&self, name: &str) -> Option<f64> {
        match name {
            "mean" => self.mean,
            "min" => self.min,
            "max" => self.max,
            _ => self.clone().slot(name).copied().flatten(),
        }
    }

    /// Whether that percentile is one that so few samples cannot support.
    pub fn is_weak(&self, name: &str) -> bool {
        self.weak.iter().any(|weak| weak == name)
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<f64>> {
        Some(match name {
            "p1" => &mut self.p1,
            "p5" => &mut self.p5,
            "p10" => &mut self.p10,
            "p25" => &mut self.p25,
            "p50" => &mut self.p50,
            "p75" => &mut self.p75,
            "p90" => &mut self.p90,
            "p95" => &mut self.p95,
            "p99" => &mut self.p99,
            "p99_9" => &mut self.p99_9,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>, failed: u64) -> Distribution {
        Distribution::new(&values.into_iter().collect(), 0, failed, Independence::Independent)
    }

    #[test]
    fn failures_lift_the_pessimistic_percentiles_alone() {
        let d = of((1..=90).map(f64::from), 10);
        assert_eq!(d.p50, Some(45.5));
        assert_eq!(d.pessimistic["p50"], Bound(50.5));
        assert_eq!(d.pessimistic["p95"], Bound(f64::INFINITY));
        let json = serde_json::to_value(&d).unwrap();
        assert_eq!(json["pessimistic"]["p95"], "inf");
        assert_eq!(serde_json::from_value::<Distribution>(json).unwrap(), d);
    }

    #[test]
    fn nothing_ok_and_all_failed() {
        let d = of([], 3);
        assert_eq!((d.n, d.p50, d.mean), (0, None, None));
        assert_eq!(d.pessimistic["p50"], Bound(f64::INFINITY));
        assert!(d.weak.is_empty() && d.ci95.is_empty());
    }

    #[test]
    fn few_samples_bound_no_tail() {
        let d = of((1..=100).map(f64::from), 0);
        let [Some(low), Some(high)] = d.ci95.get("p50").unwrap() else { panic!("p50 has both ends") };
        assert!((40.0..41.0).contains(&low) && (60.0..61.0).contains(&high), "{low} {high}");
        let [Some(low), None] = d.ci95.get("p99").unwrap() else { panic!("nothing bounds p99 from above") };
        assert!((97.0..98.0).contains(&low), "{low}");
        assert_eq!(serde_json::to_value(&d.ci95).unwrap()["p99"][1], serde_json::Value::Null);
        assert_eq!(d.weak, ["p1", "p99", "p99_9"]);
        assert_eq!(d.get("p99_9"), d.p99_9);
        assert_eq!(d.get("p98"), None);
    }
}
