//! The shapes of load: users that wait for their answers, and arrivals, made up or recorded, that do not.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use ttft_kernel::mono_now;
use ttft_model::{Load, Nanos};

use crate::shelf::Shelf;
use crate::stage_job::StageJob;
use crate::think::Pauses;
use crate::worker::{Prepared, Worker};
use crate::{Arrivals, Rate};

/// Most requests of a worker that are made before they are due, how long before at most, and when there is no time
/// left to make another one first.
const AHEAD: usize = 32;
const HORIZON: Nanos = Nanos::from_millis(100);
const MARGIN: Nanos = Nanos::from_millis(1);

/// Runs this worker's part of a stage that starts at `start`, until its last request has ended. `shelf` holds the
/// requests that its users take.
pub(crate) async fn run_load(worker: &Rc<Worker>, job: &Arc<StageJob>, shelf: Shelf, start: Nanos) {
    job.starts(start);
    let deadline = job.deadline();
    match job.order.load {
        Load::Closed { concurrency, ramp_up, think_time } => {
            let shelf = Rc::new(shelf);
            for number in worker.users(concurrency) {
                let wait = Nanos(ramp_up.0.0 / i64::from(concurrency.max(1)) * i64::from(number));
                let pauses = Pauses::new(think_time, job.order.seed, number);
                let user = User { shelf: shelf.clone(), begin: start + wait, deadline, pauses };
                worker.spawn(user.run(worker.clone(), job.clone()));
            }
            worker.spawn(shelf.fill(worker.clone(), job.clone()));
        }
        Load::Open { arrival, .. } => {
            let rate = job.order.rate.clone().unwrap_or(Rate::constant(0.0));
            let offsets = Box::new(Arrivals::new(rate, arrival, job.order.seed));
            worker.spawn(OpenLoop { start, deadline, offsets }.run(worker.clone(), job.clone()));
        }
        Load::Trace { .. } => {
            let recorded = job.clone();
            let offsets = Box::new((0..).map_while(move |i: usize| recorded.due.get(i).copied()));
            worker.spawn(OpenLoop { start, deadline, offsets }.run(worker.clone(), job.clone()));
        }
    }
    finish(worker, job, deadline).await;
}

/// Waits for the end of all requests; gives them up when the drain is over or the run is told to stop at once.
async fn finish(worker: &Worker, job: &StageJob, deadline: Option<Nanos>) {
    let give_up = async {
        let stopped = async {
            job.ending().await;
            worker.alarm.until(mono_now() + job.order.drain).await;
        };
        tokio::select! {
            () = stopped => {}
            () = passed(worker, deadline.map(|deadline| deadline + job.order.drain)) => {}
            () = job.now() => {}
        }
    };
    tokio::select! {
        () = worker.all_done() => return,
        () = give_up => {}
    }
    while worker.active() > 0 {
        worker.cancel.notify_waiters();
        // A request that was between two waits when it was told is told again.
        let again = worker.alarm.until(mono_now() + Nanos::from_millis(5));
        tokio::select! { () = worker.all_done() => {} () = again => {} }
    }
}

/// Completes at that instant, if there is one.
async fn passed(worker: &Worker, at: Option<Nanos>) {
    match at {
        Some(at) => worker.alarm.until(at).await,
        None => std::future::pending().await,
    }
}

/// One user: sends its next request when the last answer has ended, and it has thought.
struct User {
    shelf: Rc<Shelf>,
    begin: Nanos,
    deadline: Option<Nanos>,
    pauses: Pauses,
}

impl User {
    async fn run(mut self, worker: Rc<Worker>, job: Arc<StageJob>) {
        let pools = worker.pools_for_user();
        let mut scheduled = self.begin;
        let mut failures = 0u32;
        self.wait(&worker, &job, scheduled).await;
        loop {
            worker.gate.pass().await;
            let now = mono_now();
            let over = job.is_ending() || self.deadline.is_some_and(|deadline| now >= deadline);
            let Some(prepared) = (!over).then(|| self.shelf.take(&worker, &job, scheduled)).flatten() else {
                job.ran_dry(now);
                break;
            };
            let Some(ended) = worker.send(&job, &pools, prepared).await else {
                job.ran_dry(now);
                break;
            };
            scheduled = ended.at + self.pauses.next().unwrap_or_default();
            failures = if ended.connected { 0 } else { failures + 1 };
            if failures > 0 {
                scheduled = scheduled + pause_after(failures);
            }
            if scheduled > ended.at {
                self.wait(&worker, &job, scheduled).await;
            }
        }
        self.shelf.leave();
    }

    /// Waits for that instant, or the end of the stage.
    async fn wait(&self, worker: &Worker, job: &StageJob, at: Nanos) {
        tokio::select! {
            biased;
            () = worker.alarm.until(self.deadline.map_or(at, |deadline| at.min(deadline))) => {}
            () = job.ending() => {}
        }
    }
}

/// How long a user waits before it tries again to reach a server that it could not connect to: 1 ms, doubled each
/// time, at most 50 ms. Without it a dead server would be hammered, and the record flooded.
fn pause_after(failures: u32) -> Nanos {
    Nanos::from_millis((1i64 << failures.clamp(1, 7) >> 1).min(50))
}

/// Arrivals at given instants.
struct OpenLoop {
    start: Nanos,
    deadline: Option<Nanos>,
    /// When each is due, after the start.
    offsets: Box<dyn Iterator<Item = Nanos>>,
}

impl OpenLoop {
    async fn run(self, worker: Rc<Worker>, job: Arc<StageJob>) {
        let pools = Rc::new(worker.pools_for_user());
        let mut over = std::pin::pin!(passed(&worker, self.deadline));
        // Every worker walks the same sequence and sends its share of it.
        let (count, index) = (u64::from(worker.count), u64::from(worker.index));
        let mut arrivals = (0..job.requests)
            .zip(self.offsets)
            .map(|(number, offset)| (number, self.start + offset))
            .take_while(|(_, due)| self.deadline.is_none_or(|deadline| *due < deadline))
            .filter(|(number, _)| number % count == index)
            .peekable();
        let mut ahead: VecDeque<Prepared> = VecDeque::new();
        loop {
            // What is due soon is made before it is due: a long prompt delays no start.
            while ahead.len() < AHEAD
                && let Some((number, due)) = arrivals.peek().copied()
            {
                let now = mono_now();
                if due > now + HORIZON {
                    if !ahead.is_empty() {
                        break;
                    }
                    tokio::select! {
                        biased;
                        () = worker.alarm.until(due - HORIZON) => {}
                        () = job.ending() => break,
                    }
                }
                if ahead.front().is_some_and(|first| first.due() < now + MARGIN) {
                    break;
                }
                arrivals.next();
                ahead.push_back(worker.make(&job, number, due));
            }
            let Some(prepared) = ahead.pop_front() else { break };
            tokio::select! {
                biased;
                () = worker.alarm.until(prepared.due()) => {}
                () = job.ending() => break,
            }
            let place = match &job.places {
                Some(places) => tokio::select! {
                    biased;
                    () = job.ending() => break,
                    // What found no place in time is not sent behind the stage's end.
                    () = over.as_mut() => {
                        job.gave_up((1 + ahead.len() + arrivals.count()) as u64);
                        break;
                    }
                    place = places.clone().acquire_owned() => place.ok(),
                },
                None => None,
            };
            let (one, job, pools) = (worker.clone(), job.clone(), pools.clone());
            worker.spawn(async move {
                one.gate.pass().await;
                if job.is_ending() {
                    return;
                }
                // Refused by the budget, it has ended the run.
                let _ = one.send(&job, &pools, prepared).await;
                drop(place);
            });
        }
        job.ran_dry(self.deadline.unwrap_or(Nanos(i64::MAX)).min(mono_now()));
    }
}
