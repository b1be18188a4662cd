//! Listens to a run and keeps what it tells.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::bail;
use ttft_drive::{Message, Running};
use ttft_kernel::mono_now;
use ttft_model::{Load, Nanos, Run, StageWindow};
use ttft_store::{Appended, RunFolder};

use crate::output;
use crate::progress::Line;

/// What was told is on disk at most this much later.
const FLUSH_EVERY: Nanos = Nanos::from_millis(1_000);
const LISTEN: Duration = Duration::from_millis(100);

/// Keeps everything until the run is over, and returns its facts.
pub(super) fn record(running: &Running, folder: RunFolder, run: Run) -> anyhow::Result<Run> {
    Recorder { running, folder, run, line: Line::new(), flushed: mono_now() }.listen()
}

struct Recorder<'a> {
    running: &'a Running,
    folder: RunFolder,
    run: Run,
    line: Line,
    flushed: Nanos,
}

impl Recorder<'_> {
    fn listen(mut self) -> anyhow::Result<Run> {
        loop {
            let over = match self.running.messages.recv_timeout(LISTEN) {
                Ok(message) => self.take(message)?,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => bail!("the run ended without a word"),
            };
            if over {
                break;
            }
            if mono_now() - self.flushed >= FLUSH_EVERY {
                let appended = self.folder.flush()?;
                self.heed(&appended);
                self.flushed = mono_now();
            }
            self.line.tick(&self.running.progress);
        }
        self.line.clear();
        self.run.ended_ns = Some(mono_now().0 - self.run.zero_monotonic_ns);
        let finished = self.folder.finish(&self.run)?;
        if finished.low_space {
            output::note("the disk was full: the run was stopped early, and every result up to then is kept");
        }
        Ok(self.run)
    }

    /// Keeps one message; true when it was the last.
    fn take(&mut self, message: Message) -> anyhow::Result<bool> {
        match message {
            Message::Records(records) => {
                let appended = self.folder.append(&records)?;
                self.heed(&appended);
            }
            Message::WarmUp { requests } => self.line.begin(format!("warm-up, {requests} requests")),
            Message::StageBegan { stage, start } => self.begin(stage, start)?,
            Message::StageEnded(window) => {
                self.run.stages.retain(|known| known.stage != window.stage);
                self.run.stages.push(self.on_axis(window));
                self.folder.update_run(&self.run)?;
            }
            Message::Ended { interrupted, wall_steps, realtime } => {
                self.run.interrupted = interrupted;
                if interrupted && self.run.stopped_by.is_none() {
                    self.run.stopped_by = Some("a signal (Ctrl-C or a request to terminate)".to_owned());
                }
                self.run.clock.wall_steps = wall_steps;
                self.run.clock.realtime = realtime && self.run.plan.client.realtime;
                if self.run.plan.client.realtime && !realtime {
                    output::note(
                        "real-time scheduling was not granted: run as root, or allow it by `ulimit -r`",
                    );
                }
                return Ok(true);
            }
            Message::Failed(why) => bail!("{why}"),
        }
        Ok(false)
    }

    fn begin(&mut self, stage: u32, start: Nanos) -> anyhow::Result<()> {
        let planned = &self.run.plan.stages[stage as usize];
        let (ramp, title) = match planned.load {
            Load::Closed { concurrency, ramp_up } => (ramp_up.0, format!("concurrency {concurrency}")),
            Load::Open { rate, .. } => (Nanos::ZERO, format!("{rate} requests/s")),
        };
        let number = stage + 1;
        self.line.begin(format!("stage {number}/{}: {title}", self.run.plan.stages.len()));
        let window = StageWindow { stage, start, reached: start + ramp, ..StageWindow::default() };
        let window = self.on_axis(window);
        self.run.stages.push(window);
        Ok(self.folder.update_run(&self.run)?)
    }

    /// A window on the axis of the run.
    fn on_axis(&self, window: StageWindow) -> StageWindow {
        let zero = Nanos(self.run.zero_monotonic_ns);
        StageWindow {
            start: window.start - zero,
            reached: window.reached - zero,
            dry: window.dry.map(|at| at - zero),
            end: window.end.map(|at| at - zero),
            ..window
        }
    }

    fn heed(&mut self, appended: &Appended) {
        let Some(reason) = appended.stop_reason() else { return };
        if self.run.stopped_by.is_none() {
            self.line.clear();
            output::note(&format!("stopping: {reason}; free some space in {}", self.folder.path().display()));
            self.running.stop.in_order();
            self.run.stopped_by = Some(reason);
        }
    }
}
