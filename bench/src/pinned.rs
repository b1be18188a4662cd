//! Child processes on a core of their own.

use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, bail};
use ttft_kernel::{mono_now, pin_to_cpu};
use ttft_model::Nanos;

/// Every measurement is planned to end in a third of this.
const LONGEST: Nanos = Nanos::from_millis(180_000);

/// A child that is killed if it is still running when dropped.
pub(crate) struct Pinned {
    pub(crate) child: Child,
    /// Just before it was started.
    pub(crate) at: Nanos,
}

impl Pinned {
    /// Starts the command on that core. The affinity is inherited from the thread that starts it.
    pub(crate) fn start(mut command: Command, cpu: usize) -> anyhow::Result<Self> {
        let name = command.get_program().to_owned();
        let starter = std::thread::spawn(move || {
            pin_to_cpu(cpu)?;
            let at = mono_now();
            command.spawn().map(|child| Self { child, at })
        });
        match starter.join() {
            Ok(started) => started.with_context(|| format!("cannot start {} on core {cpu}", name.display())),
            Err(_) => bail!("the thread that should start {} panicked", name.display()),
        }
    }

    /// Waits for its end and says when that was, to a few milliseconds. One that takes longer than [`LONGEST`] is
    /// killed, and an error.
    pub(crate) fn wait(&mut self) -> anyhow::Result<(ExitStatus, Nanos)> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((status, mono_now()));
            }
            self.check_age()?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// An error when it runs for too long.
    fn check_age(&self) -> anyhow::Result<()> {
        if mono_now() - self.at > LONGEST {
            bail!("it did not end within {:.0} s", LONGEST.as_secs_f64());
        }
        Ok(())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
