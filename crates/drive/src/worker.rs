//! A worker: one thread, one event loop, its own connections, timer and randomness.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use ttft_kernel::{mono_now, request_realtime, set_timer_slack, thread_cpu_now};
use ttft_model::{Connections, HttpVersion, Load, Nanos, Outcome, Record, SaveStreams};
use ttft_plan::Counter;
use ttft_wire::{Pool, Request, Target, open};

use crate::alarm::Alarm;
use crate::attempt::{Keep, Lane, attempt, blank};
use crate::budget::Account;
use crate::gate::Gate;
use crate::load::run_load;
use crate::message::{Message, Progress, Stop};
use crate::session::{Session, next_turn};
use crate::shelf::Shelf;
use crate::stage_job::StageJob;
use crate::{Single, Uncounted};

/// Records wait for company up to this many, and up to [`FLUSH_EVERY`].
const BATCH: usize = 256;
const FLUSH_EVERY: Nanos = Nanos::from_millis(250);

/// Connections that are opened at once before a stage: enough for a far server, too few to flood its accept queue.
const OPENING: usize = 32;

/// A stage for a worker, and the channels that start it and tell its end.
pub(crate) struct Assignment {
    pub job: Arc<StageJob>,
    pub ready: oneshot::Sender<()>,
    pub go: oneshot::Receiver<Nanos>,
    pub done: oneshot::Sender<Done>,
}

/// What a worker tells at the end of a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub cpu: Nanos,
    pub wall_steps: u32,
    pub realtime: bool,
}

/// What a worker is made of.
pub(crate) struct WorkerParts {
    pub index: u32,
    pub count: u32,
    pub make_lanes: Box<dyn FnOnce() -> Vec<Lane> + Send>,
    pub realtime: bool,
    pub save_streams: Option<SaveStreams>,
    pub seed: u64,
    pub messages: Sender<Message>,
    pub progress: Arc<Progress>,
    pub stop: Stop,
}

/// What a user needs to know of its last request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub at: Nanos,
    pub connected: bool,
}

/// A pool for each endpoint.
pub(crate) type Pools = Vec<Rc<Pool>>;

/// A worker at work.
pub(crate) struct Worker {
    pub index: u32,
    pub count: u32,
    lanes: Vec<Lane>,
    pub alarm: Rc<Alarm>,
    pub stop: Stop,
    pub gate: Gate,
    /// Tells the requests under way to give up.
    pub cancel: Notify,
    save_streams: Option<SaveStreams>,
    random: RefCell<SmallRng>,
    room: RefCell<String>,
    outbox: RefCell<Vec<Record>>,
    messages: Sender<Message>,
    progress: Arc<Progress>,
    active: Cell<u32>,
    panicked: Cell<bool>,
    idle: Notify,
}

/// Counts a task as under way, also if it panics: nobody may wait for it for ever.
struct Active(Rc<Worker>);

impl Drop for Active {
    fn drop(&mut self) {
        let worker = &self.0;
        if std::thread::panicking() {
            worker.panicked.set(true);
            worker.stop.at_once();
        }
        worker.active.set(worker.active.get() - 1);
        if worker.active.get() == 0 {
            worker.idle.notify_waiters();
        }
    }
}

/// Runs a worker until no more stages come. For a thread of its own.
pub(crate) fn run_worker(
    parts: WorkerParts,
    mut stages: mpsc::UnboundedReceiver<Assignment>,
) -> io::Result<()> {
    set_timer_slack(1);
    let realtime = parts.realtime && request_realtime().is_ok();
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let result = runtime.block_on(async move {
        let worker = Rc::new(Worker::new(parts)?);
        tokio::task::spawn_local(flush_often(worker.clone()));
        while let Some(stage) = stages.recv().await {
            let shelf = worker.prepare(&stage.job).await;
            // A conductor that is gone needs no answers.
            let _ = stage.ready.send(());
            let Ok(start) = stage.go.await else { break };
            let cpu_before = thread_cpu_now();
            run_load(&worker, &stage.job, shelf, start).await;
            worker.flush();
            if worker.panicked.get() {
                return Err(io::Error::other("a request panicked"));
            }
            let steps = worker.lanes.iter().map(|lane| lane.connector.wall_steps());
            let wall_steps = steps.max().unwrap_or_default();
            let _ = stage.done.send(Done { cpu: thread_cpu_now() - cpu_before, wall_steps, realtime });
        }
        Ok(())
    });
    // A resolver that still waits for its server is not waited for.
    runtime.shutdown_background();
    result
}

async fn flush_often(worker: Rc<Worker>) {
    loop {
        worker.alarm.until(mono_now() + FLUSH_EVERY).await;
        worker.flush();
    }
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    record: Record,
    request: Request,
    /// The conversation that it is the next turn of.
    session: Option<Box<Session>>,
}

impl Prepared {
    /// Sets when the load shape wants it to start, if that was not known when it was made.
    pub(crate) fn at(mut self, scheduled: Nanos) -> Self {
        self.record.phases.scheduled = scheduled;
        self
    }

    /// When the load shape wants it to start.
    pub(crate) fn due(&self) -> Nanos {
        self.record.phases.scheduled
    }
}

impl Worker {
    fn new(parts: WorkerParts) -> io::Result<Self> {
        Ok(Self {
            index: parts.index,
            count: parts.count,
            lanes: (parts.make_lanes)(),
            alarm: Alarm::start()?,
            stop: parts.stop,
            gate: Gate::new(),
            cancel: Notify::new(),
            save_streams: parts.save_streams,
            random: RefCell::new(SmallRng::seed_from_u64(parts.seed ^ u64::from(parts.index))),
            room: RefCell::default(),
            outbox: RefCell::new(Vec::with_capacity(BATCH)),
            messages: parts.messages,
            progress: parts.progress,
            active: Cell::new(0),
            panicked: Cell::new(false),
            idle: Notify::new(),
        })
    }

    /// The pools that a user takes connections from, one for each endpoint: all share one, or each has its own.
    pub(crate) fn pools_for_user(&self) -> Pools {
        let of = |lane: &Lane| match lane.connections {
            Connections::PerUser => Pool::keeping(),
            _ => lane.pool.clone(),
        };
        self.lanes.iter().map(of).collect()
    }

    /// The users of a closed loop that are this worker's.
    pub(crate) fn users(&self, concurrency: u32) -> impl Iterator<Item = u32> + use<> {
        (self.index..concurrency).step_by(self.count as usize)
    }

    /// Makes the first requests of a closed loop before it starts, and opens its connections.
    async fn prepare(self: &Rc<Self>, job: &StageJob) -> Shelf {
        let Load::Closed { concurrency, ramp_up, .. } = job.order.load else { return Shelf::new(0, 0) };
        let mine = self.users(concurrency).count();
        if ramp_up.0 <= Nanos::from_millis(1_000) {
            self.connect(job, mine).await;
        }
        let shelf = Shelf::new(mine, concurrency);
        shelf.stock(self, job);
        shelf
    }

    /// Opens the connections of so many users, so that no handshake hides in their first answers. A long ramp opens them
    /// as it goes: servers close what is idle for seconds.
    async fn connect(self: &Rc<Self>, job: &StageJob, mine: usize) {
        let mut targets: BTreeMap<usize, &Target> = BTreeMap::new();
        for part in job.order.mix.parts() {
            targets.entry(part.lane).or_insert(&part.target);
        }
        let each = mine.div_ceil(targets.len().max(1));
        for (at, target) in targets {
            let lane = &self.lanes[at];
            if lane.connections != Connections::Reuse {
                continue;
            }
            let missing = match lane.connector.http() {
                HttpVersion::H1 => each.saturating_sub(lane.pool.idle()),
                HttpVersion::H2 => {
                    let streams = lane.connector.streams_per_connection().max(1) as usize;
                    each.div_ceil(streams).saturating_sub(lane.pool.shared())
                }
            };
            tokio::select! {
                () = self.open(at, target, missing) => {}
                () = job.ending() => return,
            }
        }
    }

    /// Opens connections, some at a time. A failure shows itself, with its reason, at the request that needs the
    /// connection.
    async fn open(self: &Rc<Self>, lane: usize, target: &Target, count: usize) {
        let mut opening = JoinSet::new();
        for _ in 0..count {
            if opening.len() == OPENING && !matches!(opening.join_next().await, Some(Ok(true))) {
                return;
            }
            let (worker, target) = (self.clone(), target.clone());
            opening.spawn_local(async move {
                let lane = &worker.lanes[lane];
                open(&lane.connector, &lane.pool, &target).await.is_ok()
            });
        }
        while let Some(Ok(true)) = opening.join_next().await {}
    }

    /// Makes request number `number` of a stage, which takes longer the longer its prompt is.
    pub(crate) fn make(&self, job: &StageJob, number: u64, scheduled: Nanos) -> Prepared {
        let part = job.order.mix.of(number);
        if let Some(session) = part.maker.session(number) {
            return self.make_turn(job, Box::new(session), scheduled);
        }
        let record = self.blank(job, number, scheduled);
        let dialect = &self.lanes[part.lane].dialect;
        let room = &mut self.room.borrow_mut();
        let request = part.maker.make(dialect, number, record.id, &record.trace, room);
        Prepared { record, request, session: None }
    }

    /// Makes the next turn of a conversation.
    pub(crate) fn make_turn(&self, job: &StageJob, mut session: Box<Session>, scheduled: Nanos) -> Prepared {
        let part = job.order.mix.of(session.number);
        let mut record = self.blank(job, session.number, scheduled);
        record.session = Some(session.number);
        record.turn = Some(session.turn + 1);
        let dialect = &self.lanes[part.lane].dialect;
        let room = &mut self.room.borrow_mut();
        let request = part.maker.make_turn(dialect, &mut session, record.id, &record.trace, room);
        Prepared { record, request, session: Some(session) }
    }

    fn blank(&self, job: &StageJob, number: u64, scheduled: Nanos) -> Record {
        let part = job.order.mix.of(number);
        let mut record = blank(scheduled, &mut *self.random.borrow_mut());
        record.stage = part.stage;
        record.workload = part.workload;
        record.worker = self.index;
        record.seq = number;
        record.warmup = job.order.warmup;
        record
    }

    /// Sends a request that is ready, and those of its conversation's other turns. Returns when the last answer ended;
    /// nothing if the budget does not hold it, which ends the run.
    pub(crate) async fn send(&self, job: &StageJob, pools: &Pools, prepared: Prepared) -> Option<Ended> {
        let (mut ended, mut session) = self.send_one(job, pools, prepared).await?;
        while let Some(under_way) = session {
            let Some(turn) = next_turn(self, job, ended, under_way).await else { break };
            (ended, session) = self.send_one(job, pools, turn).await?;
        }
        Some(ended)
    }

    /// Sends one request and keeps its record; the conversation, if it goes on after the answer.
    async fn send_one(
        &self,
        job: &StageJob,
        pools: &Pools,
        prepared: Prepared,
    ) -> Option<(Ended, Option<Box<Session>>)> {
        let Prepared { mut record, request, session } = prepared;
        let part = job.order.mix.of(record.seq);
        let account = job.order.account.as_deref();
        let reserve = match account {
            Some(account) => {
                let Some(reserve) = account.reserve(request.body.len() as u64, part.maker.max_tokens())
                else {
                    self.refuse(account);
                    return None;
                };
                Some(reserve)
            }
            None => None,
        };
        job.entered();
        self.progress.started.fetch_add(1, Ordering::Relaxed);
        let cancelled = std::pin::pin!(self.cancel.notified());
        let counter = part.maker.prompts().counter();
        let keep = match (self.save_streams.is_some(), session.is_some() || counter.is_some()) {
            (true, true) => Keep::Text,
            (true, false) => Keep::Bytes,
            (false, true) => Keep::Answer,
            (false, false) => Keep::Nothing,
        };
        let (lane, pool) = (&self.lanes[part.lane], &pools[part.lane]);
        let mut extras = attempt(lane, &part.target, pool, &request, cancelled, keep, &mut record).await;
        job.left();
        if let (Some(account), Some(reserve)) = (account, reserve) {
            account.book(reserve, &record);
        }
        let (text, reasoning) = (std::mem::take(&mut extras.text), std::mem::take(&mut extras.reasoning));
        if self.save_streams.is_some_and(|which| which.wants(&record)) {
            self.tell(Message::Stream(Box::new(Single::new(record.clone(), extras))));
        }
        let ended = Ended { at: record.finished, connected: record.phases.connected.is_some() };
        let is_ok = record.outcome() == Outcome::Ok;
        self.count_and_keep(record, counter, reasoning + &text);
        let goes_on = session.and_then(|mut session| (is_ok && session.answered(&text)).then_some(session));
        Some((ended, goes_on))
    }

    /// Keeps a record, by way of the tokenizer if the server did not count its tokens.
    fn count_and_keep(&self, record: Record, counter: Option<&Arc<Counter>>, text: String) {
        let counter = counter.filter(|_| Uncounted::wants(&record, &text, &self.progress));
        let Some(counter) = counter.cloned() else { return self.keep(record) };
        self.progress.ok.fetch_add(1, Ordering::Relaxed);
        let progress = self.progress.clone();
        self.tell(Message::Uncounted(Box::new(Uncounted { record, text, counter, progress })));
    }

    /// The budget holds no more: the run ends in order.
    fn refuse(&self, account: &Account) {
        if let Some(why) = account.refusal() {
            self.tell(Message::BudgetSpent(why));
        }
        self.stop.in_order();
    }

    fn tell(&self, news: Message) {
        // Nobody listens only when the whole program ends.
        let _ = self.messages.send(news);
    }

    fn keep(&self, record: Record) {
        let counter = if record.outcome() == Outcome::Ok { &self.progress.ok } else { &self.progress.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        self.progress.tokens.fetch_add(record.answer.usage.output.unwrap_or(0), Ordering::Relaxed);
        let mut outbox = self.outbox.borrow_mut();
        outbox.push(record);
        if outbox.len() >= BATCH {
            drop(outbox);
            self.flush();
        }
    }

    /// Hands over the records that wait.
    pub(crate) fn flush(&self) {
        if !self.outbox.borrow().is_empty() {
            let records = self.outbox.replace(Vec::with_capacity(BATCH));
            self.tell(Message::Records(records));
        }
    }

    /// Runs `task` beside others; [`Worker::all_done`] waits for it.
    pub(crate) fn spawn(self: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        self.active.set(self.active.get() + 1);
        let active = Active(self.clone());
        // Boxed: an async block that awaits what it has captured holds room for it twice, some kilobytes a stream.
        let task = Box::pin(task);
        tokio::task::spawn_local(async move {
            task.await;
            drop(active);
        });
    }

    /// Spawned tasks that are not done.
    pub(crate) fn active(&self) -> u32 {
        self.active.get()
    }

    /// Completes when no spawned task is left.
    pub(crate) async fn all_done(&self) {
        while self.active.get() > 0 {
            let idle = self.idle.notified();
            idle.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ttft_dialect::Dialect;
    use ttft_model::{Span, Timeouts};
    use ttft_wire::{ConnectOptions, Connector, Resolver, TlsOptions, tls_config};

    use super::*;

    fn lanes_to_nowhere() -> Vec<Lane> {
        let http = HttpVersion::H1;
        let tls = tls_config(&TlsOptions { insecure: true, ca: None, http }).unwrap();
        let options =
            ConnectOptions { tls, http, timeout: Duration::from_secs(1), streams_per_connection: 1 };
        let limit = Span(Nanos::from_millis(1_000));
        let dialect = Dialect::builtin("openai-chat").unwrap();
        let connector = Connector::new(options, Resolver::default(), 0, 1);
        let timeouts = Timeouts { connect: limit, first_token: limit, idle: limit, total: limit };
        let id_header = http::HeaderName::from_static("x-request-id");
        vec![Lane::new(connector, dialect, timeouts, Connections::Reuse, id_header)]
    }

    #[test]
    fn a_panic_is_waited_for_by_nobody_and_stops_the_run() {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
        runtime.block_on(async {
            let stop = Stop::default();
            let parts = WorkerParts {
                index: 0,
                count: 1,
                make_lanes: Box::new(lanes_to_nowhere),
                realtime: false,
                save_streams: None,
                seed: 0,
                messages: std::sync::mpsc::channel().0,
                progress: Arc::default(),
                stop: stop.clone(),
            };
            let worker = Rc::new(Worker::new(parts).unwrap());
            worker.spawn(async { panic!("as a test wants it") });
            worker.spawn(async {});
            worker.all_done().await;
            assert!(worker.panicked.get() && stop.is_now() && worker.active() == 0);
        });
    }
}
