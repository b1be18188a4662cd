//! The conductor: starts the workers, gives them one stage after another, and tells what happened.
//!
//! The stages are those of the plan, in its order ([`start`]); after them may come others that are decided while the
//! run goes on ([`start_directed`]): whoever listens hears [`Message::StageEnded`], and gives the [`Director`] the next
//! stage, or drops it, which ends the run. A stage may be ended before its end by [`Running::end_stage`]. All records of
//! a stage are told before its [`Message::StageEnded`].

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use ttft_dialect::Dialect;
use ttft_kernel::mono_now;
use ttft_model::{Load, Nanos, Plan, Resolve, Stage, StageWindow, Timeouts};
use ttft_wire::{ConnectOptions, Connector, Resolver, Target};

use crate::attempt::Lane;
use crate::edge::{AtEdge, Edge, Side};
use crate::maker::RequestMaker;
use crate::message::{Message, Progress, Rest, Stop};
use crate::stage_job::StageJob;
use crate::worker::{Assignment, Done, WorkerParts, run_worker};

/// Users of a warm-up whose stage is an open loop.
const OPEN_WARM_UP_USERS: u32 = 4;

/// The warm-up as a part of the run: behind all stages.
const WARM_UP: u64 = u64::MAX;

/// How long after its announcement a stage starts: time for all workers to be waiting for it.
const LEAD: Nanos = Nanos::from_millis(1);

/// How often a conductor that waits for its next stage looks whether the run is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Everything that a run needs beside its plan.
pub struct Job {
    /// The plan.
    pub plan: Plan,
    /// The endpoint, parsed.
    pub target: Target,
    /// The dialect.
    pub dialect: Arc<Dialect>,
    /// One for each workload of the plan.
    pub makers: Vec<Arc<RequestMaker>>,
    /// How connections are made.
    pub connect: ConnectOptions,
    /// Worker threads.
    pub workers: u32,
    /// Told of the edges of the warm-up and of each stage, if somebody wants to know.
    pub at_edge: Option<AtEdge>,
}

/// A run under way.
pub struct Running {
    /// Its news.
    pub messages: Receiver<Message>,
    /// Its counters.
    pub progress: Arc<Progress>,
    /// Stops it.
    pub stop: Stop,
    current: Current,
    conductor: JoinHandle<()>,
}

impl Running {
    /// Ends a stage before its end, for a reason that its window will tell; false if that stage is not under way. For
    /// a run as a whole there is [`Stop`].
    pub fn end_stage(&self, stage: u32, rest: Rest, why: String) -> bool {
        let current = self.current.get();
        let job = current.as_ref().filter(|job| job.index == stage && !job.warmup);
        job.inspect(|job| job.end(rest, why)).is_some()
    }

    /// Waits for the conductor's thread, after [`Message::Ended`] came.
    pub fn join(self) {
        // A panic of a worker has been printed by its thread.
        let _ = self.conductor.join();
    }
}

/// Gives stages to a run under way. The run goes on until it is dropped.
#[derive(Debug)]
pub struct Director(Sender<Stage>);

impl Director {
    /// Plays this stage when all before it are over. It must be of the plan's endpoints and workloads. False when the
    /// run is over.
    pub fn play(&self, stage: Stage) -> bool {
        self.0.send(stage).is_ok()
    }
}

/// The stage under way.
#[derive(Debug, Clone, Default)]
struct Current(Arc<Mutex<Option<Arc<StageJob>>>>);

impl Current {
    fn get(&self) -> MutexGuard<'_, Option<Arc<StageJob>>> {
        // What it holds is replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a run of the plan's stages. It is over when [`Message::Ended`] or [`Message::Failed`] comes.
pub fn start(job: Job, stop: Stop) -> Running {
    // Nobody gives it more.
    start_directed(job, stop).0
}

/// Starts a run of the plan's stages, if it has any, and of those that come after them.
pub fn start_directed(job: Job, stop: Stop) -> (Running, Director) {
    let (sender, messages) = channel();
    let (director, more) = channel();
    let (progress, current) = (Arc::new(Progress::default()), Current::default());
    let conductor = Conductor {
        more,
        messages: sender,
        progress: progress.clone(),
        current: current.clone(),
        stop: stop.clone(),
        job,
    };
    let conductor = std::thread::spawn(move || conductor.conduct());
    (Running { messages, progress, stop, current, conductor }, Director(director))
}

struct Conductor {
    job: Job,
    /// What is played after the plan's stages.
    more: Receiver<Stage>,
    messages: Sender<Message>,
    progress: Arc<Progress>,
    current: Current,
    stop: Stop,
}

struct Crew {
    assign: Vec<mpsc::UnboundedSender<Assignment>>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

/// What is known of the workers at the end.
struct Seen {
    realtime: bool,
    wall_steps: u32,
}

impl Conductor {
    fn conduct(self) {
        let crew = self.hire();
        let mut seen = Seen { realtime: true, wall_steps: 0 };
        let mut index = 0;
        while let Some(stage) = self.next(index) {
            if index == 0
                && self.job.plan.warmup > 0
                && self.play(&crew, self.warm_up(&stage), &stage, &mut seen).is_none()
            {
                return self.broke(crew);
            }
            if self.stop.is_ending() {
                break;
            }
            if self.play(&crew, self.stage_job(index, &stage), &stage, &mut seen).is_none() {
                return self.broke(crew);
            }
            index += 1;
        }
        drop(crew.assign);
        for thread in crew.threads {
            let _ = thread.join();
        }
        let interrupted = self.stop.is_ending();
        let Seen { realtime, wall_steps } = seen;
        self.tell(Message::Ended { interrupted, wall_steps, realtime });
    }

    /// The stage of that number: the plan's, or what the director says, who may take any time over it.
    fn next(&self, index: u32) -> Option<Stage> {
        if let Some(planned) = self.job.plan.stages.get(index as usize) {
            return (!self.stop.is_ending()).then(|| planned.clone());
        }
        while !self.stop.is_ending() {
            match self.more.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                told => return told.ok(),
            }
        }
        None
    }

    /// The others end too: by the stop if they run, by having nobody who assigns if they wait.
    fn broke(&self, crew: Crew) {
        self.stop.at_once();
        drop(crew.assign);
        let ends: Vec<_> = crew.threads.into_iter().map(JoinHandle::join).collect();
        let why = ends.into_iter().find_map(|end| match end {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("it panicked".to_owned()),
        });
        let why = why.unwrap_or_else(|| "it ended too early".to_owned());
        self.tell(Message::Failed(format!("a worker could not go on: {why}")));
    }

    fn at_edge(&self, job: &StageJob, side: Side) {
        let stage = (!job.warmup).then_some(job.index);
        let ok = self.progress.ok.load(Ordering::Relaxed);
        // Who gives up at once waits for nobody.
        if let Some(at_edge) = self.job.at_edge.as_ref().filter(|_| !self.stop.is_now()) {
            at_edge(Edge { stage, side, ok });
        }
    }

    fn tell(&self, news: Message) {
        // Nobody listens only when the whole program ends.
        let _ = self.messages.send(news);
    }

    /// The workload of a stage. A plan is checked before it is played: its workloads are there.
    fn workload(&self, stage: &Stage) -> u32 {
        self.job.plan.workload(&stage.mix[0].workload).map_or(0, |(number, _)| number)
    }

    fn maker(&self, workload: u32, part: u64) -> Arc<RequestMaker> {
        let makers = &self.job.makers;
        Arc::new(makers[workload as usize % makers.len()].for_part(part))
    }

    fn warm_up(&self, first: &Stage) -> StageJob {
        let plan = &self.job.plan;
        let users = match first.load {
            Load::Closed { concurrency, .. } => concurrency,
            Load::Open { .. } | Load::Trace { .. } => OPEN_WARM_UP_USERS,
        };
        let load = Load::closed(users.clamp(1, plan.warmup));
        let requests = Some(u64::from(plan.warmup));
        let workload = self.workload(first);
        let maker = self.maker(workload, WARM_UP);
        let stop = self.stop.clone();
        StageJob::new(0, workload, true, load, maker, requests, None, plan.drain.0, plan.seed, stop)
    }

    fn stage_job(&self, index: u32, stage: &Stage) -> StageJob {
        let plan = &self.job.plan;
        let duration = stage.stop.duration.map(|span| span.0);
        let workload = self.workload(stage);
        StageJob::new(
            index,
            workload,
            false,
            stage.load.clone(),
            self.maker(workload, u64::from(index)),
            stage.stop.requests,
            duration,
            plan.drain.0,
            plan.seed.wrapping_add(u64::from(index)),
            self.stop.clone(),
        )
    }

    fn hire(&self) -> Crew {
        let job = &self.job;
        let mut crew = Crew { assign: Vec::new(), threads: Vec::new() };
        let count = job.workers.max(1);
        for index in 0..count {
            let (assign, stages) = mpsc::unbounded_channel();
            let (connect, target) = (job.connect.clone(), job.target.clone());
            let (dialect, timeouts): (_, Timeouts) = (job.dialect.clone(), job.plan.timeouts);
            let id_header = job.makers[0].id_header().clone();
            let resolve: Vec<Resolve> = job.plan.endpoint().resolve.clone();
            let parts = WorkerParts {
                index,
                count,
                make_lane: Box::new(move || {
                    let connector = Connector::new(connect, Resolver::new(&resolve), index, count);
                    Lane { connector, target, dialect, timeouts, id_header }
                }),
                connections: job.plan.endpoint().connections,
                streams_per_connection: job.plan.endpoint().streams_per_connection,
                realtime: job.plan.client.realtime,
                save_streams: job.plan.client.save_streams,
                seed: job.plan.seed,
                messages: self.messages.clone(),
                progress: self.progress.clone(),
                stop: self.stop.clone(),
            };
            crew.threads.push(std::thread::spawn(move || run_worker(parts, stages)));
            crew.assign.push(assign);
        }
        crew
    }

    /// Plays one stage; `None` when a worker is gone.
    fn play(&self, crew: &Crew, job: StageJob, stage: &Stage, seen: &mut Seen) -> Option<()> {
        self.progress.reset();
        let job = Arc::new(job);
        let mut waiting = Vec::new();
        for assign in &crew.assign {
            let (ready, is_ready) = oneshot::channel();
            let (go, told) = oneshot::channel();
            let (done, is_done) = oneshot::channel();
            assign.send(Assignment { job: job.clone(), ready, go: told, done }).ok()?;
            waiting.push((is_ready, go, is_done));
        }
        let mut going = Vec::new();
        for (is_ready, go, is_done) in waiting {
            is_ready.blocking_recv().ok()?;
            going.push((go, is_done));
        }
        self.at_edge(&job, Side::Begin);
        let start = mono_now() + LEAD;
        *self.current.get() = Some(job.clone());
        self.tell(if job.warmup {
            Message::WarmUp { requests: job.requests }
        } else {
            Message::StageBegan { stage: job.index, what: Box::new(stage.clone()), start }
        });
        let mut playing = Vec::new();
        for (go, is_done) in going {
            go.send(start).ok()?;
            playing.push(is_done);
        }
        let dones: Option<Vec<Done>> =
            playing.into_iter().map(|is_done| is_done.blocking_recv().ok()).collect();
        let dones = dones?;
        *self.current.get() = None;
        seen.realtime &= dones.iter().all(|done| done.realtime);
        seen.wall_steps = dones.iter().map(|done| done.wall_steps).fold(seen.wall_steps, u32::max);
        let window = window(&job, start, &dones);
        self.at_edge(&job, Side::End);
        if !job.warmup {
            self.tell(Message::StageEnded(window));
        }
        Some(())
    }
}

fn window(job: &StageJob, start: Nanos, dones: &[Done]) -> StageWindow {
    // A stage that is stopped at once may be over before it starts.
    let end = mono_now().max(start);
    let ramp = match job.load {
        Load::Closed { ramp_up, .. } => ramp_up.0,
        Load::Open { .. } | Load::Trace { .. } => Nanos::ZERO,
    };
    StageWindow {
        stage: job.index,
        start,
        reached: start + ramp,
        dry: Some(job.dry().unwrap_or(end).clamp(start, end)),
        end: Some(end),
        worker_cpu_ns: dones.iter().map(|done| done.cpu.0).collect(),
        max_in_flight: job.max_in_flight(),
        unsent: job.unsent(),
        ended_early: job.ended_early().map(str::to_owned),
    }
}
