//! How long each user of a closed loop thinks: drawn from a seed, for each of its pauses.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use ttft_model::{Nanos, Think};

/// The pauses of one user. The same seed and user give the same pauses.
#[derive(Debug)]
pub(crate) struct Pauses {
    think: Option<Think>,
    random: SmallRng,
}

impl Pauses {
    pub(crate) fn new(think: Option<Think>, seed: u64, user: u32) -> Self {
        let random = SmallRng::seed_from_u64(seed ^ (u64::from(user) << 32) ^ 0x0074_6869_6e6b);
        Self { think, random }
    }

    /// The next one; nothing when users do not think.
    pub(crate) fn next(&mut self) -> Option<Nanos> {
        Some(match self.think? {
            Think::Fixed(span) => span.0,
            Think::Uniform(from, to) => {
                Nanos(self.random.random_range(from.0.0.min(to.0.0)..=to.0.0.max(from.0.0)))
            }
            Think::Exponential(mean) => {
                let unit: f64 = Exp1.sample(&mut self.random);
                Nanos((mean.0.0 as f64 * unit) as i64)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_ms(think: &str) -> f64 {
        let mut pauses = Pauses::new(Some(think.parse().unwrap()), 7, 3);
        let n = 20_000;
        (0..n).filter_map(|_| pauses.next()).map(Nanos::as_millis_f64).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn each_kind_has_its_mean() {
        assert!((mean_ms("20ms") - 20.0).abs() < 1e-9);
        assert!((mean_ms("uniform:10ms:30ms") - 20.0).abs() < 0.2);
        assert!((mean_ms("exp:20ms") - 20.0).abs() < 0.7);
        assert_eq!(Pauses::new(None, 7, 3).next(), None);
    }

    #[test]
    fn users_think_apart_and_a_seed_repeats() {
        let take = |user| {
            let mut pauses = Pauses::new(Some("exp:1s".parse().unwrap()), 7, user);
            [pauses.next(), pauses.next()]
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }
}
