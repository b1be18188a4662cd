//! A growing set of numbers: each kept exactly while there is room, beyond it counted in very fine bins.
//!
//! Room is of two kinds: a limit for each set, and one for all sets of the process together, so that neither one metric
//! of millions of gaps nor many metrics of many stages need more memory than was meant. A set that finds no room counts
//! what it has in bins and goes on; sets that are complete stay as they are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Up to this many numbers are kept as they are (16 MiB).
const EXACT_LIMIT: usize = 1 << 21;

/// Numbers that all sets together have room for (256 MiB). One that is no larger than [`SMALL`] has its place anyway.
const ALL_LIMIT: usize = 1 << 25;

/// Once there are bins, numbers are collected up to this many before they are counted.
const SMALL: usize = 1 << 13;

/// Numbers that there is room for just now, over all sets.
static ROOM: AtomicUsize = AtomicUsize::new(0);

/// Bits of the mantissa that a bin drops: 12 stay, so a bin is at most 1/4096 of its value wide.
const DROPPED_BITS: u32 = 52 - 12;

/// The widest bin relative to its value.
pub(crate) const BIN_WIDTH: f64 = 1.0 / 4096.0;

/// Numbers collected one by one. Count, mean, spread, smallest and largest are exact whatever their number.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// All numbers while there are no bins, and then those not yet counted.
    exact: Exact,
    bins: BTreeMap<u64, u64>,
    n: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
    /// Fewer than [`EXACT_LIMIT`] to keep exactly, if asked for.
    limit: Option<usize>,
}

/// Numbers kept exactly, in memory that is accounted for.
#[derive(Debug, Default)]
struct Exact(Vec<f64>);

impl Exact {
    /// Makes room for one more, unless that is beyond the limit of this set or of all.
    fn has_room(&mut self, limit: usize) -> bool {
        let (len, room) = (self.0.len(), self.0.capacity());
        if len < room.min(limit) {
            return true;
        }
        let Some(wanted) = more_room(room, limit, ROOM.load(Ordering::Relaxed)) else { return false };
        self.0.reserve_exact(wanted - len);
        ROOM.fetch_add(self.0.capacity() - room, Ordering::Relaxed);
        true
    }
}

/// How much room a set that is full may have next, if all sets together have `taken`.
fn more_room(room: usize, limit: usize, taken: usize) -> Option<usize> {
    let wanted = (2 * room).max(64).min(limit);
    (wanted > room && (wanted <= SMALL || taken + (wanted - room) <= ALL_LIMIT)).then_some(wanted)
}

impl Clone for Exact {
    fn clone(&self) -> Self {
        let copy = self.0.clone();
        ROOM.fetch_add(copy.capacity(), Ordering::Relaxed);
        Self(copy)
    }
}

impl Drop for Exact {
    fn drop(&mut self) {
        ROOM.fetch_sub(self.0.capacity(), Ordering::Relaxed);
    }
}

impl Samples {
    /// A set that keeps at most so many numbers exactly, for where there are many sets.
    pub(crate) fn within(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Adds one number.
    pub fn push(&mut self, value: f64) {
        self.push_many(value, 1);
    }

    /// Adds the same number several times.
    pub fn push_many(&mut self, value: f64, times: u64) {
        if times == 0 || !value.is_finite() {
            return;
        }
        (self.min, self.max) =
            if self.n == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.merge_moments(times, value, 0.0);
        for _ in 0..times {
            self.keep(value);
        }
    }

    /// Adds all numbers of another set.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        (self.min, self.max) = if self.n == 0 {
            (other.min, other.max)
        } else {
            (self.min.min(other.min), self.max.max(other.max))
        };
        self.merge_moments(other.n, other.mean, other.squares);
        for (key, count) in &other.bins {
            *self.bins.entry(*key).or_default() += count;
        }
        for value in &other.exact.0 {
            self.keep(*value);
        }
    }

    /// Keeps a number; where there is no room, all that are kept are counted before.
    fn keep(&mut self, value: f64) {
        let limit = self.limit.unwrap_or(EXACT_LIMIT).max(1);
        let small = limit.min(SMALL);
        if !self.exact.has_room(if self.bins.is_empty() { limit } else { small }) {
            count_into(&mut self.bins, &mut self.exact.0);
            if self.exact.0.capacity() > small {
                self.exact = Exact::default();
            }
            self.exact.0.clear();
            self.exact.has_room(small);
        }
        self.exact.0.push(value);
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Their mean.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// Their sample standard deviation, n − 1 below; `None` of fewer than two.
    pub fn stddev(&self) -> Option<f64> {
        (self.n > 1).then(|| (self.squares / (self.n - 1) as f64).sqrt())
    }

    /// The smallest.
    pub fn min(&self) -> Option<f64> {
        (self.n > 0).then_some(self.min)
    }

    /// The largest.
    pub fn max(&self) -> Option<f64> {
        (self.n > 0).then_some(self.max)
    }

    /// The numbers in ascending order.
    pub(crate) fn sorted(&self) -> Sorted {
        if self.bins.is_empty() {
            let mut values = self.exact.0.clone();
            values.sort_unstable_by(f64::total_cmp);
            return Sorted::Exact(values);
        }
        let mut bins = self.bins.clone();
        count_into(&mut bins, &mut self.exact.0.clone());
        let mut upto = 0;
        let bins = bins.iter().map(|(key, count)| {
            upto += count;
            (middle(*key).clamp(self.min, self.max), upto)
        });
        Sorted::Binned(bins.collect())
    }

    /// Mean and sum of squared differences of the union (Chan, Golub and `LeVeque` 1979).
    fn merge_moments(&mut self, n: u64, mean: f64, squares: f64) {
        let (ours, theirs) = (self.n as f64, n as f64);
        let (all, delta) = (ours + theirs, mean - self.mean);
        self.mean += delta * (theirs / all);
        self.squares += squares + delta * delta * (ours * theirs / all);
        self.n += n;
    }
}

/// Counts numbers into bins; sorted first, since a whole run of them then falls into one bin.
fn count_into(bins: &mut BTreeMap<u64, u64>, values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
    for run in values.chunk_by(|a, b| bin(*a) == bin(*b)) {
        *bins.entry(bin(run[0])).or_default() += run.len() as u64;
    }
}

impl Extend<f64> for Samples {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut samples = Self::default();
        samples.extend(values);
        samples
    }
}

/// Numbers in ascending order.
pub(crate) enum Sorted {
    /// All of them.
    Exact(Vec<f64>),
    /// The middle of each bin, and how many numbers lie up to and in it.
    Binned(Vec<(f64, u64)>),
}

impl Sorted {
    /// The `k`-th smallest, from 0; infinite beyond the last.
    pub(crate) fn nth(&self, k: u64) -> f64 {
        match self {
            Self::Exact(values) => values.get(k as usize).copied(),
            Self::Binned(bins) => bins.get(bins.partition_point(|(_, upto)| *upto <= k)).map(|(v, _)| *v),
        }
        .unwrap_or(f64::INFINITY)
    }
}

/// The bin of a number: its bits made to sort like the number, without the mantissa's tail.
fn bin(value: f64) -> u64 {
    let bits = value.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    ordered >> DROPPED_BITS
}

/// The number in the middle of a bin.
fn middle(key: u64) -> f64 {
    let ordered = key << DROPPED_BITS | 1 << (DROPPED_BITS - 1);
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile;
    use proptest::prelude::*;

    #[test]
    fn beyond_the_limit_the_error_stays_tiny() {
        let mut samples = Samples::default();
        let n = EXACT_LIMIT as u64 + 10_000;
        for i in 0..n {
            samples.push(1.0 + ((i * 7_919) % n) as f64 / 1000.0);
        }
        let sorted = samples.sorted();
        assert!(matches!(sorted, Sorted::Binned(_)));
        for p in [0.01, 0.5, 0.99] {
            let exact = 1.0 + (n - 1) as f64 * p / 1000.0;
            let got = quantile::of_nth(samples.len(), p, |k| sorted.nth(k)).unwrap();
            assert!((got / exact - 1.0).abs() <= BIN_WIDTH, "p={p}: {got} for {exact}");
        }
        assert_eq!((samples.min(), samples.max()), (Some(1.0), Some(1.0 + (n - 1) as f64 / 1000.0)));
    }

    #[test]
    fn room_is_doubled_until_a_limit_is_met() {
        assert_eq!(more_room(0, EXACT_LIMIT, 0), Some(64));
        assert_eq!(more_room(64, EXACT_LIMIT, 64), Some(128));
        assert_eq!(
            more_room(EXACT_LIMIT / 2 + 1, EXACT_LIMIT, 0),
            Some(EXACT_LIMIT),
            "not beyond the set's own"
        );
        assert_eq!(more_room(EXACT_LIMIT, EXACT_LIMIT, 0), None);
        assert_eq!(more_room(SMALL, EXACT_LIMIT, ALL_LIMIT), None, "nor beyond that of all sets");
        assert_eq!(more_room(SMALL / 2, EXACT_LIMIT, ALL_LIMIT), Some(SMALL), "but a few have their place");
        assert_eq!(more_room(0, 1, 0), Some(1));
    }

    proptest! {
        #[test]
        fn bins_keep_order_and_value(a in -1e9f64..1e9, b in -1e9f64..1e9) {
            prop_assert_eq!(bin(a.min(b)) <= bin(a.max(b)), true);
            prop_assert!((middle(bin(a)) - a).abs() <= a.abs() * BIN_WIDTH);
        }

        #[test]
        fn merged_is_as_pushed_one_by_one(a in prop::collection::vec(0f64..1e4, 0..40), b in prop::collection::vec(0f64..1e4, 0..40)) {
            let of = |values: &[f64]| values.iter().copied().collect::<Samples>();
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all = of(&[a, b].concat());
            prop_assert_eq!((merged.len(), merged.min(), merged.max()), (all.len(), all.min(), all.max()));
            let close = |x: Option<f64>, y: Option<f64>| match (x, y) {
                (Some(x), Some(y)) => (x - y).abs() < 1e-6,
                (x, y) => x == y,
            };
            prop_assert!(close(merged.mean(), all.mean()) && close(merged.stddev(), all.stddev()));
        }
    }
}
