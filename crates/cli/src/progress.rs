//! How a run is getting on: one line that is redrawn on a terminal, a plain line now and then elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;

use ttft_drive::Progress;
use ttft_kernel::mono_now;
use ttft_model::Nanos;

use crate::output;

/// Shows the progress of one stage after another.
pub(crate) struct Line {
    terminal: bool,
    every: Nanos,
    last: Nanos,
    start: Nanos,
    title: String,
    drawn: bool,
}

impl Line {
    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        let every = if terminal { Nanos::from_millis(250) } else { Nanos::from_millis(10_000) };
        let now = mono_now();
        Self { terminal, every, last: now, start: now, title: String::new(), drawn: false }
    }

    /// A new stage.
    pub(crate) fn begin(&mut self, title: String) {
        self.clear();
        self.start = mono_now();
        self.last = self.start;
        self.title = title;
        if !self.terminal {
            output::note(&self.title);
        }
    }

    /// Draws if it is time to.
    pub(crate) fn tick(&mut self, progress: &Progress) {
        let now = mono_now();
        if self.title.is_empty() || now - self.last < self.every {
            return;
        }
        self.last = now;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (started, ok, failed) = (count(&progress.started), count(&progress.ok), count(&progress.failed));
        let seconds = (now - self.start).as_secs_f64();
        let rate = count(&progress.tokens) as f64 / seconds.max(0.001);
        let failed_text = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let under_way = started.saturating_sub(ok + failed);
        let line = format!(
            "{}  {seconds:.0} s  {ok} ok{failed_text}, {under_way} under way, {rate:.0} tok/s",
            self.title
        );
        if self.terminal {
            let _ = write!(io::stderr().lock(), "\r\x1b[K{line}");
            self.drawn = true;
        } else {
            output::note(&line);
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
            self.drawn = false;
        }
    }
}
