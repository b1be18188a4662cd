//! The engine itself, pure: no socket, no clock. Jobs go in, tokens come out of `step(now)`.

mod batching;
mod blocks;
mod ledger;
#[cfg(test)]
mod tests;
mod timed;

use std::sync::Arc;

use ttft_model::Nanos;

use crate::metrics::Metrics;
use crate::profile::{Pace, Profile};
use batching::Batcher;
use ledger::Ledger;
pub(crate) use ledger::Timings;
use timed::Clockwork;

/// A job's name: a slot that is used again, and a serial number that is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobId {
    pub(crate) slot: u32,
    pub(crate) serial: u32,
}

/// One sequence to generate: a choice of a request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// Tokens of the prompt.
    pub(crate) prompt: u32,
    /// Running hashes of the prompt's full blocks, for the prefix cache; may be empty.
    pub(crate) blocks: Arc<[u64]>,
    /// Tokens to generate, at least 1.
    pub(crate) output: u32,
    /// Why it will end.
    pub(crate) finish: Finish,
}

/// Why a sequence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
}

/// One generated token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) job: JobId,
    /// Which sequence of the job.
    pub(crate) choice: u32,
    /// Its number in the sequence, from 1.
    pub(crate) number: u32,
    /// Set with the last one.
    pub(crate) finish: Option<Finish>,
    /// When the engine had it.
    pub(crate) at: Nanos,
}

/// A simulated engine.
pub(crate) struct Engine {
    ledger: Ledger,
    pace: Model,
}

enum Model {
    Batching(Box<Batcher>),
    Timed(Clockwork),
}

impl Engine {
    pub(crate) fn new(profile: &Profile, seed: u64) -> Self {
        let pace = match profile.pace {
            Pace::Batching(costs) => Model::Batching(Box::new(Batcher::new(costs, seed))),
            Pace::Timed(times) => Model::Timed(Clockwork::new(times, seed)),
        };
        Self { ledger: Ledger::default(), pace }
    }

    /// Tokens of one hashed block of a prompt, if prompts are cached.
    pub(crate) fn block_size(&self) -> Option<u32> {
        match &self.pace {
            Model::Batching(batcher) => batcher.hashed_block_size(),
            Model::Timed(_) => None,
        }
    }

    /// Takes a job in. Its slot must be free.
    pub(crate) fn submit(&mut self, id: JobId, arrival: Nanos, asks: impl IntoIterator<Item = Ask>) {
        self.ledger.open(id, arrival, asks);
        match &mut self.pace {
            Model::Batching(batcher) => batcher.enqueue(id, self.ledger.sequences(id).len()),
            Model::Timed(clockwork) => clockwork.enqueue(&mut self.ledger, id, arrival),
        }
    }

    /// Forgets a job that nobody waits for any more.
    pub(crate) fn abort(&mut self, id: JobId) {
        if let Model::Batching(batcher) = &mut self.pace {
            batcher.forget(&mut self.ledger, id);
        }
        self.ledger.abort(id);
    }

    /// Does what is due by `now`; adds the tokens that came and says when to call again.
    pub(crate) fn step(&mut self, now: Nanos, tokens: &mut Vec<Token>) -> Option<Nanos> {
        match &mut self.pace {
            Model::Batching(batcher) => batcher.step(&mut self.ledger, now, tokens),
            Model::Timed(clockwork) => clockwork.step(&mut self.ledger, now, tokens),
        }
    }

    /// When a job of the slot was scheduled and so on; kept until the slot is used again.
    pub(crate) fn timings(&self, id: JobId) -> Timings {
        self.ledger.timings(id)
    }

    /// Counters for the metrics page, with the gauges brought up to date.
    pub(crate) fn metrics(&mut self) -> &Metrics {
        let (running, waiting, kv_usage) = match &self.pace {
            Model::Batching(batcher) => batcher.gauges(),
            Model::Timed(_) => (self.ledger.open_sequences(), 0, 0.0),
        };
        let metrics = &mut self.ledger.metrics;
        (metrics.running, metrics.waiting, metrics.kv_usage) = (running, waiting, kv_usage);
        metrics
    }
}
