//! How long each part of a request may take, and being told to give up.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::sync::futures::Notified;
use tokio::time::Sleep;
use ttft_kernel::mono_now;
use ttft_model::{ErrorClass, Nanos, Timeouts};

/// What came first.
pub(crate) enum Raced<T> {
    /// The awaited thing.
    Done(T),
    /// The deadline.
    TimedOut,
    /// The stop of the run.
    Cancelled,
}

/// A deadline that moves with the request's progress. Moving it costs nothing: the timer is set anew only when it
/// fires too early.
pub(crate) struct Deadline {
    timeouts: Timeouts,
    started: Nanos,
    at: Nanos,
    class: ErrorClass,
    /// The timer, and when it fires.
    timer: Option<(Nanos, Pin<Box<Sleep>>)>,
}

impl Deadline {
    /// The deadline of a request that has just started.
    pub(crate) fn new(started: Nanos, timeouts: Timeouts) -> Self {
        let mut deadline =
            Self { timeouts, started, at: Nanos::ZERO, class: ErrorClass::TimeoutTotal, timer: None };
        deadline.earliest(started + timeouts.first_token.0, ErrorClass::TimeoutFirstToken);
        deadline
    }

    /// Bytes came after the first token: the stream may stand still from now on.
    pub(crate) fn progressed(&mut self, now: Nanos) {
        self.earliest(now + self.timeouts.idle.0, ErrorClass::TimeoutIdle);
    }

    /// Which limit will have passed.
    pub(crate) fn class(&self) -> ErrorClass {
        self.class
    }

    /// The limit, for messages.
    pub(crate) fn message(&self) -> String {
        let limit = match self.class {
            ErrorClass::TimeoutFirstToken => self.timeouts.first_token,
            ErrorClass::TimeoutIdle => self.timeouts.idle,
            _ => self.timeouts.total,
        };
        format!("{} (limit {limit})", self.class.meaning())
    }

    fn earliest(&mut self, at: Nanos, class: ErrorClass) {
        let total = self.started + self.timeouts.total.0;
        (self.at, self.class) = if at < total { (at, class) } else { (total, ErrorClass::TimeoutTotal) };
    }

    #[expect(clippy::disallowed_methods, reason = "deadlines are seconds; a step of 1 ms is no matter")]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = mono_now();
        if now >= self.at {
            return Poll::Ready(());
        }
        // A timer that fires too early is set anew then; one that would fire too late, now. One that is set need not
        // be asked: it wakes this task, and only this task ever polls it.
        if self.timer.as_ref().is_none_or(|(fires, _)| *fires <= now || *fires > self.at) {
            let mut sleep = Box::pin(tokio::time::sleep((self.at - now).to_std()));
            if sleep.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            self.timer = Some((self.at, sleep));
        }
        Poll::Pending
    }

    /// Waits for `future`, this deadline or the cancellation.
    pub(crate) async fn race<T>(
        &mut self,
        mut cancelled: Pin<&mut Notified<'_>>,
        future: impl Future<Output = T>,
    ) -> Raced<T> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(done) = future.as_mut().poll(cx) {
                return Poll::Ready(Raced::Done(done));
            }
            if cancelled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Raced::Cancelled);
            }
            self.poll(cx).map(|()| Raced::TimedOut)
        })
        .await
    }
}
