//! Starts in small groups, with a look at the sockets in between.
//!
//! When thousands of requests are due at once, sending them all would leave the answers that come meanwhile unread;
//! and a stamp is right only until the next event of its stream arrives. A late start is merely late, and on record
//! as `send_lag`; a late read can cost a first token its accuracy. So reads go first.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Starts between two looks: some hundred microseconds of work.
const GROUP: u32 = 16;

/// Where requests wait for their turn to start, first come first served.
#[derive(Debug)]
pub(crate) struct Gate {
    left: Cell<u32>,
    /// Somebody is giving the event loop its turn.
    turning: Cell<bool>,
    waiting: RefCell<VecDeque<Waker>>,
    /// How many have ever been let out of the queue.
    served: Cell<u64>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            left: Cell::new(GROUP),
            turning: Cell::new(false),
            waiting: RefCell::default(),
            served: Cell::new(0),
        }
    }

    /// Completes when the caller may start.
    pub(crate) async fn pass(&self) {
        while self.left.get() == 0 {
            if self.turning.get() {
                self.queue().await;
            } else {
                self.turn().await;
            }
        }
        self.left.set(self.left.get() - 1);
    }

    async fn turn(&self) {
        self.turning.set(true);
        // Tasks that yield run again only after the sockets have been looked at, and what was read handled.
        tokio::task::yield_now().await;
        self.turning.set(false);
        self.left.set(GROUP);
        let mut waiting = self.waiting.borrow_mut();
        let next = waiting.len().min(GROUP as usize);
        // This task starts too, so the last of them finds nothing left and turns next: the queue never stalls.
        self.served.set(self.served.get() + next as u64);
        waiting.drain(..next).for_each(Waker::wake);
    }

    /// Waits for its turn, whoever else wakes the task meanwhile: one that left on its own would leave its place behind,
    /// and a turn given to an empty place is nobody's.
    async fn queue(&self) {
        let mut place = None;
        poll_fn(|cx| {
            let mut waiting = self.waiting.borrow_mut();
            let place = *place.get_or_insert_with(|| {
                waiting.push_back(cx.waker().clone());
                self.served.get() + waiting.len() as u64
            });
            if place <= self.served.get() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tokio::runtime::{Builder, LocalOptions};

    use super::*;

    #[test]
    fn all_pass_in_groups_however_many_come_at_once() {
        let runtime = Builder::new_current_thread().build_local(LocalOptions::default()).unwrap();
        let order = Rc::new(RefCell::new(Vec::new()));
        runtime.block_on(async {
            let gate = Rc::new(Gate::new());
            let tasks: Vec<_> = (0..1_000)
                .map(|i| {
                    let (gate, order) = (gate.clone(), order.clone());
                    tokio::task::spawn_local(async move {
                        gate.pass().await;
                        order.borrow_mut().push(i);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        let order = order.borrow();
        assert_eq!(order.len(), 1_000);
        assert_eq!(order[..16], (0..16).collect::<Vec<_>>()[..]);
    }

    #[test]
    fn none_is_forgotten_when_others_wake_its_task() {
        let runtime = Builder::new_current_thread().build_local(LocalOptions::default()).unwrap();
        let passed = Rc::new(Cell::new(0));
        runtime.block_on(async {
            let gate = Rc::new(Gate::new());
            for _ in 0..100 {
                let (gate, passed) = (gate.clone(), passed.clone());
                tokio::task::spawn_local(async move {
                    let nudges = async {
                        for _ in 0..3 {
                            tokio::task::yield_now().await;
                        }
                    };
                    tokio::join!(gate.pass(), nudges);
                    passed.set(passed.get() + 1);
                });
            }
            // Without a stall these are far more turns than are needed.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(passed.get(), 100);
    }
}
