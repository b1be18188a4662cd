//! Listens to a run and keeps what it tells.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use ttft_drive::{Director, Message, Rest, Running};
use ttft_judge::precision::Precision;
use ttft_kernel::mono_now;
use ttft_model::{Load, Nanos, Plan, Record, Run, Stage, StageWindow};
use ttft_store::redact::Secrets;
use ttft_store::{Appended, RunFolder, StoreError};

use super::guide::{Cut, Guide};
use super::scrape::{Scraped, Scraping};
use super::streams::Streams;
use super::warm_up::WarmUp;
use crate::progress::Line;
use crate::{exit, output};

/// What was told is on disk at most this much later.
const FLUSH_EVERY: Nanos = Nanos::from_millis(1_000);
const LISTEN: Duration = Duration::from_millis(100);

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As planned.
    Planned,
    /// The budget held no more requests, which is an end as planned too.
    Budget,
    /// By a signal.
    Signal,
    /// There was no point in going on: the disk was full, or nothing could be reached.
    Trouble,
}

/// Keeps everything until the run is over.
pub(super) fn record(
    running: &Running,
    director: Director,
    guide: &mut dyn Guide,
    folder: RunFolder,
    run: Run,
    secrets: &Secrets,
    scraping: Scraping,
) -> anyhow::Result<Ending> {
    let recorder = Recorder {
        running,
        director: Some(director),
        guide,
        scraping,
        streams: Streams::under(folder.path(), secrets),
        folder,
        run,
        current: None,
        precision: None,
        warm_up: WarmUp::default(),
        line: Line::new(),
        flushed: mono_now(),
        is_spent: false,
    };
    recorder.listen()
}

struct Recorder<'a> {
    running: &'a Running,
    /// Takes more stages, until there are none.
    director: Option<Director>,
    guide: &'a mut dyn Guide,
    scraping: Scraping,
    folder: RunFolder,
    run: Run,
    /// The stage under way.
    current: Option<u32>,
    /// Ends it when it has told enough.
    precision: Option<Precision>,
    warm_up: WarmUp,
    streams: Streams<'a>,
    line: Line,
    flushed: Nanos,
    /// The budget is spent.
    is_spent: bool,
}

impl Recorder<'_> {
    fn listen(mut self) -> anyhow::Result<Ending> {
        self.direct(None);
        let ending = loop {
            let ending = match self.running.messages.recv_timeout(LISTEN) {
                Ok(message) => self.take(message)?,
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(self.broke("it ended without a word".to_owned())),
            };
            if let Some(ending) = ending {
                break ending;
            }
            while let Ok(scraped) = self.scraping.news.try_recv() {
                self.keep(&scraped)?;
            }
            if mono_now() - self.flushed >= FLUSH_EVERY {
                let appended = self.folder.flush()?;
                self.heed(&appended);
                self.flushed = mono_now();
            }
            self.line.tick(&self.running.progress);
        };
        self.line.clear();
        self.run.ended_ns = Some(mono_now().0 - self.run.zero_monotonic_ns);
        self.keep_last_scrapes()?;
        match self.folder.finish(&self.run) {
            Ok(finished) if finished.low_space => {
                output::note("the disk was full: every result up to then is kept");
            }
            Ok(_) => {}
            // All others are kept, and worth a summary.
            Err(error @ StoreError::NotKept { .. }) => {
                exit::tell(&error.into());
                return Ok(Ending::Trouble);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(ending)
    }

    fn keep(&mut self, (file, scrape): &Scraped) -> anyhow::Result<()> {
        let appended = self.folder.scraped(*file, scrape)?;
        self.heed(&appended);
        Ok(())
    }

    /// What is still on its way when all requests have ended.
    fn keep_last_scrapes(&mut self) -> anyhow::Result<()> {
        for scraped in self.scraping.finish() {
            self.keep(&scraped)?;
        }
        Ok(())
    }

    /// Keeps one message; the last one tells how the run ended.
    fn take(&mut self, message: Message) -> anyhow::Result<Option<Ending>> {
        match message {
            Message::Records(records) => {
                self.warm_up.push(&records);
                self.line.saw(&records);
                self.ask(&records);
                let appended = self.folder.append(&records)?;
                self.heed(&appended);
            }
            Message::Uncounted(one) => return self.take(Message::Records(vec![one.count()])),
            Message::Stream(single) => self.streams.keep(&single),
            Message::WarmUp { requests } => self
                .line
                .begin(format!("warm-up, {requests} {}", if requests == 1 { "request" } else { "requests" })),
            Message::Settling { next, until } => {
                let (next, all) = (next as usize + 1, self.run.plan.stages.len().max(next as usize + 1));
                self.line.settle(format!("settling before stage {next}/{all}"), until);
            }
            Message::BudgetSpent(why) => {
                self.line.clear();
                output::note(&format!("stopping: {why}"));
                self.is_spent = true;
                self.run.stopped_by.get_or_insert(why);
            }
            Message::StageBegan { stage, what, start, reached } => {
                self.begin(stage, *what, start, reached);
                if let Some(reason) = self.warm_up.take_hopeless() {
                    self.stop("--warmup 0 goes on regardless", &reason);
                }
            }
            Message::StageEnded(window) => {
                (self.current, self.precision) = (None, None);
                self.direct(Some(&window));
                self.run.stages.retain(|known| known.stage != window.stage);
                self.run.stages.push(self.on_axis(window));
                self.write_facts();
            }
            Message::Ended { interrupted, wall_steps, realtime } => {
                self.run.interrupted = interrupted;
                let ending = match (interrupted, &self.run.stopped_by) {
                    (false, _) => Ending::Planned,
                    (true, Some(_)) if self.is_spent => Ending::Budget,
                    (true, Some(_)) => Ending::Trouble,
                    (true, None) => Ending::Signal,
                };
                if ending == Ending::Signal {
                    self.run.stopped_by = Some("a signal (Ctrl-C or a request to terminate)".to_owned());
                }
                self.run.clock.wall_steps = wall_steps;
                self.run.clock.realtime = realtime && self.run.plan.client.realtime;
                if self.run.plan.client.realtime && !realtime {
                    output::note(
                        "real-time scheduling was not granted: run as root, or allow it by `ulimit -r`",
                    );
                }
                return Ok(Some(ending));
            }
            Message::Failed(why) => return Ok(Some(self.broke(why))),
        }
        Ok(None)
    }

    /// Gives the next stage after the planned ones, as the guide decides.
    fn direct(&mut self, ended: Option<&StageWindow>) {
        let played = ended.map_or(0, |window| window.stage as usize + 1);
        if played < self.run.plan.stages.len() {
            return;
        }
        let next = self.director.as_ref().and_then(|_| self.guide.next(ended));
        let given = self.director.as_ref().zip(next).is_some_and(|(director, next)| director.play(next));
        if !given {
            self.director = None;
        }
    }

    /// Ends the stage under way if it has told enough, by its precision or for its guide.
    fn ask(&mut self, records: &[Record]) {
        let cut = self.guide.records(records).or_else(|| self.precise(records));
        if let (Some(cut), Some(stage)) = (cut, self.current) {
            self.running.end_stage(stage, cut.rest, cut.why);
        }
    }

    /// Whether the figures of the stage under way are as precise as the plan wants them, told once.
    fn precise(&mut self, records: &[Record]) -> Option<Cut> {
        let precision = self.precision.as_mut()?;
        for record in records {
            precision.push(record);
        }
        if !precision.is_reached() {
            return None;
        }
        let look = precision.last()?;
        self.precision = None;
        let wanted = self.run.plan.precision.unwrap_or_default();
        let why = format!(
            "after {} requests the 95 % interval of TTFT p95 is {:.1} % of it wide, less than the {} % asked for",
            look.n,
            look.width? * 100.0,
            wanted * 100.0
        );
        Some(Cut { rest: Rest::Drain, why })
    }

    fn begin(&mut self, stage: u32, what: Stage, start: Nanos, reached: Nanos) {
        let number = stage as usize + 1;
        if number > self.run.plan.stages.len() {
            self.run.plan.stages.push(what);
        }
        let stages = &self.run.plan.stages;
        let left = if self.guide.adds_stages() { None } else { work_of(&self.run.plan, number) };
        self.line.begin(format!("stage {number}/{}: {}", stages.len(), title(&stages[number - 1])));
        self.line.expect(stages[number - 1].stop, left);
        self.current = Some(stage);
        self.precision = self.run.plan.precision.map(Precision::new);
        let window = StageWindow { stage, start, reached, ..StageWindow::default() };
        let window = self.on_axis(window);
        self.run.stages.push(window);
        self.write_facts();
    }

    /// Writes `run.json`. If that fails (no file left to open, say) the rows are still worth going on for; it is written
    /// again at the next stage, and at the end.
    fn write_facts(&mut self) {
        if let Err(error) = self.folder.update_run(&self.run) {
            self.line.clear();
            exit::tell(&error.into());
        }
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
        if let Some(reason) = appended.stop_reason() {
            self.stop(&format!("free some space in {}", self.folder.path().display()), &reason);
        }
    }

    /// The run could not go on; what it told until then is kept.
    fn broke(&mut self, why: String) -> Ending {
        self.line.clear();
        output::note(&format!("error: the run broke off: {}", ttft_show::escape(&why)));
        self.run.interrupted = true;
        self.run.stopped_by = Some(why);
        Ending::Trouble
    }

    /// Ends the run in order, once, with a word on what to do.
    fn stop(&mut self, remedy: &str, reason: &str) {
        if self.run.stopped_by.is_none() {
            self.line.clear();
            let reason = self.folder.clean(reason).into_owned();
            output::note(&format!("stopping: {}; {remedy}", ttft_show::escape(&reason)));
            self.running.stop.in_order();
            self.run.stopped_by = Some(reason);
        }
    }
}

/// A stage in a few words.
fn title(stage: &Stage) -> String {
    let load = match &stage.load {
        Load::Closed { concurrency, .. } => format!("concurrency {concurrency}"),
        Load::Open { rate, rate_to: Some(to), .. } => format!("{rate} to {to} requests/s"),
        Load::Open { rate, .. } => format!("{rate} requests/s"),
        Load::Trace { speed, .. } => format!("trace at speed {speed}"),
    };
    let asked = [stage.endpoint.as_deref(), stage.model.as_deref()];
    let asked: Vec<_> = asked.into_iter().flatten().map(ttft_show::escape).collect();
    if asked.is_empty() { load } else { format!("{load}, {}", asked.join(" ")) }
}

/// How long the stages after the first `played` take, pauses included; nothing if one of them has no set time.
fn work_of(plan: &Plan, played: usize) -> Option<Nanos> {
    plan.stages.iter().skip(played).try_fold(Nanos::ZERO, |sum, stage| {
        let time = stage.stop.duration.filter(|_| stage.stop.requests.is_none())?;
        Some(sum + time.0 + plan.settle.0)
    })
}
