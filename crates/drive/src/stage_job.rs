//! One stage as the workers see it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;
use ttft_model::{Load, Nanos};

use crate::Rate;
use crate::budget::Account;
use crate::message::{Rest, Stop};
use crate::mix::Mix;

/// What a stage is to do.
#[derive(Debug)]
pub(crate) struct Order {
    /// Its number in the run.
    pub index: u32,
    pub warmup: bool,
    pub load: Load,
    /// The rate of an open loop.
    pub rate: Option<Rate>,
    pub mix: Mix,
    /// Requests to send; all that fit into the time when unlimited.
    pub requests: Option<u64>,
    /// No request starts later than this after the stage's start.
    pub duration: Option<Nanos>,
    /// How long requests under way may go on after that.
    pub drain: Nanos,
    pub seed: u64,
    /// What all stages together may use up.
    pub account: Option<Arc<Account>>,
    /// The stop of the whole run.
    pub run: Stop,
}

/// A stage under way, shared by all workers. The counters are touched once or twice a request.
#[derive(Debug)]
pub(crate) struct StageJob {
    pub order: Order,
    /// Requests to send, at most.
    pub requests: u64,
    /// One for each request that an open loop may have in flight, over all workers.
    pub places: Option<Arc<Semaphore>>,
    /// When the requests of a trace are due, after the stage's start.
    pub due: Vec<Nanos>,
    deadline: OnceLock<Nanos>,
    halted: AtomicBool,
    cancelled: AtomicBool,
    ended_early: OnceLock<String>,
    next: AtomicU64,
    in_flight: AtomicU32,
    max_in_flight: AtomicU32,
    unsent: AtomicU64,
    dry: AtomicI64,
}

impl StageJob {
    pub(crate) fn new(order: Order) -> Self {
        let places = match order.load {
            Load::Open { max_in_flight: Some(limit), .. }
            | Load::Trace { max_in_flight: Some(limit), .. } => {
                Some(Arc::new(Semaphore::new(limit.max(1) as usize)))
            }
            _ => None,
        };
        let trace = order.mix.parts().first().and_then(|part| part.maker.trace());
        let due = match (&order.load, trace) {
            (Load::Trace { speed, smooth, .. }, Some(trace)) => trace.schedule(*speed, *smooth),
            _ => Vec::new(),
        };
        Self {
            requests: order.requests.unwrap_or(u64::MAX),
            order,
            places,
            due,
            deadline: OnceLock::new(),
            halted: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            ended_early: OnceLock::new(),
            next: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
            max_in_flight: AtomicU32::new(0),
            unsent: AtomicU64::new(0),
            dry: AtomicI64::new(i64::MAX),
        }
    }

    /// The stage starts then.
    pub(crate) fn starts(&self, at: Nanos) {
        if let Some(duration) = self.order.duration {
            // All workers say the same.
            let _ = self.deadline.set(at + duration);
        }
    }

    /// No request starts later than that, once the stage has started.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.deadline.get().copied()
    }

    /// Ends this stage alone before its end. The first reason is the one that counts.
    pub(crate) fn end(&self, rest: Rest, why: String) {
        // Another reason came first.
        let _ = self.ended_early.set(why);
        self.cancelled.fetch_or(rest == Rest::Cancel, Ordering::Release);
        self.halted.store(true, Ordering::Release);
        self.order.run.tell();
    }

    /// Why it ended before its end.
    pub(crate) fn ended_early(&self) -> Option<&str> {
        self.ended_early.get().map(String::as_str)
    }

    /// Whether no more requests may start: the stage was ended, or the run.
    pub(crate) fn is_ending(&self) -> bool {
        self.halted.load(Ordering::Acquire) || self.order.run.is_ending()
    }

    /// Completes when no more requests may start.
    pub(crate) async fn ending(&self) {
        self.order.run.wait(|_| self.is_ending()).await;
    }

    /// Completes when requests under way must be given up.
    pub(crate) async fn now(&self) {
        self.order.run.wait(|run| self.cancelled.load(Ordering::Acquire) || run.is_now()).await;
    }

    /// The next request's number, or `None` when all are given out.
    pub(crate) fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.requests).then_some(number)
    }

    /// A number to make a request for ahead of time; `None` when the last ones are near, which whoever is free first is
    /// to have.
    pub(crate) fn take_ahead(&self, near: u64) -> Option<u64> {
        let is_far = self.next.load(Ordering::Relaxed) < self.requests.saturating_sub(near);
        is_far.then(|| self.take()).flatten()
    }

    /// Somebody found no more work at that instant.
    pub(crate) fn ran_dry(&self, at: Nanos) {
        self.dry.fetch_min(at.0, Ordering::Relaxed);
    }

    /// The first instant at which somebody found no more work.
    pub(crate) fn dry(&self) -> Option<Nanos> {
        let at = self.dry.load(Ordering::Relaxed);
        (at != i64::MAX).then_some(Nanos(at))
    }

    pub(crate) fn entered(&self) {
        let now = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        if now > self.max_in_flight.load(Ordering::Relaxed) {
            self.max_in_flight.fetch_max(now, Ordering::Relaxed);
        }
    }

    pub(crate) fn left(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Arrivals that found no place in time.
    pub(crate) fn gave_up(&self, arrivals: u64) {
        self.unsent.fetch_add(arrivals, Ordering::Relaxed);
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    pub(crate) fn max_in_flight(&self) -> u32 {
        self.max_in_flight.load(Ordering::Relaxed)
    }
}
