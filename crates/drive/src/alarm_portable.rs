//! Waking on time where there is no precise timer: tokio's, late by up to a millisecond. `send_lag` shows it.

use std::io;
use std::rc::Rc;

use ttft_kernel::mono_now;
use ttft_model::Nanos;

/// All alarms of a worker.
pub(crate) struct Alarm;

impl Alarm {
    /// Nothing to start.
    pub(crate) fn start() -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self))
    }

    /// Completes at that instant, never before.
    #[expect(clippy::disallowed_methods, reason = "there is nothing better here")]
    pub(crate) async fn until(&self, at: Nanos) {
        while mono_now() < at {
            tokio::time::sleep((at - mono_now()).to_std()).await;
        }
    }
}
