//! The event loop: one thread that owns all sockets, asks the engine what is due, and writes each token at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Waker};
use slab::Slab;
use ttft_kernel::{WallOffset, mono_now};
use ttft_model::Nanos;

use crate::alarm::Alarm;
use crate::connection::{Connection, Read};
use crate::engine::{Engine, JobId, Token};
use crate::errand::{Chore, Errand};
use crate::exchange::{After, Ending};
use crate::truth::{Truth, TruthLog};
use crate::{Error, SimOptions, SimStats};

const LISTENER: mio::Token = mio::Token(usize::MAX);
const ALARM: mio::Token = mio::Token(usize::MAX - 1);
const WAKER: mio::Token = mio::Token(usize::MAX - 2);

/// The server. [`Server::run`] is its thread.
pub(crate) struct Server {
    poll: Poll,
    listener: TcpListener,
    alarm: Alarm,
    stop: Arc<AtomicBool>,
    pub(crate) engine: Engine,
    pub(crate) options: SimOptions,
    pub(crate) connections: Slab<Connection>,
    errands: BinaryHeap<Reverse<Errand>>,
    /// Connections with new output that no token will flush.
    dirty: Vec<usize>,
    /// Connections whose input may hold a further request.
    ready: Vec<usize>,
    wall: WallOffset,
    truth: Option<TruthLog>,
    buffer: Vec<u8>,
    event: Vec<u8>,
    next_serial: u32,
    close_idle: Option<Nanos>,
    pub(crate) stats: SimStats,
    /// Wall clock of the second, for `created`.
    pub(crate) created: i64,
}

impl Server {
    pub(crate) fn new(
        options: SimOptions,
        listener: std::net::TcpListener,
        stop: Arc<AtomicBool>,
    ) -> Result<(Self, Arc<Waker>), Error> {
        let failed = |doing| move |source| Error::System { doing, source };
        let poll = Poll::new().map_err(failed("poll"))?;
        let mut listener = TcpListener::from_std(listener);
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)
            .map_err(failed("poll its listener"))?;
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(failed("make a timer"))?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(failed("make a waker"))?;
        let truth = options.truth.as_deref().map(TruthLog::create).transpose()?;
        let server = Self {
            poll,
            listener,
            alarm,
            stop,
            engine: Engine::new(&options.profile, options.seed),
            close_idle: options.faults.close_idle(),
            options,
            connections: Slab::new(),
            errands: BinaryHeap::new(),
            dirty: Vec::new(),
            ready: Vec::new(),
            wall: WallOffset::new(),
            truth,
            buffer: vec![0; 64 << 10],
            event: Vec::new(),
            next_serial: 0,
            stats: SimStats::default(),
            created: 0,
        };
        Ok((server, Arc::new(waker)))
    }

    /// Serves until told to stop.
    pub(crate) fn run(mut self) -> Result<SimStats, Error> {
        let failed = |source| Error::System { doing: "poll", source };
        let mut events = Events::with_capacity(1024);
        let mut tokens: Vec<Token> = Vec::new();
        let mut due: Option<Nanos> = None;
        while !self.stop.load(Ordering::Relaxed) {
            let timeout = self.alarm.timeout(due).map_err(failed)?;
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(failed(error)),
                _ => {}
            }
            self.created = ttft_kernel::real_now() / 1_000_000_000;
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    ALARM => self.alarm.rang(),
                    WAKER => {}
                    mio::Token(slot) => {
                        if event.is_writable() {
                            self.flush(slot);
                        }
                        if event.is_readable() || event.is_error() {
                            self.read(slot);
                        }
                    }
                }
            }
            let mut now = mono_now();
            self.run_errands(now);
            let next = loop {
                let next = self.engine.step(now, &mut tokens);
                for token in tokens.drain(..) {
                    self.token(token);
                }
                for slot in std::mem::take(&mut self.dirty) {
                    self.flush(slot);
                }
                if self.ready.is_empty() {
                    break next;
                }
                // Requests that had come before the last answer was over.
                for slot in std::mem::take(&mut self.ready) {
                    self.resume(slot);
                }
                now = mono_now();
            };
            let errand = self.errands.peek().map(|Reverse(errand)| errand.at);
            due = [next, errand].into_iter().flatten().min();
        }
        self.finish()
    }

    fn finish(mut self) -> Result<SimStats, Error> {
        for slot in self.connections.iter().map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.end_exchange(slot, "aborted");
        }
        let path = self.options.truth.clone();
        if let Some(truth) = self.truth.take() {
            truth.finish(path.as_deref().unwrap_or(Path::new("")))?;
        }
        Ok(self.stats)
    }

    fn accept(&mut self) {
        loop {
            let mut socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) =>
                {
                    continue;
                }
                Err(_) => {
                    let at = mono_now() + Nanos::from_millis(10);
                    self.errands.push(Reverse(Errand {
                        at,
                        slot: 0,
                        connection: 0,
                        serial: 0,
                        chore: Chore::Accept,
                    }));
                    return;
                }
            };
            let entry = self.connections.vacant_entry();
            let slot = entry.key();
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut socket, mio::Token(slot), interest).is_err() {
                continue;
            }
            self.stats.connections += 1;
            entry.insert(Connection::new(socket, self.stats.connections));
            self.watch_idle(slot);
        }
    }

    fn read(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        match connection.read(&mut self.buffer, &mut self.wall) {
            Read::Something => self.take_requests(slot),
            Read::Nothing => {}
            Read::End => self.close(slot, "aborted"),
        }
    }

    /// Goes on with a connection whose answer is over.
    fn resume(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if std::mem::take(&mut connection.paused)
            && connection.read(&mut self.buffer, &mut self.wall) == Read::End
        {
            return self.close(slot, "aborted");
        }
        self.take_requests(slot);
    }

    /// The name of a further job of that connection.
    pub(crate) fn next_job(&mut self, slot: usize) -> JobId {
        self.next_serial = self.next_serial.wrapping_add(1).max(1);
        self.stats.requests += 1;
        JobId { slot: slot as u32, serial: self.next_serial }
    }

    /// Has the connection's output written before the loop waits again.
    pub(crate) fn flush_soon(&mut self, slot: usize) {
        self.dirty.push(slot);
    }

    /// Holds the connection's output back.
    pub(crate) fn hold(&mut self, slot: usize, until: Nanos) {
        self.connections[slot].held_until = Some(until);
        self.add_errand(slot, until, Chore::Release);
    }

    /// Sends comments until the first token.
    pub(crate) fn comment_every(&mut self, slot: usize, every: Nanos) {
        self.add_errand(slot, mono_now() + every, Chore::Comment(every));
    }

    fn add_errand(&mut self, slot: usize, at: Nanos, chore: Chore) {
        let connection = &self.connections[slot];
        let serial = connection.exchange.as_ref().map_or(0, |exchange| exchange.job.serial);
        self.errands.push(Reverse(Errand { at, slot, connection: connection.number, serial, chore }));
    }

    fn watch_idle(&mut self, slot: usize) {
        if let Some(after) = self.close_idle {
            let now = mono_now();
            self.connections[slot].idle_since = Some(now);
            self.add_errand(slot, now + after, Chore::CloseIdle);
        }
    }

    fn run_errands(&mut self, now: Nanos) {
        while let Some(Reverse(errand)) =
            self.errands.peek().copied().filter(|Reverse(errand)| errand.at <= now)
        {
            self.errands.pop();
            if errand.chore == Chore::Accept {
                self.accept();
                continue;
            }
            let Some(connection) =
                self.connections.get_mut(errand.slot).filter(|c| c.number == errand.connection)
            else {
                continue;
            };
            match errand.chore {
                Chore::Release => {
                    if connection.held_until == Some(errand.at) {
                        connection.held_until = None;
                        self.flush(errand.slot);
                    }
                }
                Chore::Comment(every) => {
                    let Some(exchange) = connection.exchange.as_mut() else { continue };
                    if exchange.job.serial == errand.serial && exchange.is_silent() {
                        exchange.comment(&mut connection.output);
                        self.flush(errand.slot);
                        self.errands.push(Reverse(Errand { at: errand.at + every, ..errand }));
                    }
                }
                Chore::CloseIdle => {
                    let due = self
                        .close_idle
                        .is_some_and(|after| connection.idle_since.is_some_and(|since| since + after <= now));
                    if due {
                        self.close(errand.slot, "aborted");
                    }
                }
                Chore::Accept => {}
            }
        }
    }

    fn token(&mut self, token: Token) {
        let slot = token.job.slot as usize;
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(exchange) = connection.exchange.as_mut().filter(|e| e.job == token.job) else { return };
        self.stats.tokens += 1;
        let engine = &self.engine;
        let after =
            exchange.token(&mut connection.output, &mut self.event, token, || engine.timings(token.job));
        match after {
            After::Hold => {}
            After::Send => self.flush(slot),
            After::Stall(length) => {
                self.flush(slot);
                if self.connections.contains(slot) {
                    self.hold(slot, mono_now() + length);
                }
            }
            After::End(ending) => self.end(slot, ending),
        }
    }

    fn end(&mut self, slot: usize, ending: Ending) {
        self.flush(slot);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(exchange) = &connection.exchange else { return };
        match ending {
            Ending::Never => {}
            Ending::Whole | Ending::Error => {
                let close = !exchange.terms.keep_alive || exchange.misdeeds.close_after;
                connection.closing = close;
                self.end_exchange(slot, if ending == Ending::Whole { "ok" } else { "error_event" });
                if close {
                    self.close_when_flushed(slot);
                } else {
                    self.watch_idle(slot);
                    self.ready.push(slot);
                }
            }
            Ending::Cut => {
                connection.closing = true;
                self.end_exchange(slot, "cut");
                self.close_when_flushed(slot);
            }
            Ending::Reset => {
                // Closing with a linger time of zero resets the connection.
                let _ =
                    socket2::SockRef::from(&connection.socket).set_linger(Some(std::time::Duration::ZERO));
                self.close(slot, "reset");
            }
        }
    }

    /// Ends the request under way, if any, and tells the truth of it.
    fn end_exchange(&mut self, slot: usize, outcome: &'static str) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(mut exchange) = connection.exchange.take() else { return };
        let number = connection.number;
        let job = exchange.job;
        match outcome {
            "ok" => self.stats.ok += 1,
            "aborted" => self.stats.aborted += 1,
            _ => self.stats.faulty += 1,
        }
        if outcome != "ok" {
            self.engine.abort(job);
        }
        if let Some(truth) = &self.truth {
            let now = mono_now();
            if outcome != "aborted" {
                // Held back, it is written when the hold ends; this is the best that is known of it.
                exchange.stamp(connection.held_until.unwrap_or(now));
            }
            truth.put(exchange.truth(number, self.engine.timings(job), now, outcome));
        }
    }

    /// Tells the truth of a request that never came to the engine.
    pub(crate) fn refused(&mut self, truth: Truth) {
        self.stats.refused += 1;
        if let Some(log) = &self.truth {
            log.put(truth);
        }
    }

    /// Writes what there is; closes a connection that is done for.
    pub(crate) fn flush(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        match connection.flush() {
            Ok(()) => self.close_when_flushed(slot),
            Err(_) => self.close(slot, "aborted"),
        }
    }

    fn close_when_flushed(&mut self, slot: usize) {
        if self.connections.get(slot).is_some_and(|c| c.closing && c.is_flushed() && c.exchange.is_none()) {
            self.close(slot, "aborted");
        }
    }

    fn close(&mut self, slot: usize, outcome: &'static str) {
        self.end_exchange(slot, outcome);
        // Closing the socket takes it off the poll.
        drop(self.connections.try_remove(slot));
    }
}
