//! Waking on time: tokio's timer has steps of a millisecond, this one is late by some tens of microseconds.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};

use ttft_kernel::{AsyncFd, Interest, Timer, mono_now, watch};
use ttft_model::Nanos;

/// All alarms of a worker, on one kernel timer.
pub(crate) struct Alarm {
    timer: AsyncFd<Timer>,
    armed: Cell<Option<Nanos>>,
    waiting: RefCell<BinaryHeap<Reverse<Waiting>>>,
}

struct Waiting {
    at: Nanos,
    waker: Waker,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Alarm {
    /// A timer in the current event loop, with the task that serves it.
    pub(crate) fn start() -> io::Result<Rc<Self>> {
        let alarm = Rc::new(Self {
            timer: watch(Timer::new()?, Interest::READABLE)?,
            armed: Cell::new(None),
            waiting: RefCell::new(BinaryHeap::new()),
        });
        tokio::task::spawn_local(alarm.clone().serve());
        Ok(alarm)
    }

    /// Completes at that instant, never before.
    pub(crate) fn until(&self, at: Nanos) -> impl Future<Output = ()> + '_ {
        let mut registered = false;
        poll_fn(move |cx| {
            if mono_now() >= at {
                return Poll::Ready(());
            }
            if !registered {
                registered = true;
                self.waiting.borrow_mut().push(Reverse(Waiting { at, waker: cx.waker().clone() }));
                self.arm(at);
            }
            Poll::Pending
        })
    }

    fn arm(&self, at: Nanos) {
        if self.armed.get().is_none_or(|armed| at < armed) {
            self.armed.set(Some(at));
            // Arming an open timer with a valid instant cannot fail.
            let _ = self.timer.get_ref().arm_at(at);
        }
    }

    async fn serve(self: Rc<Self>) {
        while let Ok(mut ready) = self.timer.readable().await {
            self.timer.get_ref().drain();
            ready.clear_ready();
            self.armed.set(None);
            let now = mono_now();
            let mut waiting = self.waiting.borrow_mut();
            while let Some(Reverse(first)) = waiting.peek() {
                if first.at > now {
                    self.arm(first.at);
                    break;
                }
                if let Some(Reverse(due)) = waiting.pop() {
                    due.waker.wake();
                }
            }
        }
    }
}
