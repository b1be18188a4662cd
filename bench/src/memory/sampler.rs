//! Looks at a child's memory until it ends.

use std::fs;
use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;
use ttft_kernel::mono_now;

use crate::pinned::Pinned;

/// One look.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the process was started.
    pub(crate) at_s: f64,
    /// Resident now.
    pub(crate) resident_kib: u64,
    /// The most so far.
    pub(crate) peak_kib: u64,
}

/// Samples until the child ends, and shows each to `look`. A child that fails is an error.
pub(crate) fn watch(
    child: &mut Pinned,
    every: Duration,
    mut look: impl FnMut(&Sample),
) -> anyhow::Result<Vec<Sample>> {
    let path = format!("/proc/{}/status", child.child.id());
    let mut samples = Vec::new();
    let status = loop {
        std::thread::sleep(every);
        if let Some(status) = child.child.try_wait()? {
            break status;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A process that is ending has no memory any more.
        if let (Some(resident_kib), Some(peak_kib)) = (kib(&text, "VmRSS:"), kib(&text, "VmHWM:")) {
            let at_s = (mono_now() - child.at).as_secs_f64();
            samples.push(Sample { at_s, resident_kib, peak_kib });
            samples.last().map(&mut look);
        }
    };
    ensure!(status.success(), "ttft run ended with {status}");
    Ok(samples)
}

fn kib(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
