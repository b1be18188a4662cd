//! Tests that may be looked at as often as one likes: their error is bounded over all looks together.
//!
//! Of a share: the likelihood ratio of a beta mixture against the claimed share, which exceeds 1/α at any look with
//! probability α at most (Ville's inequality; Robbins, *Statistical methods related to the law of the iterated
//! logarithm*, Annals of Mathematical Statistics 41, 1970). Of a mean: the asymptotic confidence sequence of
//! Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (*Time-uniform central limit theory and asymptotic confidence
//! sequences*, Annals of Statistics 52, 2024).

use statrs::function::beta::ln_beta;

/// What a test says so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// The objective is met.
    Meets,
    /// It is missed.
    Misses,
    /// Neither is sure.
    Unclear,
}

/// A share of misses out of `of` requests; both may be fractions, when requests that depend on each other count for
/// fewer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    pub(super) misses: f64,
    pub(super) of: f64,
}

impl Share {
    /// Whether the share of the population is below `allowed`, or not, with an error of at most `alpha` over all looks.
    pub(super) fn says(self, allowed: f64, alpha: f64) -> Says {
        if self.of <= 0.0 || self.evidence(allowed, allowed) < -alpha.ln() {
            Says::Unclear
        } else if self.misses / self.of < allowed {
            Says::Meets
        } else {
            Says::Misses
        }
    }

    /// The shares that are not ruled out at `alpha`, over all looks. The mixture is the one around `allowed`.
    pub(super) fn interval(self, allowed: f64, alpha: f64) -> [f64; 2] {
        if self.of <= 0.0 {
            return [0.0, 1.0];
        }
        let share = self.misses / self.of;
        let out = |claim: f64| self.evidence(claim, allowed) >= -alpha.ln();
        let edge = |mut inside: f64, mut outside: f64| {
            for _ in 0..50 {
                let middle = f64::midpoint(inside, outside);
                if out(middle) { outside = middle } else { inside = middle }
            }
            inside
        };
        // At an end the likelihood is 0 or 1, and its logarithm not to be had.
        let hair = 1e-12;
        [edge(share.clamp(hair, 1.0 - hair), hair), edge(share.clamp(hair, 1.0 - hair), 1.0 - hair)]
    }

    /// Logarithm of the mixture's likelihood over that of `claim`: a beta mixture whose mean is `around`, worth as much
    /// as one expected half of a miss (or of a hit, whichever is rarer).
    fn evidence(self, claim: f64, around: f64) -> f64 {
        let weight = 0.5 / around.min(1.0 - around);
        let (a, b) = (around * weight, (1.0 - around) * weight);
        let hits = self.of - self.misses;
        ln_beta(a + self.misses, b + hits)
            - ln_beta(a, b)
            - self.misses * claim.ln()
            - hits * (1.0 - claim).ln()
    }

    /// How many requests in all would make it clear, if the share stayed what it is so far; at least one miss (or hit)
    /// in twice as many is allowed for. `None` when not even `most` would.
    pub(super) fn enough(self, allowed: f64, alpha: f64, most: f64) -> Option<f64> {
        let share = if self.of > 0.0 { self.misses / self.of } else { 0.0 };
        let clear = |of: f64| Share { misses: share * of, of }.says(allowed, alpha) != Says::Unclear;
        if !clear(most) {
            return None;
        }
        let (mut low, mut high) = (self.of, most);
        while high - low > 1.0 {
            let middle = f64::midpoint(low, high);
            if clear(middle) { high = middle } else { low = middle }
        }
        Some(high.ceil())
    }
}

/// A mean of `of` values, fractions as above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mean {
    pub(super) value: f64,
    pub(super) stddev: f64,
    pub(super) of: f64,
}

impl Mean {
    /// Fewer values have no spread to speak of.
    const LEAST: f64 = 30.0;

    /// So many values is where the sequence is narrowest.
    const TUNED: f64 = 300.0;

    /// Whether the population's mean is below 0, or not, with an error of about `alpha` over all looks.
    pub(super) fn says(self, alpha: f64) -> Says {
        match self.half(alpha) {
            Some(half) if self.value + half < 0.0 => Says::Meets,
            Some(half) if self.value - half > 0.0 => Says::Misses,
            _ => Says::Unclear,
        }
    }

    /// Half of the interval's width; `None` of too few.
    pub(super) fn half(self, alpha: f64) -> Option<f64> {
        let n = self.of;
        if n < Self::LEAST {
            return None;
        }
        let wanted = -2.0 * alpha.ln();
        let rho2 = (wanted + wanted.ln() + 1.0) / Self::TUNED;
        let x = n * rho2 + 1.0;
        Some(self.stddev * (2.0 * x / (n * n * rho2) * (x.sqrt() / alpha).ln()).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution as _, LogNormal};

    use super::*;

    const ALPHA: f64 = 0.05;

    /// The share of 400 sequences in which a test that is looked at after every ten requests ever says anything.
    fn ever(mut says: impl FnMut(&mut StdRng) -> Vec<Says>, wrong: Says) -> f64 {
        let mut random = StdRng::seed_from_u64(8);
        let alarms = (0..400).filter(|_| says(&mut random).contains(&wrong)).count();
        alarms as f64 / 400.0
    }

    fn looks(share: f64, random: &mut StdRng) -> Vec<Says> {
        let mut seen = Share { misses: 0.0, of: 0.0 };
        let mut look = |_| {
            seen.of += 10.0;
            seen.misses += (0..10).filter(|_| random.random_bool(share)).count() as f64;
            seen.says(0.05, ALPHA)
        };
        (0..200).map(&mut look).collect()
    }

    #[test]
    fn looking_often_does_not_make_it_err() {
        for wrong in [Says::Meets, Says::Misses] {
            let errs = ever(|random| looks(0.05, random), wrong);
            assert!(errs <= ALPHA, "{wrong:?} at the very limit: {errs}");
        }
    }

    #[test]
    fn what_is_clear_is_soon_said() {
        assert!(ever(|random| looks(0.01, random), Says::Meets) > 0.99);
        assert!(ever(|random| looks(0.15, random), Says::Misses) > 0.99);
        let none = Share { misses: 0.0, of: 0.0 };
        let enough = none.enough(0.05, ALPHA, 1e4).unwrap();
        assert!((60.0..100.0).contains(&enough), "{enough} without a miss meet p95");
        let enough = none.enough(0.01, ALPHA, 1e4).unwrap();
        assert!((350.0..450.0).contains(&enough), "{enough} without a miss meet p99");
        assert_eq!(
            Share { misses: 5.0, of: 100.0 }.enough(0.05, ALPHA, 1e4),
            None,
            "at the limit nothing is"
        );
    }

    #[test]
    fn an_interval_holds_what_is_not_ruled_out() {
        let seen = Share { misses: 12.0, of: 400.0 };
        let [low, high] = seen.interval(0.05, ALPHA);
        assert!(low > 0.01 && low < 0.03 && high > 0.03 && high < 0.07, "{low} {high}");
        assert_eq!(seen.says(0.05, ALPHA) == Says::Unclear, (low..high).contains(&0.05));
    }

    #[test]
    fn means_of_skewed_values_err_no_more_than_claimed() {
        let law = LogNormal::new(0.0, 0.6).unwrap();
        let truth = 0.18f64.exp();
        let draw = |random: &mut StdRng, shift: f64| {
            let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
            let mut look = |_| {
                for _ in 0..10 {
                    let x = law.sample(random) - truth + shift;
                    (n, sum, squares) = (n + 1.0, sum + x, squares + x * x);
                }
                let mean: f64 = sum / n;
                let stddev = ((squares - n * mean * mean) / (n - 1.0)).sqrt();
                Mean { value: mean, stddev, of: n }.says(ALPHA)
            };
            (0..100).map(&mut look).collect::<Vec<_>>()
        };
        for wrong in [Says::Meets, Says::Misses] {
            let errs = ever(|random| draw(random, 0.0), wrong);
            assert!(errs <= ALPHA, "{wrong:?}: {errs}");
        }
        assert!(ever(|random| draw(random, -0.3), Says::Meets) > 0.99);
    }
}
