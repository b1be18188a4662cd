//! CPU time of this process and of its children, from `/proc`, to 10 ms.

use std::fs;
use std::ops::Sub;

use anyhow::Context;
use serde::Serialize;
use ttft_model::Nanos;

/// One tick of `/proc` in nanoseconds; `USER_HZ` is 100 on every Linux.
pub(crate) const TICK_NS: i64 = 10_000_000;

/// CPU time, in the program and in the kernel on its behalf.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Cpu {
    pub(crate) user: Nanos,
    pub(crate) system: Nanos,
}

impl Cpu {
    pub(crate) fn total(self) -> Nanos {
        self.user + self.system
    }
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user: self.user - earlier.user, system: self.system - earlier.system }
    }
}

/// Of this process's ended and awaited children, so far.
pub(crate) fn of_children() -> anyhow::Result<Cpu> {
    Ok(of_self_and_children()?.1)
}

/// Of this process, and of its ended and awaited children.
pub(crate) fn of_self_and_children() -> anyhow::Result<(Cpu, Cpu)> {
    let stat = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    // The name in brackets may hold anything; the state that follows it is field 3.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let time = |field: usize| Some(Nanos(fields.get(field - 3)?.parse::<i64>().ok()? * TICK_NS));
    let cpu = |user, system| Some(Cpu { user: time(user)?, system: time(system)? });
    cpu(14, 15).zip(cpu(16, 17)).context("/proc/self/stat is not as expected")
}
