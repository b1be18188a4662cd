//! Requests of a closed loop that are made while the answers before them still stream, so that no user waits for the
//! making of its next prompt. A worker keeps a few ready, and no more.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use ttft_model::Nanos;

use crate::stage_job::StageJob;
use crate::worker::{Prepared, Worker};

/// Most requests that a worker has ready.
const MOST: usize = 32;

/// A worker's requests of a stage that are ready.
pub(crate) struct Shelf {
    ready: RefCell<VecDeque<Prepared>>,
    room: usize,
    /// Requests left when it is filled no more: two rounds of all users. Whoever is free first is to have the last ones,
    /// whichever worker that is.
    near: u64,
    users: Cell<usize>,
    changed: Notify,
}

impl Shelf {
    /// For so many users of this worker, among all.
    pub(crate) fn new(users: usize, of_all: u32) -> Self {
        Self {
            ready: RefCell::default(),
            room: users.min(MOST),
            near: 2 * u64::from(of_all),
            users: Cell::new(users),
            changed: Notify::new(),
        }
    }

    /// Takes a request that is ready, or makes one; nothing when all have been given out.
    pub(crate) fn take(&self, worker: &Worker, job: &StageJob, scheduled: Nanos) -> Option<Prepared> {
        let ready = self.ready.borrow_mut().pop_front().map(|ready| ready.at(scheduled));
        self.changed.notify_one();
        ready.or_else(|| job.take().map(|number| worker.make(job, number, scheduled)))
    }

    /// A user wants no more.
    pub(crate) fn leave(&self) {
        self.users.set(self.users.get().saturating_sub(1));
        self.changed.notify_one();
    }

    /// Fills it once.
    pub(crate) fn stock(&self, worker: &Worker, job: &StageJob) {
        while !self.is_full() && self.add(worker, job) {}
    }

    fn is_full(&self) -> bool {
        self.ready.borrow().len() >= self.room
    }

    /// Makes one more; false when none is to be made ahead any more.
    fn add(&self, worker: &Worker, job: &StageJob) -> bool {
        let Some(number) = job.take_ahead(self.near) else { return false };
        self.ready.borrow_mut().push_back(worker.make(job, number, Nanos::ZERO));
        true
    }

    /// Keeps it full until the last requests are near, or nobody wants more.
    pub(crate) async fn fill(self: Rc<Self>, worker: Rc<Worker>, job: Arc<StageJob>) {
        while self.users.get() > 0 && !job.is_ending() {
            if self.is_full() {
                self.changed.notified().await;
                continue;
            }
            if !self.add(&worker, &job) {
                return;
            }
            // One at a time: answers are read, and requests sent, in between.
            tokio::task::yield_now().await;
        }
    }
}
