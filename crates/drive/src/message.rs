//! What a run tells while it runs, and how it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;
use ttft_model::{Nanos, Record, Stage, StageWindow};

use crate::{Single, Uncounted};

/// News of a run, in order.
#[derive(Debug)]
pub enum Message {
    /// Requests that have ended.
    Records(Vec<Record>),
    /// A request that has ended, the tokens of whose answer are still to be counted.
    Uncounted(Box<Uncounted>),
    /// An answer as it came, of those that the plan wants kept.
    Stream(Box<Single>),
    /// The warm-up began.
    WarmUp {
        /// Requests it will send.
        requests: u64,
    },
    /// A stage began.
    StageBegan {
        /// Its number in the run: its place in the plan's stages, or after them.
        stage: u32,
        /// What is played.
        what: Box<Stage>,
        /// When.
        start: Nanos,
        /// When its load will be what was asked.
        reached: Nanos,
    },
    /// Nothing is sent until then, so that the last stage does not disturb the next.
    Settling {
        /// The next stage.
        next: u32,
        /// When it may begin.
        until: Nanos,
    },
    /// A request was not sent since the run might have used up more than it may, for this reason; the run ends in order.
    BudgetSpent(String),
    /// A stage is over.
    StageEnded(StageWindow),
    /// All is over; nothing follows.
    Ended {
        /// The run was told to stop before its end.
        interrupted: bool,
        /// Steps of the wall clock that a worker saw.
        wall_steps: u32,
        /// Whether all workers got real-time scheduling.
        realtime: bool,
    },
    /// A worker could not go on, or a stage asks for what the run has not; the run ends.
    Failed(String),
}

/// Counters for whoever watches. Written by all workers, one relaxed addition a request.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests begun in the current stage.
    pub started: AtomicU64,
    /// Requests ended well.
    pub ok: AtomicU64,
    /// Requests ended otherwise.
    pub failed: AtomicU64,
    /// Tokens generated, as far as servers told.
    pub tokens: AtomicU64,
    /// Bytes of answers that wait to be counted.
    pub(crate) uncounted: AtomicU64,
}

impl Progress {
    /// Begins to count anew.
    pub(crate) fn reset(&self) {
        for counter in [&self.started, &self.ok, &self.failed, &self.tokens] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// How a stage ends that ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Requests under way may end within the plan's drain time.
    Drain,
    /// Requests under way are given up; their records are kept, as cancelled.
    Cancel,
}

/// Stops a run. Cheap to copy; may be used from any thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    ending: AtomicBool,
    now: AtomicBool,
    changed: Notify,
}

impl Stop {
    /// Starts no more requests; those under way may end within the plan's drain time.
    pub fn in_order(&self) {
        self.0.ending.store(true, Ordering::Release);
        self.tell();
    }

    /// Gives up the requests under way as well. Their records are kept.
    pub fn at_once(&self) {
        self.0.now.store(true, Ordering::Release);
        self.in_order();
    }

    /// Whether no more requests may start.
    pub fn is_ending(&self) -> bool {
        self.0.ending.load(Ordering::Acquire)
    }

    pub(crate) fn is_now(&self) -> bool {
        self.0.now.load(Ordering::Acquire)
    }

    /// Has whoever waits look again.
    pub(crate) fn tell(&self) {
        self.0.changed.notify_waiters();
    }

    pub(crate) async fn wait(&self, holds: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }
}
