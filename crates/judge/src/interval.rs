//! 95 % intervals: of a percentile by order statistics, of a mean by Student's t, of a share by Wilson.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// What is left out on each side of a 95 % interval.
const TAIL: f64 = 0.025;

/// The 0.975 quantile of the standard normal distribution.
pub const Z95: f64 = 1.959_963_984_540_054;

/// Above this variance of the binomial count the normal approximation is right to a rank or so, and the exact
/// distribution function stops being computable to that precision.
const EXACT_VARIANCE: f64 = 2_000.0;

/// A place among `n` samples in order, counted from 1; between two ranks it stands for the value between theirs.
pub type Place = f64;

/// The places among `n` samples in order that enclose quantile `p` of the population with 95 % confidence; `None` on
/// a side where no sample is far enough out.
///
/// The number of samples below the quantile is binomial(n, p) whatever the distribution, so whole ranks cover by steps
/// of that distribution: 98 % for p95 of a hundred samples, which claims too little. Between the two ranks of a step
/// the place is interpolated: with weight λ on the upper one its cover is
/// `P(B < r) + P(B = r) · λa / (λa + (1 − λ)b)`, a = r/p, b = (n − r)/(1 − p), if the density is about even around the
/// quantile (Nyblom, *Note on interpolated order statistics*, Statistics & Probability Letters 14, 1992; for the median
/// it is Hettmansperger and Sheather's). Where the density is not, the cover lies between those of the two ranks.
///
/// Each side leaves out 2.5 %. Where one of them cannot be bounded (n·p99 of fewer than 368 samples, from above), the
/// interval has one end, and that end leaves out the whole 5 %.
pub fn order_places(n: u64, p: f64) -> (Option<Place>, Option<Place>) {
    places(n, p, 2.0 * TAIL)
}

/// The same of an interval that leaves out `outside` of the cases.
pub(crate) fn places(n: u64, p: f64, outside: f64) -> (Option<Place>, Option<Place>) {
    if n == 0 || !(0.0..=1.0).contains(&p) {
        return (None, None);
    }
    let below = Below::new(n, p);
    let (low, high) = (below.place(outside / 2.0), below.place(1.0 - outside / 2.0));
    match (low, high) {
        (Some(low), None) => (below.place(outside).or(Some(low)), None),
        (None, Some(high)) => (None, below.place(1.0 - outside).or(Some(high))),
        both => both,
    }
}

/// How many of `n` samples lie below quantile `p` of their population.
struct Below {
    n: u64,
    p: f64,
    exact: Option<Binomial>,
}

impl Below {
    fn new(n: u64, p: f64) -> Self {
        let exact = Binomial::new(p, n).ok().filter(|_| n as f64 * p * (1.0 - p) <= EXACT_VARIANCE);
        Self { n, p, exact }
    }

    /// The place that lies above the quantile with probability `mass`; `None` where it would be beyond all samples.
    fn place(&self, mass: f64) -> Option<Place> {
        let n = self.n as f64;
        let Some(exact) = &self.exact else {
            // With a continuity correction, the interpolated ranks are those of a continuous count.
            let normal = Normal::new(n * self.p, (n * self.p * (1.0 - self.p)).sqrt()).ok()?;
            return Some(normal.inverse_cdf(mass) + 0.5).filter(|place| (1.0..=n).contains(place));
        };
        // The r-th smallest lies above the quantile if fewer than r samples lie below it.
        let r = self.quantile(exact, mass);
        let above = |r: u64| if r == 0 { 0.0 } else { exact.cdf(r - 1) };
        if r == 0 || r == self.n {
            return None;
        }
        let share = (mass - above(r)) / (above(r + 1) - above(r));
        let (a, b) = (r as f64 / self.p, (self.n - r) as f64 / (1.0 - self.p));
        let weight = share * b / (share * b + (1.0 - share) * a);
        Some(r as f64 + weight)
    }

    /// The smallest count whose distribution function reaches `mass`.
    fn quantile(&self, exact: &Binomial, mass: f64) -> u64 {
        let (mut low, mut high) = (0, self.n);
        while low < high {
            let middle = low + (high - low) / 2;
            if exact.cdf(middle) >= mass { high = middle } else { low = middle + 1 }
        }
        low
    }
}

/// The value at a place among samples of which `nth(k)` gives the `k`-th smallest, from 0.
pub fn at_place(place: Place, nth: impl Fn(u64) -> f64) -> f64 {
    let (rank, share) = (place.floor(), place.fract());
    let low = nth((rank as u64).saturating_sub(1));
    if share <= 0.0 {
        return low;
    }
    let high = nth(rank as u64);
    low + (high - low) * share
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
