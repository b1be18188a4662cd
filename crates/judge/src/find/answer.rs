//! What a search found, with the evidence for it.

use serde::{Deserialize, Serialize};

use super::level::Level;
use super::objective::Objective;
use super::sequential::Says;
use crate::Axis;

/// The answer of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// `ttft.find/1`.
    pub schema: String,
    /// What kind of answer it is.
    pub outcome: Outcome,
    /// What was varied.
    pub axis: Axis,
    /// The smallest and the largest level that were allowed.
    pub bounds: [f64; 2],
    /// The highest level that meets all objectives and below which none is missed: the limit is at least this.
    pub met: Option<f64>,
    /// The lowest level that misses one: the limit is below this.
    pub missed: Option<f64>,
    /// Why the search ended before it was sure; null when it ended by itself.
    pub stopped: Option<String>,
    /// Requests it cost, those that brought the load up included.
    pub requests: u64,
    /// Probability at most that any level was judged wrongly, over all looks.
    pub error: f64,
    /// The evidence, by level.
    pub levels: Vec<LevelReport>,
}

/// What kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The limit lies between two levels.
    Found,
    /// The smallest level misses the objectives already.
    BelowSmallest,
    /// The largest level still meets them.
    NotReached,
    /// Not even the smallest level is clear.
    Unclear,
}

/// One level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelReport {
    /// Users, or requests a second.
    pub level: f64,
    /// What all objectives together say.
    pub says: Says,
    /// Stages played at it.
    pub stages: u32,
    /// Requests that ended.
    pub requests: u64,
    /// Of them those that failed.
    pub failed: u64,
    /// Of them those in the steady part of their stage.
    pub steady: u64,
    /// By objective.
    pub objectives: Vec<ObjectiveReport>,
}

/// One objective at a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveReport {
    /// As it was written.
    pub slo: String,
    /// What is said.
    pub says: Says,
    /// Requests looked at.
    pub n: u64,
    /// Share of requests beyond the threshold; of an objective on a mean, or on gaps, null.
    pub misses: Option<f64>,
    /// The share that is allowed.
    pub allowed: Option<f64>,
    /// The shares that are not ruled out, over all looks.
    pub interval: Option<[f64; 2]>,
}

impl LevelReport {
    pub(super) fn of(level: &Level, objectives: &[Objective]) -> Self {
        let of = objectives.iter().zip(&level.verdicts).map(|(objective, verdict)| ObjectiveReport {
            slo: objective.text.clone(),
            says: verdict.says,
            n: verdict.n,
            misses: objective.allowed.map(|_| verdict.value),
            allowed: objective.allowed,
            interval: objective.allowed.map(|_| verdict.interval),
        });
        Self {
            level: level.load,
            says: level.says,
            stages: level.stages,
            requests: level.requests,
            failed: level.failed,
            steady: level.steady,
            objectives: of.collect(),
        }
    }
}
