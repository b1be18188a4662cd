//! Continuous batching as in vLLM V1: one queue, chunked prefill mixed with decodes, preemption by recomputing.

use std::collections::VecDeque;

use ttft_model::Nanos;

use super::blocks::Blocks;
use super::ledger::{Ledger, Sequence};
use super::{JobId, Token};
use crate::profile::Batching;
use crate::random::Random;

/// One sequence of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    job: JobId,
    choice: u32,
}

/// The step under way.
#[derive(Debug)]
struct Step {
    end: Nanos,
    /// Which sequences get how many tokens computed.
    work: Vec<(Name, u32)>,
}

/// What a step's duration follows from.
#[derive(Debug, Default)]
struct Effort {
    prefill: u32,
    /// Σ prompt tokens × tokens before them.
    attention: f64,
    decodes: u32,
    /// Σ tokens in the context of decoding sequences.
    context: u64,
    /// Prompts begun.
    begun: u32,
}

/// The scheduler of an engine with continuous batching.
pub(super) struct Batcher {
    costs: Batching,
    random: Random,
    blocks: Blocks,
    waiting: VecDeque<Name>,
    running: Vec<Name>,
    step: Option<Step>,
    /// The next step may not be scheduled before this.
    ready: Nanos,
    /// Admissions under pressure, and until when they stand still.
    pressed: u32,
    admit_from: Nanos,
    /// Prompts that still find the engine cold.
    cold: u32,
    spare: Vec<(Name, u32)>,
}

impl Batcher {
    pub(super) fn new(costs: Batching, seed: u64) -> Self {
        Self {
            costs,
            random: Random::new(seed),
            blocks: Blocks::new(costs.num_blocks),
            waiting: VecDeque::new(),
            running: Vec::new(),
            step: None,
            ready: Nanos(i64::MIN),
            pressed: 0,
            admit_from: Nanos(i64::MIN),
            cold: costs.cold.map_or(0, |cold| cold.prompts),
            spare: Vec::new(),
        }
    }

    pub(super) fn hashed_block_size(&self) -> Option<u32> {
        self.costs.prefix_cache.then_some(self.costs.block_size)
    }

    /// Running sequences, waiting ones, and the used share of the KV cache.
    pub(super) fn gauges(&self) -> (usize, usize, f64) {
        (self.running.len(), self.waiting.len(), self.blocks.usage())
    }

    pub(super) fn enqueue(&mut self, job: JobId, choices: usize) {
        self.waiting.extend((0..choices as u32).map(|choice| Name { job, choice }));
    }

    /// Drops a job's sequences. The step under way keeps its duration, as on a real device.
    pub(super) fn forget(&mut self, ledger: &mut Ledger, job: JobId) {
        for name in self.running.iter().filter(|name| name.job == job) {
            if let Some(sequence) = ledger.sequence_mut(name.job, name.choice) {
                self.blocks.release(&mut sequence.blocks);
            }
        }
        self.running.retain(|name| name.job != job);
        self.waiting.retain(|name| name.job != job);
    }

    /// Ends and begins steps up to `now`.
    pub(super) fn step(&mut self, ledger: &mut Ledger, now: Nanos, tokens: &mut Vec<Token>) -> Option<Nanos> {
        loop {
            if let Some(end) = self.step.as_ref().map(|step| step.end) {
                if end > now {
                    return Some(end);
                }
                self.finish_step(ledger, tokens);
                // The engine's own clock goes on from the end of the step; a caller that is very late has
                // stopped the engine.
                let on_time = now - end < Nanos::from_millis(5);
                self.ready = if on_time { end } else { now } + millis(self.costs.gap_ms);
            }
            if self.running.is_empty() && self.waiting.is_empty() {
                return None;
            }
            if self.ready > now {
                return Some(self.ready);
            }
            let on_time = now - Nanos::from_millis(5) < self.ready;
            let start = if on_time && !self.running.is_empty() { self.ready } else { now };
            self.begin_step(ledger, start);
            if self.step.is_none() {
                // Nothing runs, and what waits may not begin yet.
                return Some(self.admit_from).filter(|at| *at > now);
            }
        }
    }

    fn finish_step(&mut self, ledger: &mut Ledger, tokens: &mut Vec<Token>) {
        let Some(Step { end, mut work }) = self.step.take() else { return };
        for (name, computed) in work.drain(..) {
            let Some(sequence) = ledger.sequence_mut(name.job, name.choice) else { continue };
            sequence.computed += computed;
            if sequence.computed < sequence.total() {
                continue;
            }
            if sequence.generated + 1 >= sequence.target {
                self.blocks.release(&mut sequence.blocks);
                self.running.retain(|other| *other != name);
            }
            ledger.token(name.job, name.choice, end, tokens);
        }
        self.spare = work;
    }

    fn begin_step(&mut self, ledger: &mut Ledger, start: Nanos) {
        let mut work = std::mem::take(&mut self.spare);
        let mut budget = self.costs.max_num_batched_tokens;
        let mut effort = Effort::default();
        let mut preempted = false;

        let mut next = 0;
        while next < self.running.len() && budget > 0 {
            let name = self.running[next];
            let Some(sequence) = ledger.sequence_mut(name.job, name.choice) else {
                self.running.remove(next);
                continue;
            };
            let count = (sequence.total() - sequence.computed).min(budget);
            let more = missing_blocks(sequence, count, self.costs.block_size);
            if more > 0 && !self.blocks.grow(&mut sequence.blocks, more, &sequence.hashes) {
                // The youngest gives way; when that is this one itself, nobody after it is left.
                preempted = true;
                self.preempt_last(ledger);
                continue;
            }
            effort.add(sequence, count);
            budget -= count;
            work.push((name, count));
            next += 1;
        }

        while !preempted && budget > 0 && self.running.len() < self.costs.max_num_seqs {
            let Some(name) = self.waiting.front().copied() else { break };
            let Some(sequence) = ledger.sequence_mut(name.job, name.choice) else {
                self.waiting.pop_front();
                continue;
            };
            if self.must_wait(start) {
                break;
            }
            let Some((count, hit)) = self.admit(sequence, budget) else { break };
            self.waiting.pop_front();
            self.running.push(name);
            sequence.computed = hit;
            let prompt = u64::from(sequence.prompt);
            if sequence.scheduled.is_none() {
                sequence.scheduled = Some(start);
                sequence.cached = hit;
            }
            effort.add(sequence, count);
            effort.begun += 1;
            budget -= count;
            work.push((name, count));
            let metrics = &mut ledger.metrics;
            metrics.prefix_queries += if self.costs.prefix_cache { prompt } else { 0 };
            metrics.prefix_hits += u64::from(hit);
            metrics.prompt_tokens_cached += u64::from(hit);
            metrics.prompt_tokens += prompt;
        }

        if work.is_empty() {
            self.spare = work;
            return;
        }
        ledger.metrics.iteration_tokens.observe(f64::from(effort.prefill + effort.decodes));
        let duration = self.duration(&effort) * self.random.factor(self.costs.sigma) + self.warming(&effort);
        // A step of no length would never let time go on.
        let duration = Nanos((duration * 1e6).round().max(1.0) as i64);
        self.step = Some(Step { end: start + duration, work });
    }

    /// Gives a waiting sequence its first blocks; how many tokens it may compute and how many were cached.
    fn admit(&mut self, sequence: &mut Sequence, budget: u32) -> Option<(u32, u32)> {
        let size = self.costs.block_size;
        // The last token is always computed, because the next one is sampled from it.
        let usable = (((sequence.total() - 1) / size) as usize).min(sequence.hashes.len());
        let known = self.blocks.known(&sequence.hashes[..usable]);
        let hit = known * size;
        let count = (sequence.total() - hit).min(budget);
        let more = (hit + count).div_ceil(size) - known;
        let held = self.blocks.admit(&sequence.hashes, known, more)?;
        sequence.blocks = held;
        Some((count, hit))
    }

    /// Whether memory is scarce just now, so that nothing is admitted.
    fn must_wait(&mut self, start: Nanos) -> bool {
        if start < self.admit_from {
            return true;
        }
        let Some(pressure) = self.costs.pressure.filter(|p| self.running.len() >= p.from_seqs) else {
            return false;
        };
        self.pressed += 1;
        if self.pressed.is_multiple_of(pressure.one_in) {
            self.admit_from = start + millis(pressure.wait_ms);
            return true;
        }
        false
    }

    fn preempt_last(&mut self, ledger: &mut Ledger) {
        let Some(name) = self.running.pop() else { return };
        if let Some(sequence) = ledger.sequence_mut(name.job, name.choice) {
            self.blocks.release(&mut sequence.blocks);
            sequence.computed = 0;
            sequence.preemptions += 1;
        }
        ledger.metrics.preemptions += 1;
        self.waiting.push_front(name);
    }

    /// Milliseconds that the step takes longer because the engine is still cold.
    fn warming(&mut self, effort: &Effort) -> f64 {
        let met = self.cold.min(effort.begun);
        self.cold -= met;
        self.costs.cold.map_or(0.0, |cold| f64::from(met) * cold.ms)
    }

    /// In milliseconds.
    fn duration(&self, effort: &Effort) -> f64 {
        let costs = &self.costs;
        costs.step_ms
            + costs.prefill_ms * f64::from(effort.prefill).powf(costs.prefill_exponent)
            + costs.attention_ns * effort.attention / 1e6
            + costs.decode_ms_per_seq * f64::from(effort.decodes)
            + costs.context_ns * effort.context as f64 / 1e6
    }
}

impl Effort {
    fn add(&mut self, sequence: &Sequence, count: u32) {
        if sequence.computed >= sequence.prompt && count == 1 {
            self.decodes += 1;
            self.context += u64::from(sequence.computed);
        } else {
            self.prefill += count;
            self.attention += f64::from(count) * (f64::from(sequence.computed) + f64::from(count) / 2.0);
        }
    }
}

fn missing_blocks(sequence: &Sequence, count: u32, block_size: u32) -> u32 {
    (sequence.computed + count).div_ceil(block_size).saturating_sub(sequence.blocks.len() as u32)
}

fn millis(ms: f64) -> Nanos {
    Nanos((ms * 1e6).round() as i64)
}
