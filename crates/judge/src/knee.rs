//! The knees of a sweep: where the tail of TTFT leaves its flat part, and where throughput stops growing.
//!
//! A sweep is the stages of one workload and model that differ only in concurrency, or only in rate. Repetitions of a
//! level are one level. Levels at which the client itself was not at its best are no evidence of the server and are
//! left out; a knee that only they show is not named.

mod capacity;
mod cause;
mod level;
mod littles;
#[cfg(test)]
mod simulated;
mod tail;
#[cfg(test)]
pub(crate) mod tests;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

pub(crate) use self::level::Evidence;
use self::level::{Level, Sweep, sweeps};
pub use self::littles::CrossCheck;
use crate::{StageSummary, Verdict};

/// Bootstrap replicates.
const REPLICATES: usize = 500;

/// Fewer levels show no flat part and no end of growth.
const LEAST_LEVELS: usize = 3;

/// Seed of the bootstrap: the same records give the same knees.
const SEED: u64 = 0x6b6e_6565;

/// The knees of a run's largest sweep, and of its other ones.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Knee {
    /// The first level at which p99 of TTFT has left its flat part while the median has not.
    pub tail_knee: Option<KneePoint>,
    /// The first level from which on throughput does not grow.
    pub capacity_knee: Option<KneePoint>,
    /// Of either knee that is null why, in words.
    pub reason: String,
    /// Levels of the sweep; 0 where there was none.
    pub levels: u32,
    /// Which sweep this is, when there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<String>,
    /// The other sweeps of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Knee>,
}

/// One knee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KneePoint {
    /// The stage of that level (the first of its repetitions).
    pub stage: String,
    /// `concurrency` or `rate`.
    pub axis: Axis,
    /// The level at which it shows.
    pub level: f64,
    /// The level below it: the knee lies between the two.
    pub above: Option<f64>,
    /// The levels in which 95 % of the bootstrap replicates put it.
    pub ci95: [f64; 2],
    /// Share of bootstrap replicates that show it.
    pub confidence: f64,
    /// At the level: p99 of TTFT in milliseconds, or requests per second.
    pub value: f64,
    /// What it is compared with: p99 of the flat part, or the most requests per second of any level.
    pub reference: f64,
    /// The evidence in words.
    pub evidence: String,
    /// The probable cause, where the figures tell.
    pub probable_cause: Option<String>,
    /// Requests in flight at the level, by each that counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub littles_law: Option<CrossCheck>,
}

/// What is varied in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Users of a closed loop.
    Concurrency,
    /// Requests per second of an open loop.
    Rate,
}

impl Axis {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Concurrency => "concurrency",
            Self::Rate => "rate",
        }
    }
}

/// What a search says: a knee, or why there is none.
type Search = Result<KneePoint, String>;

/// The knees of a run.
pub(crate) fn find(stages: &[StageSummary], evidence: &[Evidence]) -> Knee {
    let mut sweeps = sweeps(stages, evidence);
    // The largest first; of equals the one that was run first.
    sweeps.sort_by_key(|sweep| std::cmp::Reverse(sweep.levels.len()));
    let several = sweeps.iter().filter(|sweep| sweep.levels.len() > 1).count() > 1;
    let mut knees = sweeps.iter().filter(|sweep| sweep.levels.len() > 1).map(|sweep| {
        let mut knee = of_sweep(sweep);
        knee.sweep = several.then(|| sweep.name.clone());
        knee
    });
    let Some(mut first) = knees.next() else {
        let reason = "no sweep: no two stages differ only in concurrency or rate".to_owned();
        return Knee { reason, ..Knee::default() };
    };
    first.others = knees.collect();
    first
}

fn of_sweep(sweep: &Sweep) -> Knee {
    let (tail, capacity) = (tail_knee(sweep), capacity_knee(sweep));
    let mut reason = match (&tail, &capacity) {
        (Ok(_), Ok(_)) => String::new(),
        (Err(why), Ok(_)) => format!("{NO_TAIL}{why}"),
        (Ok(_), Err(why)) => format!("{NO_CAPACITY}{why}"),
        (Err(one), Err(other)) if one == other => format!("neither knee: {one}"),
        (Err(tail), Err(capacity)) => format!("{NO_TAIL}{tail}; {NO_CAPACITY}{capacity}"),
    };
    let out: Vec<&Level> = sweep.levels.iter().filter(|level| level.trust != Verdict::Ok).collect();
    if let (false, Some(first)) = (reason.is_empty(), out.first()) {
        let names: Vec<&str> = out.iter().map(|level| level.stage.name.as_str()).collect();
        let trouble = first.trouble.as_deref().unwrap_or(first.trust.name());
        reason = format!("{reason}; the client was not at its best at {}: {trouble}", names.join(", "));
    }
    Knee {
        levels: sweep.levels.len() as u32,
        tail_knee: tail.ok(),
        capacity_knee: capacity.ok(),
        reason,
        ..Knee::default()
    }
}

const NO_TAIL: &str = "no tail knee: ";
const NO_CAPACITY: &str = "no capacity knee: ";

/// A level at which the client was suspect may stand for the flat part, since its own delays only hide a knee; it can
/// be no knee itself.
fn tail_knee(sweep: &Sweep) -> Search {
    match search(sweep, Verdict::Suspect, tail::find) {
        Ok(knee) if good(sweep).any(|level| level.load.to_bits() == knee.level.to_bits()) => Ok(knee),
        _ => search(sweep, Verdict::Ok, tail::find).map_err(|why| blame(sweep, why, tail::find)),
    }
}

/// A level at which the client was suspect may stand for the growth, but neither for its end nor for what comes beyond.
fn capacity_knee(sweep: &Sweep) -> Search {
    match search(sweep, Verdict::Suspect, capacity::find) {
        Ok(knee)
            if good(sweep).any(|level| level.load.to_bits() == knee.level.to_bits())
                && good(sweep).any(|level| level.steady && level.load >= capacity::BEYOND * knee.level) =>
        {
            Ok(knee)
        }
        _ => search(sweep, Verdict::Ok, capacity::find).map_err(|why| blame(sweep, why, capacity::find)),
    }
}

fn good<'a, 'b>(sweep: &'a Sweep<'b>) -> impl Iterator<Item = &'a Level<'b>> {
    sweep.levels.iter().filter(|level| level.trust == Verdict::Ok)
}

type Find = fn(Axis, &[&Level], &mut StdRng) -> Search;

/// Looks among the levels at which the client was no worse than that.
fn search(sweep: &Sweep, worst: Verdict, find: Find) -> Search {
    let levels: Vec<&Level> = sweep.levels.iter().filter(|level| level.trust <= worst).collect();
    find(sweep.axis, &levels, &mut StdRng::seed_from_u64(SEED))
}

/// Why there is no knee: what shows only with the levels of a bad client is said to be its own.
fn blame(sweep: &Sweep, why: String, find: Find) -> String {
    if sweep.levels.iter().all(|level| level.trust == Verdict::Ok) {
        return why;
    }
    match search(sweep, Verdict::Invalid, find) {
        Ok(knee) => format!("what shows at {} is not the server's, or not surely", knee.stage),
        Err(_) => why,
    }
}

/// The levels with enough requests, if those are enough levels.
fn enough<'a, 'b>(levels: &[&'a Level<'b>], least: u64) -> Result<Vec<&'a Level<'b>>, String> {
    let usable: Vec<_> = levels.iter().filter(|level| level.n >= least).copied().collect();
    if usable.len() >= LEAST_LEVELS {
        return Ok(usable);
    }
    let few = if levels.len() < LEAST_LEVELS {
        format!("{} usable {}", levels.len(), if levels.len() == 1 { "level" } else { "levels" })
    } else {
        return Err(format!(
            "cannot tell: {} of {} levels have the {least} requests that it takes, {LEAST_LEVELS} must",
            usable.len(),
            levels.len()
        ));
    };
    Err(format!("cannot tell from {few}; {LEAST_LEVELS} are needed"))
}

/// The levels between which 95 % of the replicates' findings lie.
fn interval(levels: &[&Level], found: &mut [usize]) -> [f64; 2] {
    found.sort_unstable();
    let at = |p: f64| found[((found.len() - 1) as f64 * p).round() as usize];
    [levels[at(0.025)].load, levels[at(0.975)].load]
}
