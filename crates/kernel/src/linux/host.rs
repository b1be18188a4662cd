//! Scheduling of the calling thread.

use std::io;

/// Keeps the calling thread on that core.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    // SAFETY: cpu_set_t is an array of bits, for which zeros are valid; CPU_SET checks its index.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    check(result)
}

/// Asks that the calling thread runs before all ordinary ones (`SCHED_FIFO`, lowest priority). Needs `CAP_SYS_NICE`
/// or a limit of `RLIMIT_RTPRIO`.
pub fn request_realtime() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: `param` lives across the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) })
}

/// Lets the calling thread run only where the others leave room (the lowest priority, nice 19), and what it starts too.
/// An ordinary thread that wakes takes the core from it at once.
pub fn yield_to_others() {
    // SAFETY: no pointers are passed. On Linux 0 is the calling thread; a refusal changes nothing but precedence.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Lets the calling thread's timers fire within `ns` of their instant instead of 50 µs.
pub fn set_timer_slack(ns: u32) {
    // SAFETY: PR_SET_TIMERSLACK takes one integer; a refusal changes nothing but precision.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(ns)) };
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
