//! Small deterministic random numbers (`SplitMix64`) and the hash behind every "chosen by the request" decision.

/// A seeded generator; the same seed gives the same numbers on every machine and in every version.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.next())
    }

    /// A log-normal factor with median 1; exactly 1 when `sigma` is 0.
    pub(crate) fn factor(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 {
            return 1.0;
        }
        // Box–Muller; 1 − u keeps the logarithm finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        (sigma * radius * (std::f64::consts::TAU * self.unit()).cos()).exp()
    }
}

/// Mixes all bits of a number (the finaliser of `SplitMix64`).
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The top 53 bits as a number in [0, 1).
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Hashes bytes into a running hash, eight at a time.
pub(crate) fn hash(mut state: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        state = (state ^ u64::from_le_bytes(eight)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    let mut tail = [0; 8];
    tail[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(state ^ u64::from_le_bytes(tail) ^ (bytes.len() as u64) << 56)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_has_median_one_and_the_asked_spread() {
        let mut random = Random::new(7);
        let mut logs: Vec<f64> = (0..20_000).map(|_| random.factor(0.5).ln()).collect();
        logs.sort_by(f64::total_cmp);
        assert!(logs[10_000].abs() < 0.02, "median {}", logs[10_000]);
        assert!((logs[16_827] - 0.5).abs() < 0.03, "one sigma {}", logs[16_827]);
        assert!((Random::new(7).factor(0.0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn hash_tells_lengths_and_orders_apart() {
        let all: Vec<u64> = ["", "a", "a\0", "abcdefgh", "abcdefgh\0", "hgfedcba", "abcdefghi"]
            .iter()
            .map(|text| hash(1, text.as_bytes()))
            .collect();
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "{i}");
        }
    }
}
