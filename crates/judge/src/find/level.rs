//! What is known of one level of load: the scores of its requests, over all stages that were played at it.

use std::sync::Arc;

use ttft_model::{Nanos, Outcome, Record};

use super::objective::{Objective, Verdict};
use super::sequential::Says;
use crate::Axis;

/// The share of its requests that a level of arrivals must have had before it is said to meet anything.
const LONG: f64 = 0.5;

/// Fewer requests make no level clear.
const FEW: f64 = 30.0;

/// One request of a stage that is looked at.
#[derive(Debug, Clone)]
struct Row {
    started: Nanos,
    lasted: Nanos,
    scores: Vec<Option<f64>>,
}

/// Collects the requests of one stage of a search, in any order.
#[derive(Debug, Clone)]
pub struct Watch {
    objectives: Arc<[Objective]>,
    rows: Vec<Row>,
    failed: u64,
}

impl Watch {
    pub(super) fn new(objectives: Arc<[Objective]>) -> Self {
        Self { objectives, rows: Vec::new(), failed: 0 }
    }

    /// Looks at a request. Warm-ups, and those that the end of the run cut off, are passed over.
    pub fn push(&mut self, r: &Record) {
        if r.warmup || r.outcome() == Outcome::Cancelled {
            return;
        }
        self.failed += u64::from(r.outcome() != Outcome::Ok);
        self.rows.push(Row {
            started: r.phases.started,
            lasted: r.finished - r.phases.started,
            scores: self.objectives.iter().map(|objective| objective.score(r)).collect(),
        });
    }

    /// Requests that ended, and those of them that failed.
    pub fn counts(&self) -> (u64, u64) {
        (self.rows.len() as u64, self.failed)
    }

    /// The requests of the steady part, in the order of their starts.
    ///
    /// Left out at the beginning is what came before the load was there: the first request of each user, or what
    /// arrived within one mean time in flight. Left out at the end, where an objective looks at decoding, is as much:
    /// those requests ended under less load. Both by starts alone, so that no kind of answer is preferred.
    fn steady(mut self, axis: Axis, level: f64) -> Vec<Row> {
        self.rows.sort_by_key(|row| row.started);
        let n = self.rows.len();
        let tail = self.objectives.iter().any(Objective::looks_at_decoding);
        let (first, last) = match axis {
            Axis::Concurrency => {
                let users = (level as usize).min(n);
                (users, if tail { n - users } else { n })
            }
            Axis::Rate => {
                let mean = self.rows.iter().map(|row| row.lasted.0 as f64).sum::<f64>() / n.max(1) as f64;
                let at = |i: usize| self.rows.get(i).map_or(Nanos::ZERO, |row| row.started);
                let (begin, end) = (at(0) + Nanos(mean as i64), at(n.saturating_sub(1)) - Nanos(mean as i64));
                let first = self.rows.partition_point(|row| row.started < begin);
                (first, if tail { self.rows.partition_point(|row| row.started <= end) } else { n })
            }
        };
        // Of a queue that only grows nothing is steady; its later part is the most telling.
        let first = first.min(n / 2);
        let last = last.max(first + (n - first) / 2);
        self.rows.truncate(last);
        self.rows.drain(..first);
        self.rows
    }
}

/// Everything that was seen at one level.
#[derive(Debug, Clone)]
pub(super) struct Level {
    /// Users, or requests a second.
    pub(super) load: f64,
    pub(super) stages: u32,
    /// Requests that ended, and those of them that failed.
    pub(super) requests: u64,
    pub(super) failed: u64,
    /// Seconds that all of them were in flight.
    in_flight_s: f64,
    /// Requests in steady parts.
    pub(super) steady: u64,
    /// By objective.
    scores: Vec<Vec<f64>>,
    /// By objective, with what all of them together say.
    pub(super) verdicts: Vec<Verdict>,
    pub(super) says: Says,
}

impl Level {
    pub(super) fn new(load: f64) -> Self {
        Self {
            load,
            stages: 0,
            requests: 0,
            failed: 0,
            in_flight_s: 0.0,
            steady: 0,
            scores: Vec::new(),
            verdicts: Vec::new(),
            says: Says::Unclear,
        }
    }

    /// Adds one stage, and judges anew at an error of `alpha` for each objective; `most` is how many requests there
    /// may be at a level.
    pub(super) fn add(&mut self, axis: Axis, watch: Watch, alpha: f64, most: f64) {
        let objectives = watch.objectives.clone();
        let (ended, failed) = watch.counts();
        (self.stages, self.requests, self.failed) =
            (self.stages + 1, self.requests + ended, self.failed + failed);
        self.in_flight_s += watch.rows.iter().map(|row| row.lasted.as_secs_f64()).sum::<f64>();
        let rows = watch.steady(axis, self.load);
        self.steady += rows.len() as u64;
        self.scores.resize(objectives.len(), Vec::new());
        for (i, scores) in self.scores.iter_mut().enumerate() {
            scores.extend(rows.iter().filter_map(|row| row.scores[i]));
        }
        self.verdicts = objectives.iter().zip(&self.scores).map(|(of, s)| of.judge(s, alpha, most)).collect();
        self.says = if self.verdicts.iter().any(|verdict| verdict.says == Says::Misses) {
            Says::Misses
        } else if self.verdicts.iter().all(|verdict| verdict.says == Says::Meets) {
            Says::Meets
        } else {
            Says::Unclear
        };
        // Users who began together are slow together; one round of them shows nothing.
        if axis == Axis::Concurrency && (self.steady as f64) < self.load.max(FEW) {
            self.says = Says::Unclear;
        }
        // A queue takes its time to fill: a short stage shows only how it began.
        let is_short = (self.steady as f64) < LONG * most;
        if axis == Axis::Rate
            && self.says == Says::Meets
            && (is_short || self.still_rises(&objectives, alpha, most))
        {
            self.says = Says::Unclear;
        }
    }

    /// Whether the later half alone is beyond an objective: a queue that fills slowly is not hidden by its beginning.
    fn still_rises(&self, objectives: &[Objective], alpha: f64, most: f64) -> bool {
        objectives.iter().zip(&self.scores).any(|(of, scores)| {
            let late = &scores[scores.len() / 2..];
            !of.judge(late, alpha, most).leans
        })
    }

    /// How long a request is in flight, in seconds.
    pub(super) fn mean_total_s(&self) -> f64 {
        self.in_flight_s / self.requests.max(1) as f64
    }

    /// Whether every estimate is on the right side.
    pub(super) fn leans(&self) -> bool {
        self.says == Says::Meets || self.verdicts.iter().all(|verdict| verdict.leans)
    }
}
