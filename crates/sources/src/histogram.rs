//! Cumulative buckets, and what can be said of quantiles from them.

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::reading::number;

/// The quantiles that are told, with their names.
pub const PROBABILITIES: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99")];

/// Parts of a count below which a difference is one of arithmetic.
const NOISE: f64 = 1e-9;

/// What buckets say of a quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantile {
    /// Interpolated linearly within a bucket, as `histogram_quantile` of Prometheus does.
    At {
        /// The estimate.
        value: f64,
        /// Lower bound of the bucket.
        lower: f64,
        /// Upper bound of the bucket.
        upper: f64,
    },
    /// As the server says it: a quantile of a summary.
    Told(f64),
    /// Above the last finite bound, which is all that is known.
    AtLeast(f64),
    /// Everything is in the first bucket: nothing is known but its bounds.
    Between(f64, f64),
}

/// Samples as a server counted them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution {
    /// How many; the count of buckets, not of what the sum holds, where they differ.
    pub count: f64,
    /// Exact, from sum and count; none without a sum.
    pub mean: Option<f64>,
    /// In the order of [`PROBABILITIES`]; none without buckets, and for no samples.
    pub quantiles: [Option<Quantile>; 4],
    /// Whether the values are seconds, which their names say.
    pub seconds: bool,
}

/// One histogram: of one label set, or of several added up.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Histogram {
    /// Upper bound and cumulative count, by bound; the last one may be infinite.
    pub(crate) buckets: Vec<(f64, f64)>,
    pub(crate) sum: Option<f64>,
    pub(crate) count: Option<f64>,
    /// Whether counts fell from bucket to bucket and were mended.
    pub(crate) mended: bool,
    /// Whether not all parts had the same bounds.
    pub(crate) coarsened: bool,
}

impl Histogram {
    /// A histogram of buckets in any order. Bounds that are the same number are one bucket; a count that falls is lifted
    /// to the one before, as Prometheus does: the page was written while they changed.
    pub(crate) fn new(mut buckets: Vec<(f64, f64)>, sum: Option<f64>, count: Option<f64>) -> Self {
        buckets.retain(|(bound, count)| !bound.is_nan() && !count.is_nan());
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        buckets.dedup_by(|later, first| later.0.total_cmp(&first.0).is_eq());
        let mut mended = false;
        let mut most = 0.0_f64;
        for (_, count) in &mut buckets {
            mended |= *count < most * (1.0 - NOISE);
            most = most.max(*count);
            *count = most;
        }
        Self { buckets, sum: sum.filter(|sum| sum.is_finite()), count, mended, coarsened: false }
    }

    /// Both together. Where bounds differ only those that both have are kept: between them nothing is known.
    pub(crate) fn plus(mut self, other: &Self) -> Self {
        let total = |h: &Self| h.total();
        self.count = Some(total(&self) + total(other));
        self.sum = self.sum.zip(other.sum).map(|(a, b)| a + b);
        let bounds = |h: &Self| h.buckets.iter().map(|(bound, _)| *bound).collect::<Vec<_>>();
        self.coarsened |= other.coarsened || bounds(&self) != bounds(other);
        self.buckets.retain_mut(|(bound, count)| {
            let same = other.buckets.iter().find(|(known, _)| known.total_cmp(bound).is_eq());
            *count += same.map_or(0.0, |(_, more)| *more);
            same.is_some()
        });
        self.mended |= other.mended;
        self
    }

    /// All values, and the sum, in another unit.
    pub(crate) fn scaled(mut self, scale: f64) -> Self {
        for (bound, _) in &mut self.buckets {
            *bound *= scale;
        }
        self.sum = self.sum.map(|sum| sum * scale);
        self
    }

    /// How many samples.
    pub(crate) fn total(&self) -> f64 {
        let infinite = self.buckets.last().filter(|(bound, _)| bound.is_infinite() && *bound > 0.0);
        let most = self.buckets.last().map_or(0.0, |(_, count)| *count);
        match (infinite, self.count) {
            (Some((_, count)), _) => *count,
            (None, Some(count)) if !count.is_nan() => count.max(most),
            (None, _) => most,
        }
    }

    /// The quantile of probability `p`.
    pub(crate) fn quantile(&self, p: f64) -> Option<Quantile> {
        let total = self.total();
        let (first, in_first) = *self.buckets.first()?;
        if total <= 0.0 {
            return None;
        }
        let rank = p * total - NOISE * total;
        let mut finite = self.buckets.iter().filter(|(bound, _)| bound.is_finite());
        let Some(at) = self.buckets.iter().position(|(bound, count)| bound.is_finite() && *count >= rank)
        else {
            return finite.next_back().map(|(bound, _)| Quantile::AtLeast(*bound));
        };
        let (upper, count) = self.buckets[at];
        if at == 0 {
            // Times are not negative: a first bucket that ends at zero holds zeros.
            let lower = first.min(0.0);
            return Some(match first > 0.0 {
                false => Quantile::At { value: first, lower: first, upper: first },
                true if in_first >= total * (1.0 - NOISE) => Quantile::Between(lower, first),
                true => Quantile::At { value: first * (p * total / count).min(1.0), lower, upper: first },
            });
        }
        let (lower, before) = self.buckets[at - 1];
        let part = ((p * total - before) / (count - before)).clamp(0.0, 1.0);
        Some(Quantile::At { value: lower + (upper - lower) * part, lower, upper })
    }

    /// Whether the mean lies where the buckets say that no mean can lie.
    pub(crate) fn contradicts_itself(&self) -> bool {
        let (total, Some(sum)) = (self.total(), self.sum) else { return false };
        let mut least = 0.0;
        let mut before = (0.0_f64, 0.0);
        for (bound, count) in self.buckets.iter().filter(|(bound, _)| bound.is_finite()) {
            least += before.0.max(0.0) * (count - before.1);
            before = (*bound, *count);
        }
        let most_known = before.1 >= total;
        let mut most = 0.0;
        let mut below = 0.0;
        for (bound, count) in self.buckets.iter().filter(|(bound, _)| bound.is_finite()) {
            most += bound * (count - below);
            below = *count;
        }
        least += before.0.max(0.0) * (total - before.1);
        let slack = 1e-6 * most.abs().max(least.abs()) + 1e-9;
        !self.buckets.is_empty() && (sum < least - slack || (most_known && sum > most + slack))
    }

    pub(crate) fn distribution(&self, seconds: bool) -> Distribution {
        // The sum belongs to the count that was written with it.
        let of_sum = self.count.filter(|count| *count > 0.0).unwrap_or_else(|| self.total());
        Distribution {
            count: self.count.filter(|count| !count.is_nan()).unwrap_or_else(|| self.total()),
            mean: self.sum.filter(|_| of_sum > 0.0).map(|sum| sum / of_sum),
            quantiles: PROBABILITIES.map(|(p, _)| self.quantile(p)),
            seconds,
        }
    }
}

impl Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unit = if self.seconds { "_s" } else { "" };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &number(self.count))?;
        map.serialize_entry(&format!("mean{unit}"), &self.mean.map(number))?;
        for ((_, name), quantile) in PROBABILITIES.iter().zip(&self.quantiles) {
            map.serialize_entry(&format!("{name}{unit}"), &quantile.map(|quantile| quantile.json(unit)))?;
        }
        let bounds: serde_json::Map<String, serde_json::Value> = PROBABILITIES
            .iter()
            .zip(&self.quantiles)
            .filter_map(|((_, name), quantile)| match quantile {
                Some(Quantile::At { lower, upper, .. }) => {
                    Some((format!("{name}{unit}"), serde_json::json!([number(*lower), number(*upper)])))
                }
                _ => None,
            })
            .collect();
        map.serialize_entry("bounds", &bounds)?;
        map.end()
    }
}

impl Quantile {
    fn json(self, unit: &str) -> serde_json::Value {
        let named = |flag: &str, name: &str, value: serde_json::Value| {
            let mut map = serde_json::Map::new();
            map.insert(flag.to_owned(), true.into());
            map.insert(format!("{name}{unit}"), value);
            map.into()
        };
        match self {
            Self::At { value, .. } | Self::Told(value) => number(value),
            Self::AtLeast(bound) => named("censored", "at_least", number(bound)),
            Self::Between(lower, upper) => {
                named("unresolved", "between", vec![number(lower), number(upper)].into())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the arithmetic of these numbers is exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INF: f64 = f64::INFINITY;

    fn value(quantile: Option<Quantile>) -> f64 {
        match quantile {
            Some(Quantile::At { value, .. }) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn quantiles_as_promql_has_them() {
        let h = Histogram::new(
            vec![(INF, 100.0), (1.0, 40.0), (2.5, 70.0), (0.5, 20.0)],
            Some(120.0),
            Some(100.0),
        );
        assert_eq!(value(h.quantile(0.5)), 1.5);
        assert_eq!(value(h.quantile(0.1)), 0.25, "the first bucket begins at zero");
        assert_eq!(value(h.quantile(0.4)), 1.0, "a rank at a bound is that bound");
        assert_eq!(h.quantile(0.99), Some(Quantile::AtLeast(2.5)));
        assert_eq!(h.distribution(true).mean, Some(1.2));
    }

    #[test]
    fn what_buckets_cannot_say() {
        let first = Histogram::new(vec![(0.3, 10.0), (0.5, 10.0), (INF, 10.0)], None, Some(10.0));
        assert_eq!(first.quantile(0.5), Some(Quantile::Between(0.0, 0.3)));
        assert_eq!(first.distribution(true).mean, None);
        let nothing = Histogram::new(vec![(0.3, 0.0), (INF, 0.0)], Some(0.0), Some(0.0));
        assert_eq!((nothing.quantile(0.5), nothing.distribution(true).mean), (None, None));
        let only_infinite = Histogram::new(vec![(INF, 5.0)], Some(1.0), Some(5.0));
        assert_eq!(only_infinite.quantile(0.5), None);
        let zeros = Histogram::new(vec![(0.0, 5.0), (0.1, 5.0), (INF, 5.0)], Some(0.0), Some(5.0));
        assert_eq!(value(zeros.quantile(0.99)), 0.0);
        let no_infinite = Histogram::new(vec![(0.1, 5.0), (0.2, 9.0)], None, Some(10.0));
        assert_eq!(no_infinite.quantile(0.99), Some(Quantile::AtLeast(0.2)));
    }

    #[test]
    fn buckets_that_fall_are_lifted_and_said() {
        let h = Histogram::new(vec![(0.1, 5.0), (0.2, 4.0), (0.5, 10.0), (INF, 10.0)], None, None);
        assert!(h.mended);
        assert_eq!(h.buckets[1], (0.2, 5.0));
        assert!(value(h.quantile(0.6)) > 0.2);
    }

    #[test]
    fn different_bounds_share_what_they_share() {
        let a = Histogram::new(vec![(0.1, 1.0), (0.2, 2.0), (INF, 2.0)], Some(0.3), Some(2.0));
        let b = Histogram::new(vec![(0.2, 3.0), (0.4, 4.0), (INF, 4.0)], Some(1.0), Some(4.0));
        let both = a.plus(&b);
        assert_eq!(both.buckets, [(0.2, 5.0), (INF, 6.0)]);
        assert!(both.coarsened);
        assert_eq!((both.count, both.sum), (Some(6.0), Some(1.3)));
    }

    #[test]
    fn sums_that_cannot_be() {
        let buckets = vec![(0.001, 208.0), (1.0, 208.0), (INF, 208.0)];
        assert!(Histogram::new(buckets.clone(), Some(500.0), Some(208.0)).contradicts_itself());
        assert!(!Histogram::new(buckets, Some(0.1), Some(208.0)).contradicts_itself());
        let tail = vec![(1.0, 0.0), (INF, 2.0)];
        assert!(!Histogram::new(tail.clone(), Some(1e9), Some(2.0)).contradicts_itself());
        assert!(Histogram::new(tail, Some(1.0), Some(2.0)).contradicts_itself());
    }

    proptest! {
        #[test]
        fn quantiles_lie_in_their_buckets(
            counts in prop::collection::vec(0_u32..50, 1..12),
            p in 0.0_f64..1.0,
        ) {
            let mut cumulative = 0.0;
            let mut buckets = Vec::new();
            for (i, count) in counts.iter().enumerate() {
                cumulative += f64::from(*count);
                buckets.push(((i + 1) as f64, cumulative));
            }
            if let Some((bound, _)) = buckets.last_mut() {
                *bound = INF;
            }
            let h = Histogram::new(buckets, None, None);
            if let Some(Quantile::At { value, lower, upper }) = h.quantile(p) {
                prop_assert!(lower <= value && value <= upper, "{lower} {value} {upper}");
            }
        }

        #[test]
        fn any_buckets_are_survived(buckets in prop::collection::vec((any::<f64>(), any::<f64>()), 0..9)) {
            let h = Histogram::new(buckets.clone(), Some(1.0), None).plus(&Histogram::new(buckets, None, Some(1.0)));
            h.contradicts_itself();
            h.distribution(true);
        }
    }
}
