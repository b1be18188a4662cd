//! How a run is getting on: one line that is redrawn on a terminal, a plain line now and then elsewhere.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;

use ttft_drive::Progress;
use ttft_judge::metrics;
use ttft_kernel::mono_now;
use ttft_model::{Nanos, Record, Stop};

use crate::output;

/// The median TTFT is that of so many requests that ended last.
const LAST: usize = 100;

/// Shows the progress of one stage after another.
pub(crate) struct Line {
    terminal: bool,
    every: Nanos,
    last: Nanos,
    start: Nanos,
    title: String,
    /// When the stage ends.
    stop: Stop,
    /// Time of the stages after it, if that is known.
    after: Option<Nanos>,
    /// Nothing is sent until then.
    rests_until: Option<Nanos>,
    /// TTFT in milliseconds of the requests that ended last.
    ttft: VecDeque<f64>,
    drawn: bool,
}

impl Line {
    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        let every = if terminal { Nanos::from_millis(250) } else { Nanos::from_millis(10_000) };
        let now = mono_now();
        Self {
            terminal,
            every,
            last: now,
            start: now,
            title: String::new(),
            stop: Stop::default(),
            after: None,
            rests_until: None,
            ttft: VecDeque::with_capacity(LAST),
            drawn: false,
        }
    }

    /// A new stage, or the warm-up.
    pub(crate) fn begin(&mut self, title: String) {
        self.clear();
        self.start = mono_now();
        self.last = self.start;
        self.title = title;
        (self.stop, self.after, self.rests_until) = (Stop::default(), None, None);
        self.ttft.clear();
        if !self.terminal {
            output::note(&self.title);
        }
    }

    /// When the stage that has begun ends, and how long those after it take, if that is known.
    pub(crate) fn expect(&mut self, stop: Stop, after: Option<Nanos>) {
        (self.stop, self.after) = (stop, after);
    }

    /// Nothing is sent until then.
    pub(crate) fn settle(&mut self, title: String, until: Nanos) {
        self.begin(title);
        self.rests_until = Some(until);
    }

    /// Requests that have ended.
    pub(crate) fn saw(&mut self, records: &[Record]) {
        for ttft in records.iter().filter(|r| r.failure().is_none()).filter_map(metrics::ttft) {
            self.ttft.truncate(LAST - 1);
            self.ttft.push_front(ttft);
        }
    }

    /// Draws if it is time to.
    pub(crate) fn tick(&mut self, progress: &Progress) {
        let now = mono_now();
        if self.title.is_empty() || now - self.last < self.every {
            return;
        }
        self.last = now;
        let line = match self.rests_until {
            Some(until) => format!("{}  {}", self.title, seconds((until - now).max(Nanos::ZERO))),
            None => self.of_stage(now, progress),
        };
        if self.terminal {
            let _ = write!(io::stderr().lock(), "\r\x1b[K{line}");
            self.drawn = true;
        } else {
            output::note(&line);
        }
    }

    fn of_stage(&self, now: Nanos, progress: &Progress) -> String {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (started, ok, failed) = (count(&progress.started), count(&progress.ok), count(&progress.failed));
        let elapsed = now - self.start;
        let rate = count(&progress.tokens) as f64 / elapsed.as_secs_f64().max(0.001);
        let failed_text = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let under_way = started.saturating_sub(ok + failed);
        let of_time = self.stop.duration.map(|span| format!(" of {}", seconds(span.0))).unwrap_or_default();
        let of_count = self.stop.requests.map(|n| format!(" of {n}")).unwrap_or_default();
        let left = self.left(elapsed, ok + failed);
        // A line that is too long for the terminal could not be redrawn: the last of these go first.
        let mut said = vec![
            format!("{}  {}{of_time}  {ok}{of_count} ok{failed_text}", self.title, seconds(elapsed)),
            format!("{under_way} under way"),
        ];
        said.extend(self.median().map(|ms| format!("TTFT {}", ttft_show::time(Some(ms)))));
        said.extend(left.map(|left| format!("about {} left", seconds(left))));
        said.push(format!("{rate:.0} tok/s"));
        let width = if self.terminal { output::style(&io::stderr()).width } else { usize::MAX };
        while said.len() > 1 && said.join(", ").chars().count() >= width {
            said.pop();
        }
        said.join(", ").chars().take(width.saturating_sub(1)).collect()
    }

    /// The median TTFT of the requests that ended last.
    fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.ttft.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    /// How long the whole run will take from now on, as far as that is known and worth a word.
    fn left(&self, elapsed: Nanos, ended: u64) -> Option<Nanos> {
        let by_time = self.stop.duration.map(|span| (span.0 - elapsed).max(Nanos::ZERO));
        let by_count = self.stop.requests.filter(|_| ended > 0).map(|requests| {
            let each = elapsed.0 as f64 / ended as f64;
            Nanos((each * requests.saturating_sub(ended) as f64) as i64)
        });
        let of_stage = by_time.into_iter().chain(by_count).min()?;
        Some(of_stage + self.after?)
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
            self.drawn = false;
        }
    }
}

/// Seconds up to two minutes, then minutes and seconds, then hours and minutes.
fn seconds(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    match seconds {
        i64::MIN..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}
