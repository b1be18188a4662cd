//! What is known of a run before its first request.

use ttft_kernel::{Anchor, cpu_count, cpu_governor, host_name, kernel_release, mono_now, real_now};
use ttft_model::{ClockInfo, Plan, Run, StampSource};
use ttft_store::{RUN_SCHEMA, redact};

/// The facts of a run whose zero is now.
pub(super) fn of_run(plan: &Plan, anchor: &Anchor) -> Run {
    let command: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let zero_unix_ns = real_now();
    Run {
        schema: RUN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: plan.name.clone(),
        command: redact::command_line(&command),
        host: host_name(),
        kernel: kernel_release(),
        cpus: cpu_count() as u32,
        clock: clock(anchor),
        zero_unix_ns,
        zero_monotonic_ns: mono_now().0,
        ended_ns: None,
        interrupted: false,
        stopped_by: None,
        server: None,
        governor: cpu_governor(),
        stages: Vec::new(),
        plan: plan.clone(),
    }
}

fn clock(anchor: &Anchor) -> ClockInfo {
    let (receive, note) = if anchor.holds() {
        (StampSource::Kernel, "receive instants are the kernel's stamps of the segments")
    } else {
        (
            StampSource::User,
            "this system gives no receive stamps: instants are this process's own and late when it is",
        )
    };
    ClockInfo {
        receive,
        transmit: anchor.holds() && cfg!(target_os = "linux"),
        wall_steps: 0,
        note: note.to_owned(),
        realtime: false,
    }
}
