//! Where p99 of TTFT leaves its flat part while the median has not.

use rand::rngs::StdRng;

use super::cause;
use super::level::Level;
use super::{Axis, CrossCheck, KneePoint, REPLICATES, Search, enough, interval};
use crate::say::ms;

/// Above the flat part by this factor, a percentile has left it.
const LEFT: f64 = 1.25;

/// Fewer requests have no p99 to speak of.
const LEAST: u64 = 100;

/// So many of the replicates must have left. With the margin of [`LEFT`] a flat sweep raises an alarm in fewer than two
/// of a hundred runs, all levels together (see the tests).
const SURE: f64 = 0.95;

/// Finds it.
pub(super) fn find(axis: Axis, levels: &[&Level], random: &mut StdRng) -> Search {
    let levels = &*enough(levels, LEAST)?;
    let medians: Vec<f64> = levels.iter().map(|level| level.quantile(0.5)).collect();
    let tails: Vec<f64> = levels.iter().map(|level| level.quantile(0.99)).collect();
    let (mut drawn_medians, mut drawn_tails) = (Vec::new(), Vec::new());
    for _ in 0..REPLICATES {
        let (medians, tails): (Vec<f64>, Vec<f64>) =
            levels.iter().map(|level| level.draw_ttft(random)).unzip();
        drawn_medians.push(medians);
        drawn_tails.push(tails);
    }
    let share = |drawn: &[Vec<f64>], at: usize| {
        drawn.iter().filter(|values| ratio(values, at) > LEFT).count() as f64 / REPLICATES as f64
    };
    for at in 1..levels.len() {
        let left = ratio(&tails, at) > LEFT && share(&drawn_tails, at) >= SURE;
        // A tail that comes back at the next level was an accident.
        let stays = at + 1 == levels.len() || tails[at + 1] / reference(&tails, at) > LEFT;
        let median_left = ratio(&medians, at) > LEFT && share(&drawn_medians, at) >= 0.5;
        let name = &levels[at].stage.name;
        if median_left {
            let both = if left { "the median and p99 rise together" } else { "the median rises first" };
            return Err(format!(
                "{both}, at {name}: median {} after {}, p99 {} after {}",
                ms(medians[at]),
                ms(reference(&medians, at)),
                ms(tails[at]),
                ms(reference(&tails, at)),
            ));
        }
        if left && stays {
            let mut found: Vec<usize> = drawn_tails
                .iter()
                .filter_map(|tails| (1..levels.len()).find(|at| ratio(tails, *at) > LEFT))
                .collect();
            return Ok(KneePoint {
                stage: name.clone(),
                axis,
                level: levels[at].load,
                above: Some(levels[at - 1].load),
                ci95: interval(levels, &mut found),
                confidence: share(&drawn_tails, at),
                value: tails[at],
                reference: reference(&tails, at),
                evidence: format!(
                    "p99 of TTFT is {} at {name}, {:.1} times the {} of the levels below, while the median is {} \
                     against {}",
                    ms(tails[at]),
                    ratio(&tails, at),
                    ms(reference(&tails, at)),
                    ms(medians[at]),
                    ms(reference(&medians, at)),
                ),
                probable_cause: cause::of_tail(levels, at),
                littles_law: CrossCheck::of(levels[at].stage),
            });
        }
    }
    Err(format!("p99 of TTFT stays within {LEFT} times its flat part, as far as these samples tell"))
}

/// The flat part below a level: the geometric mean of all levels before it.
fn reference(values: &[f64], at: usize) -> f64 {
    (values[..at].iter().map(|v| v.ln()).sum::<f64>() / at as f64).exp()
}

fn ratio(values: &[f64], at: usize) -> f64 {
    values[at] / reference(values, at)
}
