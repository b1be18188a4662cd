//! Percentiles of samples in order: Hyndman–Fan type 7, what NumPy calls `linear`.

/// The percentiles that every distribution carries, with the names that they have in files.
pub const PERCENTILES: [(&str, f64); 10] = [
    ("p1", 0.01),
    ("p5", 0.05),
    ("p10", 0.10),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99_9", 0.999),
];

/// Fewer samples than this beyond a percentile, on its thinner side, and the percentile is called weak.
const SAMPLES_BEYOND: f64 = 5.0;

/// Quantile `p` of `n` samples of which `nth(k)` gives the `k`-th smallest, from 0; `None` of no samples.
///
/// With h = (n − 1)·p the value is `x[⌊h⌋] + (h − ⌊h⌋)·(x[⌊h⌋+1] − x[⌊h⌋])` (Hyndman and Fan 1996, type 7). An
/// infinite sample takes part only when its weight is not zero.
pub fn of_nth(n: u64, p: f64, nth: impl Fn(u64) -> f64) -> Option<f64> {
    let last = n.checked_sub(1)?;
    let at = last as f64 * p;
    let below = (at.floor() as u64).min(last);
    let share = at - below as f64;
    let low = nth(below);
    if share <= 0.0 || below == last {
        return Some(low);
    }
    let high = nth(below + 1);
    // From the nearer end, so that the result never leaves the interval by rounding.
    Some(if high.is_infinite() {
        high
    } else if share < 0.5 {
        low + (high - low) * share
    } else {
        high - (high - low) * (1.0 - share)
    })
}

/// Quantile `p` of samples that are already in ascending order.
pub fn of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    of_nth(sorted.len() as u64, p, |k| sorted[k as usize])
}

/// Whether `n` samples are too few for quantile `p`: fewer than five are expected beyond it.
///
/// `n·(1−p) < 5` above the median and `n·p < 5` below it.
pub fn is_weak(n: u64, p: f64) -> bool {
    // A hair of tolerance: 500 × (1 − 0.99) is 5.000000000000004 or 4.999999999999996 by the machine's mood.
    n as f64 * p.min(1.0 - p) < SAMPLES_BEYOND - 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_few() {
        assert_eq!(of_sorted(&[], 0.5), None);
        assert_eq!(of_sorted(&[7.0], 0.99), Some(7.0));
        assert_eq!(of_sorted(&[1.0, 2.0], 0.5), Some(1.5));
        assert_eq!(of_sorted(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
    }

    #[test]
    fn infinity_counts_only_with_weight() {
        let inf = f64::INFINITY;
        assert_eq!(of_sorted(&[1.0, 2.0, inf], 0.5), Some(2.0));
        assert_eq!(of_sorted(&[1.0, 2.0, inf], 0.51), Some(inf));
        assert_eq!(of_sorted(&[1.0, inf, inf], 0.9), Some(inf));
    }

    #[test]
    fn weak_by_samples_beyond() {
        for (n, p, weak) in
            [(500, 0.99, false), (499, 0.99, true), (10, 0.5, false), (9, 0.5, true), (99, 0.05, true)]
        {
            assert_eq!(is_weak(n, p), weak, "n={n} p={p}");
        }
    }

    proptest! {
        #[test]
        fn stays_between_neighbours_and_grows(mut x in prop::collection::vec(-1e6f64..1e6, 1..60), a in 0.0f64..1.0, b in 0.0f64..1.0) {
            x.sort_by(f64::total_cmp);
            let (low, high) = (of_sorted(&x, a.min(b)).unwrap(), of_sorted(&x, a.max(b)).unwrap());
            prop_assert!(low <= high && x[0] <= low && high <= x[x.len() - 1]);
        }
    }
}
