//! Reading clocks. Each call costs about 20 ns (vDSO), CPU clocks about ten times that.

use ttft_model::Nanos;

fn read(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for one timespec; the clock ids used here always exist, so the call cannot
    // fail, and if it did `now` would still hold zeros.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The monotonic clock, the axis of every instant.
pub fn mono_now() -> Nanos {
    Nanos(read(libc::CLOCK_MONOTONIC))
}

/// The wall clock in nanoseconds since 1970. It may step: only for labels, and to convert kernel stamps.
pub fn real_now() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread.
pub fn thread_cpu_now() -> Nanos {
    Nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// CPU time of the whole process.
pub fn process_cpu_now() -> Nanos {
    Nanos(read(libc::CLOCK_PROCESS_CPUTIME_ID))
}
