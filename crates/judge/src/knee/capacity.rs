//! Where throughput stops growing.

use rand::rngs::StdRng;

use super::level::Level;
use super::{Axis, CrossCheck, KneePoint, LEAST_LEVELS, REPLICATES, Search, cause, enough, interval};

/// Throughput this close to the most of any level has stopped growing.
const CLOSE: f64 = 0.9;

/// There must be a level of so many times the load beyond, to show that more load brings no more.
pub(super) const BEYOND: f64 = 1.5;

/// Fewer requests have no rate to speak of.
const LEAST: u64 = 20;

/// So many of the replicates must show a knee.
const SURE: f64 = 0.95;

/// Finds it.
pub(super) fn find(axis: Axis, levels: &[&Level], random: &mut StdRng) -> Search {
    let steady: Vec<&Level> = levels.iter().filter(|level| level.steady).copied().collect();
    if steady.len() < LEAST_LEVELS && steady.len() < levels.len() {
        return Err(format!(
            "cannot tell from {} of {} levels with a steady window; {LEAST_LEVELS} are needed",
            steady.len(),
            levels.len()
        ));
    }
    let levels = &*enough(&steady, LEAST)?;
    let rates: Vec<f64> = levels.iter().map(|level| level.rate).collect();
    let loads: Vec<f64> = levels.iter().map(|level| level.load).collect();
    let Some(at) = plateau(&loads, &rates) else {
        let last = levels[levels.len() - 1];
        return Err(format!(
            "throughput still grows at the last level, {} ({:.3} requests/s)",
            last.stage.name, last.rate
        ));
    };
    let mut found: Vec<usize> = (0..REPLICATES)
        .filter_map(|_| {
            let drawn: Vec<f64> = levels.iter().map(|level| level.draw_rate(random)).collect();
            plateau(&loads, &drawn)
        })
        .collect();
    let confidence = found.len() as f64 / REPLICATES as f64;
    let most = rates.iter().copied().fold(0.0, f64::max);
    let (here, name) = (levels[at], &levels[at].stage.name);
    if confidence < SURE {
        return Err(format!(
            "cannot tell: throughput may stop growing at {name} ({:.3} requests/s), but its error is too large",
            here.rate
        ));
    }
    let never_grew = found.iter().filter(|found| **found == 0).count() as f64 / REPLICATES as f64;
    if at == 0 || never_grew > 1.0 - SURE {
        return Err(format!(
            "throughput does not grow, as far as these samples tell ({:.3} requests/s at {}, at most {most:.3}): \
             capacity is reached at the smallest level or below it",
            rates[0], levels[0].stage.name
        ));
    }
    let last = levels[levels.len() - 1];
    Ok(KneePoint {
        stage: name.clone(),
        axis,
        level: here.load,
        above: Some(loads[at - 1]),
        ci95: interval(levels, &mut found),
        confidence,
        value: here.rate,
        reference: most,
        evidence: format!(
            "{:.3} requests/s at {name} after {:.3} at {} {}; {:.1} times the load brings no more than {:.3}",
            here.rate,
            rates[at - 1],
            axis.name(),
            loads[at - 1],
            last.load / here.load,
            rates[at + 1..].iter().copied().fold(0.0, f64::max),
        ),
        probable_cause: cause::of_capacity(levels, at),
        littles_law: CrossCheck::of(here.stage),
    })
}

/// The first level whose throughput is close to the most of any, if there is enough load beyond it.
fn plateau(loads: &[f64], rates: &[f64]) -> Option<usize> {
    let most = rates.iter().copied().fold(0.0, f64::max);
    let at = rates.iter().position(|rate| *rate >= CLOSE * most)?;
    (most > 0.0 && *loads.last()? >= BEYOND * loads[at]).then_some(at)
}
