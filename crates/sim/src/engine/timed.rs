//! Tokens at fixed times after the arrival, whatever the load.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ttft_model::Nanos;

use super::ledger::Ledger;
use super::{JobId, Token};
use crate::profile::Timed;
use crate::random::{Random, mix};

/// Tokens handed out in one go, so that with no waiting at all sockets are still read in between.
const ROUND: usize = 256;

/// A token that is to come. The order is that of time, then of making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    order: u64,
    slot: u32,
    serial: u32,
    choice: u32,
    gap: Nanos,
}

/// The clockwork of an engine with fixed times.
pub(super) struct Clockwork {
    times: Timed,
    seed: u64,
    order: u64,
    later: BinaryHeap<Reverse<Due>>,
    /// Tokens without waiting, in turn.
    at_once: VecDeque<Due>,
}

impl Clockwork {
    pub(super) fn new(times: Timed, seed: u64) -> Self {
        Self { times, seed, order: 0, later: BinaryHeap::new(), at_once: VecDeque::new() }
    }

    pub(super) fn enqueue(&mut self, ledger: &mut Ledger, job: JobId, arrival: Nanos) {
        for choice in 0..ledger.sequences(job).len() as u32 {
            let mut random = Random::new(self.seed ^ mix(u64::from(job.serial) << 8 ^ u64::from(choice)));
            let mut time = |ms: f64| Nanos((ms * random.factor(self.times.sigma) * 1e6).round() as i64);
            let (first, gap) = (time(self.times.ttft_ms), time(self.times.itl_ms));
            if let Some(sequence) = ledger.sequence_mut(job, choice) {
                sequence.scheduled = Some(arrival);
                let prompt = u64::from(sequence.prompt);
                ledger.metrics.prompt_tokens += prompt;
            }
            let due = Due { at: arrival + first, order: 0, slot: job.slot, serial: job.serial, choice, gap };
            self.put(due, first == Nanos::ZERO);
        }
    }

    pub(super) fn step(&mut self, ledger: &mut Ledger, now: Nanos, tokens: &mut Vec<Token>) -> Option<Nanos> {
        for _ in 0..ROUND {
            let (mut due, at) = match self.later.peek() {
                Some(Reverse(due)) if due.at <= now => {
                    let Some(Reverse(due)) = self.later.pop() else { break };
                    (due, due.at)
                }
                _ => match self.at_once.pop_front() {
                    Some(due) => (due, now),
                    None => break,
                },
            };
            let job = JobId { slot: due.slot, serial: due.serial };
            if !ledger.token(job, due.choice, at, tokens) {
                due.at = at + due.gap;
                self.put(due, due.gap == Nanos::ZERO);
            }
        }
        if !self.at_once.is_empty() {
            return Some(now);
        }
        self.later.peek().map(|Reverse(due)| due.at)
    }

    fn put(&mut self, mut due: Due, at_once: bool) {
        if at_once {
            self.at_once.push_back(due);
        } else {
            self.order += 1;
            due.order = self.order;
            self.later.push(Reverse(due));
        }
    }
}
