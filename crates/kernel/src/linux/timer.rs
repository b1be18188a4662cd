//! A one-shot timer as a file descriptor: late by tens of microseconds where a millisecond wheel is late by
//! hundreds.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use ttft_model::Nanos;

/// A timer on the monotonic clock. Readable once its instant has passed; [`Timer::drain`] makes it wait again.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// A timer that is not armed.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Arms it for that instant; one in the past fires at once. Replaces what was set before.
    pub fn arm_at(&self, at: Nanos) -> io::Result<()> {
        // Zero would disarm it.
        let at = at.0.max(1);
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 },
        };
        // SAFETY: `spec` lives across the call, and the old value is not asked for.
        let result = unsafe {
            libc::timerfd_settime(
                self.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const spec,
                std::ptr::null_mut(),
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether it had fired; it has not any more.
    pub fn drain(&self) -> bool {
        let mut count = 0u64;
        // SAFETY: a timerfd yields eight bytes, for which `count` is the place.
        let got = unsafe { libc::read(self.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        got == size_of::<u64>() as isize
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mono_now;

    #[test]
    fn fires_never_early() {
        let timer = Timer::new().unwrap();
        let due = mono_now() + Nanos::from_millis(3);
        timer.arm_at(due).unwrap();
        assert!(!timer.drain() || mono_now() >= due);
        while !timer.drain() {
            std::thread::yield_now();
        }
        assert!(mono_now() >= due);
        timer.arm_at(Nanos::ZERO).unwrap();
        while !timer.drain() {
            std::thread::yield_now();
        }
    }
}
