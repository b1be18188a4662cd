//! Facts and limits of this host that every Unix has.

use std::ffi::CStr;

/// Cores that this process may run on.
pub fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Raises the soft limit of open files to the hard one and returns what holds now.
pub fn raise_open_files() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for one rlimit, and the resource id is a constant of this platform.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 0;
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
        // SAFETY: `raised` is a valid rlimit and lives across the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            limit.rlim_cur = limit.rlim_max;
        }
    }
    limit.rlim_cur
}

/// Lets a write over the limit of file sizes (`ulimit -f`) fail like one on a full disk, instead of ending the process.
pub fn outlive_file_size_limit() {
    // SAFETY: to ignore a signal installs no code that could run at a bad moment.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// The host's name, empty if the system does not tell.
pub fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the length passed is one less than the buffer's, so the text always ends with a zero byte.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    if failed { String::new() } else { text(&name) }
}

/// System name and kernel release, such as `Linux 6.18.1`.
pub fn kernel_release() -> String {
    // SAFETY: utsname is plain arrays of bytes, for which zeros are valid.
    let mut uts: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `uts` is a valid place for one utsname.
    if unsafe { libc::uname(&raw mut uts) } != 0 {
        return String::new();
    }
    // SAFETY: uname fills both fields with texts that end with a zero byte inside the arrays.
    let (name, release) =
        unsafe { (CStr::from_ptr(uts.sysname.as_ptr()), CStr::from_ptr(uts.release.as_ptr())) };
    format!("{} {}", name.to_string_lossy(), release.to_string_lossy())
}

/// The ports that the system gives to outgoing connections, where it tells.
pub fn local_ports() -> Option<std::ops::RangeInclusive<u16>> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_whitespace().map(str::parse);
    Some(ends.next()?.ok()?..=ends.next()?.ok()?)
}

/// How the cores choose their frequency, where the system tells: `performance`, `powersave`, … or several of them,
/// separated by commas, where cores differ.
pub fn cpu_governor() -> Option<String> {
    let cores = std::fs::read_dir("/sys/devices/system/cpu").ok()?.flatten();
    let governor = |core: std::fs::DirEntry| {
        let text = std::fs::read_to_string(core.path().join("cpufreq/scaling_governor")).ok()?;
        Some(text.trim().to_owned()).filter(|name| !name.is_empty())
    };
    let all: std::collections::BTreeSet<String> = cores.filter_map(governor).collect();
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(","))
}

/// Resident memory of this process, where `/proc` tells it.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: sysconf with a constant name has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}
