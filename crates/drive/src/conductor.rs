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

use http::HeaderName;
use tokio::sync::{mpsc, oneshot};
use ttft_dialect::Dialect;
use ttft_kernel::mono_now;
use ttft_model::{Endpoint, Load, Nanos, Plan, Share, Stage, StageWindow, Timeouts};
use ttft_wire::{ConnectOptions, Connector, Resolver, Target};

use crate::Rate;
use crate::attempt::Lane;
use crate::budget::Account;
use crate::edge::{AtEdge, Edge, Side};
use crate::maker::RequestMaker;
use crate::message::{Message, Progress, Rest, Stop};
use crate::mix::{Mix, Part};
use crate::stage_job::{Order, StageJob};
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
    /// One for each endpoint of the plan, in its order.
    pub routes: Vec<Route>,
    /// All that its stages ask for, also those that are decided later.
    pub asks: Vec<Ask>,
    /// Worker threads.
    pub workers: u32,
    /// Told of the edges of the warm-up and of each stage, if somebody wants to know.
    pub at_edge: Option<AtEdge>,
}

/// How an endpoint is reached.
#[derive(Clone)]
pub struct Route {
    /// How its answers are read.
    pub dialect: Arc<Dialect>,
    /// How connections are made.
    pub connect: ConnectOptions,
}

/// A workload asked of a model at an endpoint.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Number of the endpoint.
    pub endpoint: u32,
    /// The model's name, as sent.
    pub model: Option<String>,
    /// Number of the workload.
    pub workload: u32,
    /// Where such requests go; the path may name the model.
    pub target: Target,
    /// What makes them.
    pub maker: Arc<RequestMaker>,
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
        let job = current.as_ref().filter(|job| job.order.index == stage && !job.order.warmup);
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
        account: Account::of(&job.plan.budget).map(Arc::new),
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
    account: Option<Arc<Account>>,
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
        let crew = match self.hire() {
            Ok(crew) => crew,
            Err((crew, why)) => return self.broke(crew, Some(format!("a worker could not start: {why}"))),
        };
        let mut seen = Seen { realtime: true, wall_steps: 0 };
        let mut index = 0;
        while let Some(stage) = self.next(index) {
            let warm_up = (index == 0 && self.job.plan.warmup > 0).then(|| self.warm_up(&stage));
            let jobs = warm_up.into_iter().chain([self.stage_job(index, &stage)]).collect();
            let jobs: Vec<StageJob> = match jobs {
                Ok(jobs) => jobs,
                Err(why) => return self.broke(crew, Some(why)),
            };
            if index > 0 {
                self.settle(index);
            }
            for job in jobs {
                if self.stop.is_ending() {
                    break;
                }
                if self.play(&crew, job, &stage, &mut seen).is_none() {
                    return self.broke(crew, None);
                }
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

    /// Lets the server come to rest before the stage of that number.
    fn settle(&self, next: u32) {
        let until = mono_now() + self.job.plan.settle.0;
        if self.job.plan.settle.0 > Nanos::ZERO && !self.stop.is_ending() {
            self.tell(Message::Settling { next, until });
        }
        while !self.stop.is_ending() {
            let left = until - mono_now();
            if left <= Nanos::ZERO {
                break;
            }
            std::thread::sleep(left.to_std().min(LOOK));
        }
    }

    /// The run ends with an error: the one that is given, or that of the worker that is gone. The others end too: by the
    /// stop if they run, by having nobody who assigns if they wait.
    fn broke(&self, crew: Crew, why: Option<String>) {
        self.stop.at_once();
        drop(crew.assign);
        let ends: Vec<_> = crew.threads.into_iter().map(JoinHandle::join).collect();
        let of_worker = ends.into_iter().find_map(|end| match end {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("it panicked".to_owned()),
        });
        let of_worker = of_worker.unwrap_or_else(|| "it ended too early".to_owned());
        self.tell(Message::Failed(why.unwrap_or(format!("a worker could not go on: {of_worker}"))));
    }

    fn at_edge(&self, job: &StageJob, side: Side) {
        let stage = (!job.order.warmup).then_some(job.order.index);
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

    /// The parts of a stage with their weights; an error names what nobody made ready.
    fn parts(&self, index: u32, stage: &Stage) -> Result<Vec<(Part, f64)>, String> {
        let plan = &self.job.plan;
        let endpoint = plan.endpoint_number(stage);
        let model = plan.model_of(stage);
        let part = |share: &Share| {
            let wanted = plan.workload(&share.workload).map(|(number, _)| number);
            let ask = self.job.asks.iter().find(|ask| {
                ask.endpoint == endpoint && ask.model.as_deref() == model && Some(ask.workload) == wanted
            });
            let Some(ask) = ask else {
                let (stage, workload) = (&stage.name, &share.workload);
                return Err(format!("stage {stage} asks for workload {workload}, which was not made ready"));
            };
            let (lane, target) = (endpoint as usize, ask.target.clone());
            let maker = ask.maker.clone();
            Ok((Part { lane, target, workload: ask.workload, stage: index, maker }, share.weight))
        };
        stage.mix.iter().map(part).collect()
    }

    /// Few requests of all that the plan's stages ask for, or that the first one does where they are decided later. They
    /// share no prefix with those that count.
    fn warm_up(&self, first: &Stage) -> Result<StageJob, String> {
        let plan = &self.job.plan;
        let users = match first.load {
            Load::Closed { concurrency, .. } => concurrency,
            Load::Open { .. } | Load::Trace { .. } => OPEN_WARM_UP_USERS,
        };
        let stages = if plan.stages.is_empty() { std::slice::from_ref(first) } else { &plan.stages };
        let mut parts: Vec<Part> = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            for (part, _) in self.parts(index as u32, stage)? {
                let is_known = |known: &Part| Arc::ptr_eq(&known.maker, &part.maker);
                if !parts.iter().any(is_known) {
                    parts.push(part);
                }
            }
        }
        let requests = u64::from(plan.warmup).max(parts.len() as u64);
        for part in &mut parts {
            part.maker = Arc::new(part.maker.for_part(WARM_UP));
        }
        Ok(StageJob::new(Order {
            index: 0,
            warmup: true,
            load: Load::closed(users.clamp(1, requests as u32)),
            rate: None,
            mix: Mix::in_turn(parts),
            requests: Some(requests),
            duration: None,
            drain: plan.drain.0,
            seed: plan.seed,
            account: self.account.clone(),
            run: self.stop.clone(),
        }))
    }

    fn stage_job(&self, index: u32, stage: &Stage) -> Result<StageJob, String> {
        let plan = &self.job.plan;
        let mut parts = self.parts(index, stage)?;
        for (part, _) in &mut parts {
            part.maker = Arc::new(part.maker.for_part(u64::from(index)));
        }
        let seed = plan.seed.wrapping_add(u64::from(index));
        Ok(StageJob::new(Order {
            index,
            warmup: false,
            load: stage.load.clone(),
            rate: Rate::of(&stage.load, &stage.stop),
            mix: Mix::weighted(parts, seed),
            requests: stage.stop.requests,
            duration: stage.stop.duration.map(|span| span.0),
            drain: plan.drain.0,
            seed,
            account: self.account.clone(),
            run: self.stop.clone(),
        }))
    }

    /// How the endpoint of that number is reached.
    fn way(&self, number: usize) -> Way {
        let job = &self.job;
        let asked = job.asks.iter().find(|ask| ask.endpoint as usize == number);
        // An endpoint that nothing is asked of has no lane that is used.
        let none = HeaderName::from_static("x-request-id");
        Way {
            route: job.routes[number].clone(),
            endpoint: job.plan.endpoints[number].clone(),
            id_header: asked.map_or(none, |ask| ask.maker.id_header().clone()),
        }
    }

    /// All workers, or those that there are and why there are no more.
    fn hire(&self) -> Result<Crew, (Crew, std::io::Error)> {
        let job = &self.job;
        let mut crew = Crew { assign: Vec::new(), threads: Vec::new() };
        let count = job.workers.max(1);
        for index in 0..count {
            let (assign, stages) = mpsc::unbounded_channel();
            let ways: Vec<Way> = (0..job.routes.len()).map(|number| self.way(number)).collect();
            let timeouts = job.plan.timeouts;
            let parts = WorkerParts {
                index,
                count,
                make_lanes: Box::new(move || lanes(ways, timeouts, index, count)),
                realtime: job.plan.client.realtime,
                save_streams: job.plan.client.save_streams,
                seed: job.plan.seed,
                messages: self.messages.clone(),
                progress: self.progress.clone(),
                stop: self.stop.clone(),
            };
            match std::thread::Builder::new().spawn(move || run_worker(parts, stages)) {
                Ok(thread) => crew.threads.push(thread),
                Err(why) => return Err((crew, why)),
            }
            crew.assign.push(assign);
        }
        Ok(crew)
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
        self.tell(if job.order.warmup {
            Message::WarmUp { requests: job.requests }
        } else {
            let (stage, what) = (job.order.index, Box::new(stage.clone()));
            Message::StageBegan { stage, what, start, reached: start + reaches_after(&job.order) }
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
        if !job.order.warmup {
            self.tell(Message::StageEnded(window));
        }
        Some(())
    }
}

/// When a stage is at the load that was asked, after its start. Where the rate changes all the time, that is never before
/// the end of the change.
fn reaches_after(order: &Order) -> Nanos {
    match order.load {
        Load::Closed { ramp_up, .. } => ramp_up.0,
        Load::Open { .. } => order.rate.as_ref().map(Rate::changes_for).unwrap_or_default(),
        Load::Trace { .. } => Nanos::ZERO,
    }
}

/// What a worker needs to know of an endpoint.
struct Way {
    route: Route,
    endpoint: Endpoint,
    id_header: HeaderName,
}

/// A worker's lane to each endpoint. No two connections have the same number.
fn lanes(ways: Vec<Way>, timeouts: Timeouts, worker: u32, workers: u32) -> Vec<Lane> {
    let count = workers * ways.len() as u32;
    let lane = |(at, way): (usize, Way)| {
        let Way { route, endpoint, id_header } = way;
        let resolver = Resolver::new(&endpoint.resolve);
        let connector = Connector::new(route.connect, resolver, at as u32 * workers + worker, count);
        Lane::new(connector, route.dialect, timeouts, endpoint.connections, id_header)
    };
    ways.into_iter().enumerate().map(lane).collect()
}

fn window(job: &StageJob, start: Nanos, dones: &[Done]) -> StageWindow {
    // A stage that is stopped at once may be over before it starts.
    let end = mono_now().max(start);
    StageWindow {
        stage: job.order.index,
        start,
        reached: start + reaches_after(&job.order),
        dry: Some(job.dry().unwrap_or(end).clamp(start, end)),
        end: Some(end),
        worker_cpu_ns: dones.iter().map(|done| done.cpu.0).collect(),
        max_in_flight: job.max_in_flight(),
        unsent: job.unsent(),
        ended_early: job.ended_early().map(str::to_owned),
    }
}
