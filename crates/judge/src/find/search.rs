//! Where to measure next: doubling until an objective is missed, then bisection, then a second look at the two levels
//! that the answer rests on.

use std::sync::Arc;

use super::answer::{Answer, LevelReport, Outcome};
use super::level::{Level, Watch};
use super::objective::Objective;
use super::sequential::Says;
use crate::{Axis, Error, Slo};

/// Requests of a first look at a level, beside those that bring the load up.
const QUICK: u64 = 60;

/// Requests of a second look, after which a level's answer is taken for confirmed.
const AGAIN: u64 = 100;

/// Where a search looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// What is varied.
    pub axis: Axis,
    /// The smallest level.
    pub low: f64,
    /// The largest one.
    pub high: f64,
}

/// How hard it looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Requests at one level in steady state, at most.
    pub per_level: u64,
    /// Requests in all.
    pub in_all: Option<u64>,
    /// The ends of the answer are no farther apart than this share, if that can be had; users no closer than one.
    pub resolution: f64,
    /// Probability that any level is judged wrongly, over all looks at all of them.
    pub error: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { per_level: 2_000, in_all: None, resolution: 0.05, error: 0.05 }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Play a stage.
    Measure {
        /// At this level.
        level: f64,
        /// Of so many requests.
        requests: u64,
    },
    /// That was all.
    Done(Answer),
}

/// A search for the highest level of load that meets objectives.
#[derive(Debug, Clone)]
pub struct Search {
    bounds: Bounds,
    options: Options,
    objectives: Arc<[Objective]>,
    /// In ascending order.
    levels: Vec<Level>,
    /// Error of one test.
    alpha: f64,
}

/// What is to be done at the levels known so far.
enum Step {
    At(f64),
    More(usize),
    Confirm(usize),
    End(Outcome),
}

impl Search {
    /// A search between bounds; an error for objectives that none can be made for, or bounds that hold nothing.
    pub fn new(bounds: Bounds, slos: &[Slo], options: Options) -> Result<Self, Error> {
        let whole = bounds.axis == Axis::Rate || (bounds.low.fract() == 0.0 && bounds.high.fract() == 0.0);
        if !(bounds.low > 0.0 && bounds.low <= bounds.high && bounds.high.is_finite() && whole) {
            return {
                let (low, high) = (bounds.low.to_string(), bounds.high.to_string());
                Err(Error::Bounds { axis: bounds.axis.name(), low, high })
            };
        }
        let objectives: Arc<[Objective]> = Objective::all(slos)?.into();
        let mut search = Self { bounds, options, objectives, levels: Vec::new(), alpha: options.error };
        // Each level that may be visited has its part of the error, and so has each objective there.
        let doublings = (bounds.high / bounds.low).log2().ceil() + 1.0;
        let halvings = (2f64.ln() / options.resolution.max(1e-4).ln_1p()).log2().ceil().max(1.0);
        search.alpha = options.error / ((doublings + 2.0 * halvings) * search.objectives.len() as f64);
        Ok(search)
    }

    /// What collects the requests of the next stage.
    pub fn watch(&self) -> Watch {
        Watch::new(self.objectives.clone())
    }

    /// What was seen at a level.
    pub fn observe(&mut self, level: f64, watch: Watch) {
        let at = self.levels.partition_point(|known| known.load < level);
        if self.levels.get(at).is_none_or(|known| known.load > level) {
            self.levels.insert(at, Level::new(level));
        }
        let most = self.options.per_level as f64;
        self.levels[at].add(self.bounds.axis, watch, self.alpha, most);
    }

    /// Whether a level would miss an objective for sure if its stage ended now.
    pub fn misses_already(&self, level: f64, watch: &Watch) -> bool {
        let known = self.levels.iter().find(|known| known.load.to_bits() == level.to_bits());
        let mut known = known.cloned().unwrap_or_else(|| Level::new(level));
        known.add(self.bounds.axis, watch.clone(), self.alpha, self.options.per_level as f64);
        known.says == Says::Misses
    }

    /// The last look at a level in words, for whoever waits.
    pub fn learnt(&self, level: f64) -> Option<LevelReport> {
        let known = self.levels.iter().find(|known| known.load.to_bits() == level.to_bits())?;
        Some(self.report(known))
    }

    /// What to do next.
    pub fn next(&self) -> Action {
        let step = self.step();
        let (level, wanted) = match step {
            Step::End(outcome) => return Action::Done(self.answer(outcome, None)),
            Step::At(level) => (level, QUICK.max(self.generation(level))),
            Step::More(at) => (self.levels[at].load, self.more(&self.levels[at])),
            Step::Confirm(at) => (self.levels[at].load, AGAIN),
        };
        let requests = wanted + self.unsteady(level);
        if let Some(most) = self.options.in_all
            && self.requests() + requests > most
        {
            let why = format!("the next stage of {requests} requests would be more than {most} in all");
            return Action::Done(self.stopped(&why));
        }
        Action::Measure { level, requests }
    }

    /// The answer as far as it is known, when something else ends the search.
    pub fn stopped(&self, why: &str) -> Answer {
        let outcome = match self.step() {
            Step::End(outcome) => outcome,
            _ if self.levels.iter().any(|level| level.says == Says::Meets) => Outcome::Found,
            _ if self.levels.first().is_some_and(|l| l.says == Says::Misses && l.load <= self.bounds.low) => {
                Outcome::BelowSmallest
            }
            _ => Outcome::Unclear,
        };
        self.answer(outcome, Some(why.to_owned()))
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.levels.iter().map(|level| level.requests).sum()
    }

    fn step(&self) -> Step {
        let Some(top) = self.levels.len().checked_sub(1) else { return Step::At(self.bounds.low) };
        let missed = self.levels.iter().position(|level| level.says == Says::Misses);
        match missed {
            None => self.upwards(top),
            Some(0) if self.levels[0].load <= self.bounds.low => {
                self.confirmed(0).unwrap_or(Step::End(Outcome::BelowSmallest))
            }
            Some(0) => Step::At(self.bounds.low),
            Some(missed) => self.between(missed),
        }
    }

    /// Nothing is missed yet.
    fn upwards(&self, top: usize) -> Step {
        let level = &self.levels[top];
        if !level.leans() && !self.is_spent(level) {
            return Step::More(top);
        }
        if level.load < self.bounds.high {
            return Step::At((level.load * 2.0).min(self.bounds.high));
        }
        match level.says {
            Says::Meets => self.confirmed(top).unwrap_or(Step::End(Outcome::NotReached)),
            _ if !self.is_spent(level) => Step::More(top),
            _ => self.below(top),
        }
    }

    /// The limit lies below the level `missed`, which is not the smallest.
    fn between(&self, missed: usize) -> Step {
        let top = missed - 1;
        let (low, high) = (&self.levels[top], &self.levels[missed]);
        if !low.leans() && !self.is_spent(low) {
            return Step::More(top);
        }
        if let Some(middle) = self.middle(low.load, high.load) {
            return Step::At(middle);
        }
        match low.says {
            Says::Meets => {
                self.confirmed(top).or_else(|| self.confirmed(missed)).unwrap_or(Step::End(Outcome::Found))
            }
            _ if !self.is_spent(low) => Step::More(top),
            _ => self.below(top),
        }
    }

    /// The level `murky` stays unclear however long it is looked at: where is it clear below it?
    fn below(&self, murky: usize) -> Step {
        let is_murky = |level: &Level| level.says == Says::Unclear && self.is_spent(level);
        let clear = self.levels[..murky].iter().rposition(|level| level.says == Says::Meets);
        let from = clear.map_or(0, |at| at + 1);
        let first = (from..=murky).find(|at| is_murky(&self.levels[*at])).unwrap_or(murky);
        if first == 0 {
            let is_lowest = self.levels[0].load <= self.bounds.low;
            return if is_lowest { Step::End(Outcome::Unclear) } else { Step::At(self.bounds.low) };
        }
        let under = &self.levels[first - 1];
        if let Some(middle) = self.middle(under.load, self.levels[first].load) {
            return Step::At(middle);
        }
        let missed = self.levels.iter().position(|level| level.says == Says::Misses);
        match under.says {
            Says::Meets => self
                .confirmed(first - 1)
                .or_else(|| missed.and_then(|at| self.confirmed(at)))
                .unwrap_or(Step::End(Outcome::Found)),
            _ => Step::More(first - 1),
        }
    }

    /// A second look at a level that had only one.
    fn confirmed(&self, at: usize) -> Option<Step> {
        (self.levels[at].stages < 2).then_some(Step::Confirm(at))
    }

    /// Whether a level had all the requests that it may have.
    fn is_spent(&self, level: &Level) -> bool {
        level.steady >= self.options.per_level
    }

    /// A level between two that are not close enough to be an answer.
    fn middle(&self, low: f64, high: f64) -> Option<f64> {
        let step = low * self.options.resolution;
        let middle = (low * high).sqrt();
        match self.bounds.axis {
            Axis::Concurrency if high - low <= step.max(1.0) => None,
            Axis::Concurrency => Some(middle.round().clamp(low + 1.0, high - 1.0)),
            // A little more, for the rounding of levels.
            Axis::Rate if high - low <= step * 1.01 => None,
            Axis::Rate => Some(rounded(middle)).filter(|middle| *middle > low && *middle < high),
        }
    }

    /// Requests in steady state that may make a level clear: as many as it would take if they went on as they did, and
    /// never more than three times what there is; all that are left if nothing but their number is missing.
    fn more(&self, level: &Level) -> u64 {
        let left = self.options.per_level.saturating_sub(level.steady).max(1);
        let open = level.verdicts.iter().filter(|verdict| verdict.says == Says::Unclear);
        let wanted = open.map(|verdict| verdict.enough.map_or(2 * verdict.n, |n| n.ceil() as u64)).max();
        let Some(wanted) = wanted else { return left };
        wanted.min(3 * level.steady).saturating_sub(level.steady).max(QUICK).min(left)
    }

    /// Requests that are in flight together, and so may be of one fate.
    fn generation(&self, level: f64) -> u64 {
        if self.bounds.axis == Axis::Concurrency { level as u64 } else { 0 }
    }

    /// Requests of a stage that are not of its steady part.
    fn unsteady(&self, level: f64) -> u64 {
        let twice = self.objectives.iter().any(Objective::looks_at_decoding);
        let once = match self.bounds.axis {
            Axis::Concurrency => level as u64,
            // By what was in flight per request a second at the levels seen so far.
            Axis::Rate => (level * self.levels.last().map_or(2.0, Level::mean_total_s)).ceil() as u64,
        };
        if twice { 2 * once } else { once }
    }

    fn answer(&self, outcome: Outcome, stopped: Option<String>) -> Answer {
        let missed = self.levels.iter().find(|level| level.says == Says::Misses).map(|level| level.load);
        let below = |level: &&Level| missed.is_none_or(|missed| level.load < missed);
        let met =
            self.levels.iter().rev().find(|l| l.says == Says::Meets && below(l)).map(|level| level.load);
        Answer {
            schema: super::SCHEMA.to_owned(),
            outcome,
            axis: self.bounds.axis,
            bounds: [self.bounds.low, self.bounds.high],
            met,
            missed,
            stopped,
            requests: self.requests(),
            error: self.options.error,
            levels: self.levels.iter().map(|level| self.report(level)).collect(),
        }
    }

    fn report(&self, level: &Level) -> LevelReport {
        LevelReport::of(level, &self.objectives)
    }
}

/// Three figures are enough for a rate.
fn rounded(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).round() * unit
}
