//! Beginnings that prompts share, and which of them a request takes.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};
use ttft_model::{Pick, Prefixes};

use crate::draw::mixed;

/// Tells the words of prefixes from those of prompts, and the draws of groups from those of lengths.
const OF_PREFIXES: u64 = 0x5052_4546_4958;
const OF_GROUPS: u64 = 0x4752_4f55_5053;

/// The shared beginnings of a workload. A part of the run may have words of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    prefixes: Prefixes,
    seed: u64,
    words: u64,
}

impl Shared {
    pub(crate) fn new(prefixes: Prefixes, seed: u64) -> Self {
        Self { prefixes, seed, words: mixed(seed, OF_PREFIXES) }
    }

    /// The same in other words.
    pub(crate) fn in_words_of(self, part: u64) -> Self {
        Self { words: mixed(self.words, part), ..self }
    }

    /// Tokens of each.
    pub(crate) const fn tokens(&self) -> u32 {
        self.prefixes.tokens
    }

    /// The group of request number `number`, from 0.
    pub(crate) fn group(self, number: u64) -> u32 {
        let groups = self.prefixes.groups.max(1);
        let draw = mixed(self.seed ^ OF_GROUPS, number);
        match self.prefixes.pick {
            Pick::Uniform => (draw % u64::from(groups)) as u32,
            Pick::Zipf(exponent) => {
                let mut random = SmallRng::seed_from_u64(draw);
                // The parser lets no other exponents through.
                let drawn =
                    Zipf::new(f64::from(groups), exponent).map_or(1.0, |zipf| zipf.sample(&mut random));
                (drawn as u32).clamp(1, groups) - 1
            }
        }
    }

    /// The seed of the words that request number `number` begins with.
    pub(crate) fn seed_of(self, number: u64) -> u64 {
        mixed(self.words, u64::from(self.group(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pick: Pick) -> Vec<u32> {
        let shared = Shared::new(Prefixes { groups: 4, tokens: 5, pick }, 1);
        let mut counts = vec![0; 4];
        (0..4_000).for_each(|number| counts[shared.group(number) as usize] += 1);
        counts
    }

    #[test]
    fn groups_are_taken_as_asked() {
        assert!(counts(Pick::Uniform).iter().all(|n| (900..1100).contains(n)), "{:?}", counts(Pick::Uniform));
        // 1, 1/2, 1/3 and 1/4 of 25/12.
        let zipf = counts(Pick::Zipf(1.0));
        for (n, expect) in zipf.iter().zip([1920u32, 960, 640, 480]) {
            assert!(n.abs_diff(expect) < 120, "{zipf:?}");
        }
    }
}
