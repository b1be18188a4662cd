//! The machine in one line, so that figures are never without it.

use std::fs;

/// Processor, cores, kernel and load.
pub(crate) fn describe() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, name)| name.trim());
    let cores = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    format!("{cores} × {model}, {}, load average {:.2}", ttft_kernel::kernel_release(), load_average())
}

/// Processes that wanted to run, averaged over the last minute.
pub(crate) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}
