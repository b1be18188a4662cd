//! Starting and stopping a simulated engine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use mio::Waker;

use crate::listener::listen;
use crate::server::Server;
use crate::{Error, SimOptions};

/// What a simulated engine did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimStats {
    /// Connections taken.
    pub connections: u64,
    /// Generation requests, refused ones included.
    pub requests: u64,
    /// Answered to their end.
    pub ok: u64,
    /// Refused with an error.
    pub refused: u64,
    /// Left by their client.
    pub aborted: u64,
    /// Ended by a fault.
    pub faulty: u64,
    /// Tokens generated.
    pub tokens: u64,
}

/// A simulated engine that serves on a thread of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Sim {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<Result<SimStats, Error>>>,
}

impl Sim {
    /// Listens and serves on a new thread.
    pub fn start(options: SimOptions) -> Result<Self, Error> {
        let (server, addr, stop, waker) = prepare(options)?;
        let thread = std::thread::Builder::new()
            .name("sim".to_owned())
            .spawn(move || serve(server))
            .map_err(|source| Error::System { doing: "start a thread", source })?;
        Ok(Self { addr, stop, waker, thread: Some(thread) })
    }

    /// Listens and serves on this thread, until the process ends. `on_ready` is told the address.
    pub fn run_here(options: SimOptions, on_ready: impl FnOnce(SocketAddr)) -> Result<SimStats, Error> {
        let (server, addr, ..) = prepare(options)?;
        on_ready(addr);
        serve(server)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends all connections, waits until the truth log is written, and says what was done.
    pub fn stop(mut self) -> Result<SimStats, Error> {
        self.ring();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(Error::Panicked),
        }
    }

    fn ring(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // The server looks at the flag at its next event even if this fails.
        let _ = self.waker.wake();
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Prepared = (Server, SocketAddr, Arc<AtomicBool>, Arc<Waker>);

fn prepare(options: SimOptions) -> Result<Prepared, Error> {
    let failed = |source| Error::Listen { addr: options.listen, source };
    let listener = listen(options.listen).map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    ttft_kernel::raise_open_files();
    let stop = Arc::new(AtomicBool::new(false));
    let (server, waker) = Server::new(options, listener, stop.clone())?;
    Ok((server, addr, stop, waker))
}

fn serve(server: Server) -> Result<SimStats, Error> {
    ttft_kernel::set_timer_slack(1);
    if let Some(cpu) = server.options.cpu {
        ttft_kernel::pin_to_cpu(cpu)
            .map_err(|source| Error::System { doing: "stay on that core", source })?;
    }
    server.run()
}
