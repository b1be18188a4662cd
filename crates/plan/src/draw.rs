//! Lengths drawn at random: the same for the same seed and number.

use std::path::Path;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal, Normal};
use ttft_model::Lengths;

use crate::dataset::DatasetError;
use crate::empirical::{Empirical, Side};

/// Lengths that are drawn, their file loaded. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Draws {
    /// From a distribution.
    Shape(Lengths),
    /// From a file.
    File(Arc<Empirical>),
}

impl Draws {
    /// Loads the file that they are in, if they are in one.
    pub(crate) fn load(lengths: &Lengths) -> Result<Self, DatasetError> {
        Ok(match lengths {
            Lengths::Empirical(path) => Self::File(Arc::new(Empirical::load(Path::new(&**path))?)),
            lengths => Self::Shape(lengths.clone()),
        })
    }

    /// The length that number `number` draws; `None` where only a data set knows it.
    pub(crate) fn draw(&self, side: Side, seed: u64, number: u64) -> Option<u32> {
        match self {
            Self::Shape(lengths) => draw(lengths, seed, number),
            Self::File(file) => file.draw(side, seed, number),
        }
    }

    /// The length of the answer to the prompt whose length number `number` draws, if the file says so.
    pub(crate) fn draw_paired(&self, seed: u64, number: u64) -> Option<u32> {
        match self {
            Self::File(file) if file.has_pairs() => file.draw(Side::Output, seed, number),
            _ => None,
        }
    }

    /// The longest that can come; `None` where only a data set knows it.
    pub(crate) fn most(&self, side: Side) -> Option<u32> {
        match self {
            Self::Shape(Lengths::Recorded) => None,
            Self::Shape(lengths) => Some(lengths.most()),
            Self::File(file) => file.most(side),
        }
    }

    /// The longest answer of those that come with prompts.
    pub(crate) fn most_paired(&self) -> Option<u32> {
        match self {
            Self::File(file) if file.has_pairs() => file.most(Side::Output),
            _ => None,
        }
    }
}

/// Request number `number`'s length; `None` where only a file knows it. `seed` tells prompts from answers.
fn draw(lengths: &Lengths, seed: u64, number: u64) -> Option<u32> {
    let mut random = SmallRng::seed_from_u64(mixed(seed, number));
    let drawn = match *lengths {
        Lengths::Fixed(length) => return Some(length),
        Lengths::Recorded | Lengths::Empirical(_) => return None,
        Lengths::Uniform { least, most } => return Some(random.random_range(least..=most.max(least)).max(1)),
        // The parser lets no other parameters through than those that these take.
        Lengths::Normal { mean, deviation } => {
            Normal::new(mean, deviation).map_or(mean, |normal| normal.sample(&mut random))
        }
        Lengths::LogNormal { median, sigma } => {
            LogNormal::new(median.ln(), sigma).map_or(median, |normal| normal.sample(&mut random))
        }
    };
    Some((drawn.round().max(1.0) as u32).min(lengths.most()))
}

/// A seed of its own for each number: neighbours have nothing in common.
pub(crate) fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, standard deviation, least and most of many draws.
    fn shape(text: &str) -> (f64, f64, u32, u32) {
        let lengths: Lengths = text.parse().unwrap();
        let all: Vec<u32> = (0..20_000).filter_map(|number| draw(&lengths, 7, number)).collect();
        let n = all.len() as f64;
        let mean = all.iter().copied().map(f64::from).sum::<f64>() / n;
        let variance = all.iter().map(|length| (f64::from(*length) - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt(), *all.iter().min().unwrap(), *all.iter().max().unwrap())
    }

    #[test]
    fn each_kind_has_its_shape() {
        let (mean, deviation, least, most) = shape("uniform:100:900");
        assert!((mean - 500.0).abs() < 6.0 && (deviation - 231.0).abs() < 4.0);
        assert_eq!((least, most), (100, 900));
        let (mean, deviation, _, most) = shape("normal:500:100");
        assert!((mean - 500.0).abs() < 4.0 && (deviation - 100.0).abs() < 3.0 && most <= 900);
        // Mean of a log-normal: median · exp(σ²/2).
        let (mean, _, least, most) = shape("lognormal:500:0.5");
        assert!((mean - 500.0 * 0.125f64.exp()).abs() < 8.0, "{mean}");
        assert!(least >= 1 && most <= Lengths::LogNormal { median: 500.0, sigma: 0.5 }.most());
        assert_eq!(shape("64"), (64.0, 0.0, 64, 64));
        assert_eq!(shape("normal:1:50").2, 1, "never below one");
    }

    #[test]
    fn a_seed_repeats() {
        let lengths: Lengths = "uniform:1:1000000".parse().unwrap();
        assert_eq!(draw(&lengths, 1, 5), draw(&lengths, 1, 5));
        assert_ne!(draw(&lengths, 1, 5), draw(&lengths, 2, 5));
        assert_eq!(draw(&Lengths::Recorded, 1, 5), None);
    }
}
