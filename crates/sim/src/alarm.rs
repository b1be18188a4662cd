//! Wakes the event loop at an instant. A timer of the kernel's where it is had (poll timeouts are in whole
//! milliseconds), else the poll's own timeout.

use std::io;
use std::time::Duration;

use mio::{Registry, Token};
use ttft_kernel::mono_now;
use ttft_model::Nanos;

/// The last stretch before an instant, in which the loop turns without sleeping: about the time that a sleeping
/// thread takes to wake.
const SPIN: Nanos = Nanos(30_000);

#[cfg(target_os = "linux")]
pub(crate) struct Alarm {
    timer: ttft_kernel::Timer,
    armed: Option<Nanos>,
}

#[cfg(target_os = "linux")]
impl Alarm {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        use std::os::fd::{AsFd, AsRawFd};
        let timer = ttft_kernel::Timer::new()?;
        let fd = timer.as_fd().as_raw_fd();
        registry.register(&mut mio::unix::SourceFd(&fd), token, mio::Interest::READABLE)?;
        Ok(Self { timer, armed: None })
    }

    /// How long to poll so as to be back at `at`.
    pub(crate) fn timeout(&mut self, at: Option<Nanos>) -> io::Result<Option<Duration>> {
        let Some(at) = at else { return Ok(None) };
        let wake = at - SPIN;
        if wake <= mono_now() {
            return Ok(Some(Duration::ZERO));
        }
        if self.armed != Some(wake) {
            self.timer.arm_at(wake)?;
            self.armed = Some(wake);
        }
        Ok(None)
    }

    /// Says that the timer went off.
    pub(crate) fn rang(&mut self) {
        self.timer.drain();
        self.armed = None;
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) struct Alarm;

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(crate) fn new(_: &Registry, _: Token) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn timeout(&mut self, at: Option<Nanos>) -> io::Result<Option<Duration>> {
        let left = |at: Nanos| (at - SPIN - mono_now()).to_std();
        Ok(at.map(|at| Duration::from_millis(left(at).as_millis() as u64)))
    }

    pub(crate) fn rang(&mut self) {}
}
