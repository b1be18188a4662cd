//! The jobs an engine has, how far each is, and what that means for the metrics.

use std::sync::Arc;

use ttft_model::Nanos;

use super::{Ask, Finish, JobId, Token};
use crate::metrics::{Life, Metrics};

/// One choice of a job under way.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) prompt: u32,
    pub(super) hashes: Arc<[u64]>,
    pub(super) target: u32,
    pub(super) finish: Finish,
    pub(super) generated: u32,
    /// Tokens whose keys and values are in the cache.
    pub(super) computed: u32,
    /// Blocks held.
    pub(super) blocks: Vec<u32>,
    pub(super) cached: u32,
    pub(super) preemptions: u32,
    pub(super) scheduled: Option<Nanos>,
    pub(super) first: Option<Nanos>,
    pub(super) last: Option<Nanos>,
}

impl Sequence {
    /// Tokens that must be in the cache before the next one can be generated.
    pub(super) fn total(&self) -> u32 {
        self.prompt + self.generated
    }

    pub(super) fn is_done(&self) -> bool {
        self.generated >= self.target
    }

    fn life(&self, arrival: Nanos) -> Life {
        let scheduled = self.scheduled.unwrap_or(arrival);
        let first = self.first.unwrap_or(scheduled);
        Life {
            arrival,
            scheduled,
            first,
            last: self.last.unwrap_or(first),
            prompt: self.prompt,
            generated: self.generated,
            target: self.target,
            preemptions: self.preemptions,
            finish: self.finish,
        }
    }
}

/// What the engine knows of one job's times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timings {
    /// First time that any of its tokens were computed.
    pub(crate) scheduled: Option<Nanos>,
    /// First token of any choice.
    pub(crate) first: Option<Nanos>,
    /// Last token so far of any choice.
    pub(crate) last: Option<Nanos>,
    /// Prompt tokens found in the prefix cache.
    pub(crate) cached: u32,
}

#[derive(Debug, Default)]
struct Job {
    serial: u32,
    open: bool,
    left: u32,
    arrival: Nanos,
    sequences: Vec<Sequence>,
}

/// All jobs, by slot.
#[derive(Default)]
pub(super) struct Ledger {
    jobs: Vec<Job>,
    open_sequences: usize,
    pub(super) metrics: Metrics,
}

impl Ledger {
    pub(super) fn open(&mut self, id: JobId, arrival: Nanos, asks: impl IntoIterator<Item = Ask>) {
        let slot = id.slot as usize;
        if self.jobs.len() <= slot {
            self.jobs.resize_with(slot + 1, Job::default);
        }
        let job = &mut self.jobs[slot];
        debug_assert!(!job.open, "slot {slot} is taken");
        (job.serial, job.open, job.arrival) = (id.serial, true, arrival);
        job.sequences.clear();
        job.sequences.extend(asks.into_iter().map(|ask| Sequence {
            prompt: ask.prompt,
            hashes: ask.blocks,
            target: ask.output.max(1),
            finish: ask.finish,
            generated: 0,
            computed: 0,
            blocks: Vec::new(),
            cached: 0,
            preemptions: 0,
            scheduled: None,
            first: None,
            last: None,
        }));
        job.left = job.sequences.len() as u32;
        self.open_sequences += job.sequences.len();
    }

    pub(super) fn abort(&mut self, id: JobId) {
        if let Some(job) = self.job_mut(id) {
            job.open = false;
            let left = job.left;
            self.open_sequences -= left as usize;
            self.metrics.aborted += u64::from(left);
        }
    }

    /// The sequences of a job that is open.
    pub(super) fn sequences(&self, id: JobId) -> &[Sequence] {
        self.jobs
            .get(id.slot as usize)
            .filter(|job| job.open && job.serial == id.serial)
            .map_or(&[], |j| &j.sequences)
    }

    /// One sequence of a job that is open.
    pub(super) fn sequence_mut(&mut self, id: JobId, choice: u32) -> Option<&mut Sequence> {
        self.job_mut(id)?.sequences.get_mut(choice as usize)
    }

    pub(super) fn open_sequences(&self) -> usize {
        self.open_sequences
    }

    pub(super) fn timings(&self, id: JobId) -> Timings {
        let Some(job) = self.jobs.get(id.slot as usize).filter(|job| job.serial == id.serial) else {
            return Timings::default();
        };
        let all = || job.sequences.iter();
        Timings {
            scheduled: all().filter_map(|s| s.scheduled).min(),
            first: all().filter_map(|s| s.first).min(),
            last: all().filter_map(|s| s.last).max(),
            cached: all().map(|s| s.cached).next().unwrap_or(0),
        }
    }

    /// Counts one more token of a sequence; `true` when it was the last of the sequence. A job that is gone
    /// gets none.
    pub(super) fn token(&mut self, id: JobId, choice: u32, at: Nanos, tokens: &mut Vec<Token>) -> bool {
        let Some(job) = self.jobs.get_mut(id.slot as usize).filter(|j| j.open && j.serial == id.serial)
        else {
            return true;
        };
        let arrival = job.arrival;
        let Some(sequence) = job.sequences.get_mut(choice as usize) else { return true };
        sequence.generated += 1;
        self.metrics.generation_tokens += 1;
        match sequence.last {
            None => {
                sequence.first = Some(at);
                self.metrics.time_to_first_token.observe((at - arrival).as_secs_f64());
            }
            Some(last) => self.metrics.inter_token_latency.observe((at - last).as_secs_f64()),
        }
        sequence.last = Some(at);
        let done = sequence.is_done();
        let finish = done.then_some(sequence.finish);
        tokens.push(Token { job: id, choice, number: sequence.generated, finish, at });
        if done {
            self.metrics.finished(&sequence.life(arrival));
            self.open_sequences -= 1;
            job.left -= 1;
            job.open = job.left > 0;
        }
        done
    }

    fn job_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(id.slot as usize).filter(|job| job.open && job.serial == id.serial)
    }
}
