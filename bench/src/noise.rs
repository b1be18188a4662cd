//! How much of the two cores went to others while something was measured.

use std::fs;

use anyhow::Context;
use serde::Serialize;
use ttft_kernel::mono_now;
use ttft_model::Nanos;

use crate::cpu::{Cpu, TICK_NS};
use crate::{CLIENT_CPU, SERVER_CPU, cpu};

/// From this share of a core on, a measurement is called noisy.
pub(crate) const NOISY_PERCENT: f64 = 8.0;

/// What else ran on the two cores, in percent of each.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Noise {
    pub(crate) server_core: f64,
    pub(crate) client_core: f64,
    /// Time that the hypervisor gave to others, of both cores.
    pub(crate) stolen: f64,
}

impl Noise {
    /// The worse of the two cores, theft included.
    pub(crate) fn worst(&self) -> f64 {
        self.server_core.max(self.client_core).max(self.stolen)
    }

    pub(crate) fn is_noisy(&self) -> bool {
        self.worst() > NOISY_PERCENT
    }
}

/// Readings at the begin of a measurement. The measured children must be pinned to the client's core and be
/// awaited before the end.
pub(crate) struct NoiseMeter {
    at: Nanos,
    server: Core,
    client: Core,
    own: Cpu,
    children: Cpu,
}

impl NoiseMeter {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let (own, children) = cpu::of_self_and_children()?;
        Ok(Self {
            at: mono_now(),
            server: Core::read(SERVER_CPU)?,
            client: Core::read(CLIENT_CPU)?,
            own,
            children,
        })
    }

    pub(crate) fn finish(self) -> anyhow::Result<Noise> {
        let now = Self::start()?;
        let length = (now.at - self.at).0 as f64;
        let percent = |busy: i64, ours: Cpu| ((busy - ours.total().0) as f64 / length * 100.0).max(0.0);
        let stolen = now.server.stolen - self.server.stolen + now.client.stolen - self.client.stolen;
        Ok(Noise {
            server_core: percent(now.server.busy - self.server.busy, now.own - self.own),
            client_core: percent(now.client.busy - self.client.busy, now.children - self.children),
            stolen: stolen as f64 / length / 2.0 * 100.0,
        })
    }
}

/// Time of one core since boot, in nanoseconds.
struct Core {
    /// In processes and the kernel on their behalf, interrupts left out.
    busy: i64,
    stolen: i64,
}

impl Core {
    fn read(cpu: usize) -> anyhow::Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let name = format!("cpu{cpu} ");
        let line = stat
            .lines()
            .find_map(|line| line.strip_prefix(&name))
            .with_context(|| format!("this machine has no core {cpu}; the benchmarks need two"))?;
        let ticks: Vec<i64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let of = |field: usize| ticks.get(field).copied().unwrap_or(0) * TICK_NS;
        // user nice system idle iowait irq softirq steal
        Ok(Self { busy: of(0) + of(1) + of(2), stolen: of(7) })
    }
}
