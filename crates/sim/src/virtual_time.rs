//! The engine in virtual time: load is played against it without a socket or a clock, thousands of times as fast.
//!
//! For tests of what is told about a run: what a search or a knee should find is known here, because a run of any
//! length costs next to nothing and the same seed gives the same run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ttft_model::Nanos;

use crate::Profile;
use crate::engine::{Ask, Engine, Finish, JobId, Token};
use crate::random::Random;

/// What each request asks for.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the answer.
    pub output: u32,
    /// Spread of the logarithm of both, drawn for each request; 0 makes all alike.
    pub sigma: f64,
}

/// One request, as its client would have seen it without a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trip {
    /// It arrived.
    pub started: Nanos,
    /// Its first token came.
    pub first: Nanos,
    /// Its last token came.
    pub last: Nanos,
    /// Tokens of its prompt.
    pub input: u32,
    /// Tokens of its answer.
    pub output: u32,
}

/// What came of one stage.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// The stage began.
    pub start: Nanos,
    /// All its users had begun.
    pub reached: Nanos,
    /// The first user found no more work, or the last request arrived.
    pub dry: Nanos,
    /// The last answer ended.
    pub end: Nanos,
    /// Its requests, by number.
    pub trips: Vec<Trip>,
    /// Time-weighted mean of the running and waiting sequences that the engine itself counted from `start` to `dry`.
    pub running: f64,
    /// See `running`.
    pub waiting: f64,
}

/// A simulated engine whose time passes as fast as it can be computed.
pub struct VirtualEngine {
    engine: Engine,
    random: Random,
    now: Nanos,
    serial: u32,
}

/// The load of a stage.
enum Load {
    /// Users that send again as soon as they have their answer, and begin evenly over this time.
    Closed(u32, Nanos),
    /// Arrivals of a Poisson process, so many a second.
    Poisson(f64),
}

/// A stage under way.
struct Stage {
    played: Played,
    /// Arrivals to come, the earliest first, with the request's number.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Requests not yet given to anybody.
    left: u32,
    /// Those that stopped arriving since nothing is left.
    dry: Option<Nanos>,
    /// Serial number of the stage's first request.
    serial: u32,
}

impl VirtualEngine {
    /// An engine at rest.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let random = Random::new(seed ^ 0x7669_7274);
        Self { engine: Engine::new(profile, seed), random, now: Nanos::ZERO, serial: 0 }
    }

    /// Users that begin evenly over `ramp` and each send their next request when the last answer has ended, until
    /// `requests` are sent.
    pub fn closed(&mut self, users: u32, ramp: Nanos, requests: u32, shape: Shape) -> Played {
        self.play(&Load::Closed(users.max(1), ramp), requests, shape)
    }

    /// Arrivals of a Poisson process of so many a second.
    pub fn poisson(&mut self, rate: f64, requests: u32, shape: Shape) -> Played {
        self.play(&Load::Poisson(rate), requests, shape)
    }

    fn play(&mut self, load: &Load, requests: u32, shape: Shape) -> Played {
        let mut stage = self.begin(load, requests);
        let (mut tokens, mut levels) = (Vec::new(), Levels::from(self.now));
        let closed = matches!(load, Load::Closed(..));
        loop {
            while let Some(&Reverse((at, number))) = stage.due.peek().filter(|due| due.0.0 <= self.now) {
                stage.due.pop();
                self.arrive(&mut stage, at, number, shape);
            }
            let due = self.engine.step(self.now, &mut tokens);
            for token in tokens.drain(..) {
                stage.take(&token, closed);
            }
            if stage.dry.is_none() {
                let metrics = self.engine.metrics();
                levels.are(self.now, metrics.running, metrics.waiting);
            }
            let next = stage.due.peek().map(|due| due.0.0);
            match [due, next].into_iter().flatten().min() {
                Some(next) => self.now = next.max(self.now),
                None => break,
            }
        }
        let mut played = stage.played;
        played.end = self.now;
        played.reached = match load {
            Load::Closed(_, ramp) => played.start + *ramp,
            Load::Poisson(_) => played.start,
        };
        played.dry = stage.dry.unwrap_or(self.now);
        (played.running, played.waiting) = levels.means();
        played
    }

    fn begin(&mut self, load: &Load, requests: u32) -> Stage {
        let start = self.now;
        let trips = vec![Trip::default(); requests as usize];
        let mut stage = Stage {
            played: Played { start, trips, ..Played::default() },
            due: BinaryHeap::new(),
            left: requests,
            dry: None,
            serial: self.serial,
        };
        match load {
            Load::Closed(users, ramp) => {
                let step = Nanos(ramp.0 / i64::from(*users));
                (0..i64::from(*users)).for_each(|user| stage.next(start + Nanos(step.0 * user)));
            }
            Load::Poisson(rate) => {
                let mut at = start;
                for _ in 0..requests {
                    stage.next(at);
                    // 1 − u keeps the logarithm finite.
                    at = at + Nanos((-(1.0 - self.random.unit()).ln() / rate * 1e9) as i64);
                }
                stage.dry = Some(at);
            }
        }
        stage
    }

    fn arrive(&mut self, stage: &mut Stage, at: Nanos, number: u32, shape: Shape) {
        let mut tokens =
            |mean: u32| (f64::from(mean) * self.random.factor(shape.sigma)).round().max(1.0) as u32;
        let (prompt, output) = (tokens(shape.prompt), tokens(shape.output));
        let trip = &mut stage.played.trips[number as usize];
        (trip.started, trip.input) = (at, prompt);
        let id = JobId { slot: number, serial: stage.serial + number };
        self.serial = self.serial.max(id.serial + 1);
        let ask = Ask { prompt, blocks: Arc::from([]), output, finish: Finish::Length };
        self.engine.submit(id, at, [ask]);
    }
}

impl Stage {
    /// Somebody would send one more request at that instant.
    fn next(&mut self, at: Nanos) {
        if self.left == 0 {
            self.dry.get_or_insert(at);
            return;
        }
        let number = self.played.trips.len() as u32 - self.left;
        self.left -= 1;
        self.due.push(Reverse((at, number)));
    }

    fn take(&mut self, token: &Token, closed: bool) {
        let trip = &mut self.played.trips[token.job.slot as usize];
        if token.number == 1 {
            trip.first = token.at;
        }
        (trip.last, trip.output) = (token.at, token.number);
        if closed && token.finish.is_some() {
            self.next(token.at);
        }
    }
}

/// Time-weighted means of the engine's gauges.
struct Levels {
    start: Nanos,
    since: Nanos,
    now: [f64; 2],
    sums: [f64; 2],
}

impl Levels {
    fn from(start: Nanos) -> Self {
        Self { start, since: start, now: [0.0; 2], sums: [0.0; 2] }
    }

    fn are(&mut self, at: Nanos, running: usize, waiting: usize) {
        let passed = (at - self.since).as_secs_f64();
        for (sum, level) in self.sums.iter_mut().zip(self.now) {
            *sum += level * passed;
        }
        (self.since, self.now) = (at, [running as f64, waiting as f64]);
    }

    fn means(&self) -> (f64, f64) {
        let length = (self.since - self.start).as_secs_f64();
        if length > 0.0 { (self.sums[0] / length, self.sums[1] / length) } else { (0.0, 0.0) }
    }
}
