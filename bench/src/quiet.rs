//! Waiting until nobody else uses the two cores: a measurement beside a build is worth nothing.

use std::time::Duration;

use ttft_kernel::mono_now;
use ttft_model::Nanos;

use crate::machine::load_average;
use crate::noise::NoiseMeter;
use crate::report::note;

/// Quiet for so many looks in a row, so that a pause between two compilers is not taken for the end.
const LOOKS: u32 = 3;
const LOOK: Duration = Duration::from_millis(700);

/// How much waiting is left.
pub(crate) struct Patience {
    left: Nanos,
}

impl Patience {
    /// For all waiting of one benchmark together.
    pub(crate) fn new(seconds: u32) -> Self {
        Self { left: Nanos::from_millis(i64::from(seconds) * 1000) }
    }

    /// Returns when the cores are idle or the patience is used up.
    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        let begun = mono_now();
        let mut quiet = 0;
        let mut told = false;
        while quiet < LOOKS && mono_now() - begun < self.left {
            let meter = NoiseMeter::start()?;
            std::thread::sleep(LOOK);
            let noise = meter.finish()?;
            quiet = if noise.is_noisy() { 0 } else { quiet + 1 };
            if noise.is_noisy() && !told {
                told = true;
                note(&format!(
                    "others use {:.0} % of a core, load average {:.2}; waiting",
                    noise.worst(),
                    load_average()
                ));
            }
        }
        self.left = self.left - (mono_now() - begun);
        Ok(())
    }
}
