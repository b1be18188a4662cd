//! 95 % intervals: of a percentile by order statistics, of a mean by Student's t, of a share by Wilson.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// What is left out on each side of a 95 % interval.
const TAIL: f64 = 0.025;

/// The 0.975 quantile of the standard normal distribution.
pub const Z95: f64 = 1.959_963_984_540_054;

/// Above this variance of the binomial count the normal approximation is right to a rank or so, and the exact
/// distribution function stops being computable to that precision.
const EXACT_VARIANCE: f64 = 2_000.0;

/// The ranks, from 1, of the order statistics that enclose quantile `p` of the population with at least 95 %
/// confidence; `None` on a side where no sample is far enough out.
///
/// The number of samples below the quantile is binomial(n, p) whatever the distribution, so the ranks are its 2.5 %
/// quantile, and its 97.5 % quantile plus one (David and Nagaraja, *Order Statistics*, 7.1). Each side keeps its own
/// 2.5 %, so the cover is 95 % or a little more, by as much as one rank's weight.
pub fn order_ranks(n: u64, p: f64) -> (Option<u64>, Option<u64>) {
    if n == 0 {
        return (None, None);
    }
    let variance = n as f64 * p * (1.0 - p);
    let (low, high) = if variance <= EXACT_VARIANCE {
        let Ok(below) = Binomial::new(p, n) else { return (None, None) };
        (binomial_quantile(&below, n, TAIL), binomial_quantile(&below, n, 1.0 - TAIL))
    } else {
        let Ok(below) = Normal::new(n as f64 * p, variance.sqrt()) else { return (None, None) };
        let count = |tail: f64| (below.inverse_cdf(tail) + 0.5).floor().clamp(0.0, n as f64) as u64;
        (count(TAIL), count(1.0 - TAIL))
    };
    ((low > 0).then_some(low), (high < n).then_some(high + 1))
}

/// The smallest count whose distribution function reaches `mass`.
fn binomial_quantile(below: &Binomial, n: u64, mass: f64) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if below.cdf(middle) >= mass { high = middle } else { low = middle + 1 }
    }
    low
}

/// mean ± t(0.975, n−1) · stddev / √n; `None` below two samples.
pub fn mean_t(n: u64, mean: f64, stddev: f64) -> Option<[f64; 2]> {
    let freedom = n.checked_sub(1).filter(|f| *f > 0)?;
    let t = StudentsT::new(0.0, 1.0, freedom as f64).ok()?.inverse_cdf(1.0 - TAIL);
    let half = t * stddev / (n as f64).sqrt();
    Some([mean - half, mean + half])
}

/// Wilson's score interval of a share: `hits` of `n`; `None` of nothing.
///
/// (p̂ + z²/2n ± z·√(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n).
pub fn wilson(hits: u64, n: u64) -> Option<[f64; 2]> {
    if n == 0 {
        return None;
    }
    let (count, share, z2) = (n as f64, hits as f64 / n as f64, Z95 * Z95);
    let middle = share + z2 / (2.0 * count);
    let half = Z95 * (share * (1.0 - share) / count + z2 / (4.0 * count * count)).sqrt();
    let scale = 1.0 + z2 / count;
    Some([((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0)])
}
