//! The conductor: starts the workers, gives them one stage after another, and tells what happened.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use ttft_dialect::Dialect;
use ttft_kernel::mono_now;
use ttft_model::{Load, Nanos, Plan, Resolve, Stage, StageWindow, Timeouts};
use ttft_wire::{ConnectOptions, Connector, Resolver, Target};

use crate::attempt::Lane;
use crate::maker::RequestMaker;
use crate::message::{Message, Progress, Stop};
use crate::stage_job::StageJob;
use crate::worker::{Assignment, Done, WorkerParts, run_worker};

/// Users of a warm-up whose stage is an open loop.
const OPEN_WARM_UP_USERS: u32 = 4;

/// The warm-up as a part of the run: behind all stages.
const WARM_UP: u64 = u64::MAX;

/// How long after its announcement a stage starts: time for all workers to be waiting for it.
const LEAD: Nanos = Nanos::from_millis(1);

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
}

/// A run under way.
pub struct Running {
    /// Its news.
    pub messages: Receiver<Message>,
    /// Its counters.
    pub progress: Arc<Progress>,
    /// Stops it.
    pub stop: Stop,
    conductor: JoinHandle<()>,
}

impl Running {
    /// Waits for the conductor's thread, after [`Message::Ended`] came.
    pub fn join(self) {
        // A panic of a worker has been printed by its thread.
        let _ = self.conductor.join();
    }
}

/// Starts a run. It is over when [`Message::Ended`] or [`Message::Failed`] comes.
pub fn start(job: Job, stop: Stop) -> Running {
    let (sender, messages) = channel();
    let progress = Arc::new(Progress::default());
    let (for_workers, own_stop) = (progress.clone(), stop.clone());
    let conductor = std::thread::spawn(move || conduct(&job, &sender, &for_workers, &own_stop));
    Running { messages, progress, stop, conductor }
}

struct Crew {
    assign: Vec<mpsc::UnboundedSender<Assignment>>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

fn conduct(job: &Job, messages: &Sender<Message>, progress: &Arc<Progress>, stop: &Stop) {
    let stages = stage_jobs(job);
    let crew = hire(job, messages, progress, stop);
    let mut realtime = true;
    let mut wall_steps = 0;
    for stage in stages {
        if stop.is_ending() {
            break;
        }
        progress.reset();
        let Some((window, dones)) = play(&crew, &Arc::new(stage), messages) else {
            // The others end too: by this if they run, by having nobody who assigns if they wait.
            stop.at_once();
            drop(crew.assign);
            let ends: Vec<_> = crew.threads.into_iter().map(JoinHandle::join).collect();
            let why = ends.into_iter().find_map(|end| match end {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("it panicked".to_owned()),
            });
            let why = why.unwrap_or_else(|| "it ended too early".to_owned());
            // Nobody listens only when the whole program ends.
            let _ = messages.send(Message::Failed(format!("a worker could not go on: {why}")));
            return;
        };
        realtime &= dones.iter().all(|done| done.realtime);
        wall_steps = dones.iter().map(|done| done.wall_steps).fold(wall_steps, u32::max);
        if let Some(window) = window {
            let _ = messages.send(Message::StageEnded(window));
        }
    }
    drop(crew.assign);
    for thread in crew.threads {
        let _ = thread.join();
    }
    let _ = messages.send(Message::Ended { interrupted: stop.is_ending(), wall_steps, realtime });
}

fn stage_jobs(job: &Job) -> Vec<StageJob> {
    let plan = &job.plan;
    // A plan is checked before it is played: its workloads are there.
    let number = |stage: &Stage| plan.workload(&stage.mix[0].workload).map_or(0, |(number, _)| number);
    let maker = |workload: u32| job.makers[workload as usize % job.makers.len()].clone();
    let warmup = plan.stages.first().filter(|_| plan.warmup > 0).map(|first| {
        let users = match first.load {
            Load::Closed { concurrency, .. } => concurrency,
            Load::Open { .. } | Load::Trace { .. } => OPEN_WARM_UP_USERS,
        };
        let concurrency = users.clamp(1, plan.warmup);
        let load = Load::closed(concurrency);
        let requests = Some(u64::from(plan.warmup));
        let workload = number(first);
        let maker = Arc::new(maker(workload).for_part(WARM_UP));
        StageJob::new(0, workload, true, load, maker, requests, None, plan.drain.0, plan.seed)
    });
    let stages = plan.stages.iter().enumerate().map(|(i, stage)| {
        let duration = stage.stop.duration.map(|span| span.0);
        StageJob::new(
            i as u32,
            number(stage),
            false,
            stage.load.clone(),
            Arc::new(maker(number(stage)).for_part(i as u64)),
            stage.stop.requests,
            duration,
            plan.drain.0,
            plan.seed.wrapping_add(i as u64),
        )
    });
    warmup.into_iter().chain(stages).collect()
}

fn hire(job: &Job, messages: &Sender<Message>, progress: &Arc<Progress>, stop: &Stop) -> Crew {
    let mut crew = Crew { assign: Vec::new(), threads: Vec::new() };
    let count = job.workers.max(1);
    for index in 0..count {
        let (assign, stages) = mpsc::unbounded_channel();
        let (connect, target) = (job.connect.clone(), job.target.clone());
        let (dialect, timeouts): (_, Timeouts) = (job.dialect.clone(), job.plan.timeouts);
        let resolve: Vec<Resolve> = job.plan.endpoint().resolve.clone();
        let parts = WorkerParts {
            index,
            count,
            make_lane: Box::new(move || {
                let connector = Connector::new(connect, Resolver::new(&resolve), index, count);
                Lane { connector, target, dialect, timeouts }
            }),
            connections: job.plan.endpoint().connections,
            streams_per_connection: job.plan.endpoint().streams_per_connection,
            realtime: job.plan.client.realtime,
            save_streams: job.plan.client.save_streams,
            seed: job.plan.seed,
            messages: messages.clone(),
            progress: progress.clone(),
            stop: stop.clone(),
        };
        crew.threads.push(std::thread::spawn(move || run_worker(parts, stages)));
        crew.assign.push(assign);
    }
    crew
}

/// Plays one stage; `None` when a worker is gone.
fn play(
    crew: &Crew,
    job: &Arc<StageJob>,
    messages: &Sender<Message>,
) -> Option<(Option<StageWindow>, Vec<Done>)> {
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
    let start = mono_now() + LEAD;
    let news = if job.warmup {
        Message::WarmUp { requests: job.requests }
    } else {
        Message::StageBegan { stage: job.index, start }
    };
    let _ = messages.send(news);
    let mut playing = Vec::new();
    for (go, is_done) in going {
        go.send(start).ok()?;
        playing.push(is_done);
    }
    let dones: Option<Vec<Done>> = playing.into_iter().map(|is_done| is_done.blocking_recv().ok()).collect();
    let dones = dones?;
    let window = (!job.warmup).then(|| window(job, start, &dones));
    Some((window, dones))
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
    }
}
