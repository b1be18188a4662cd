//! Making a connection: name, TCP, TLS, each with its instant.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{Domain, Protocol, Socket, Type};
use tokio_rustls::TlsConnector;
use ttft_kernel::{
    Interest, WallOffset, enable_receive_stamps, enable_transmit_stamps, is_connected, limit_local_ports,
    mono_now, watch,
};
use ttft_model::{ErrorClass, HttpVersion, Nanos};

use crate::io::Io;
use crate::ports::Ports;
use crate::resolve::Resolver;
use crate::stamped::{StampedStream, Tap, Wall};
use crate::{Target, WireError};

/// How connections are made.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Settings of TLS, for `https`.
    pub tls: Arc<ClientConfig>,
    /// Protocol to speak.
    pub http: HttpVersion,
    /// For name, TCP and TLS together.
    pub timeout: Duration,
    /// Streams that may share an HTTP/2 connection.
    pub streams_per_connection: u32,
}

/// Makes the connections of one worker.
pub struct Connector {
    pub(crate) options: ConnectOptions,
    resolver: Resolver,
    wall: Wall,
    ports: Ports,
    next_id: Cell<u64>,
    id_step: u64,
}

/// When the parts of a connection were ready.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectPhases {
    pub dns: Option<Nanos>,
    pub tcp: Option<Nanos>,
    pub tls: Option<Nanos>,
}

/// A connection before HTTP is spoken on it.
pub(crate) struct Established {
    pub io: Io,
    pub tap: Rc<Tap>,
    pub id: u64,
    pub tls: bool,
    pub phases: ConnectPhases,
}

impl Connector {
    /// A connector for worker `worker` of `workers`, whose connections get numbers that no other worker uses.
    pub fn new(options: ConnectOptions, resolver: Resolver, worker: u32, workers: u32) -> Self {
        Self {
            options,
            resolver,
            wall: Rc::new(RefCell::new(WallOffset::new())),
            ports: Ports::of_system(),
            next_id: Cell::new(u64::from(worker)),
            id_step: u64::from(workers.max(1)),
        }
    }

    /// The protocol that its connections speak.
    pub fn http(&self) -> HttpVersion {
        self.options.http
    }

    /// Streams that may share one of its HTTP/2 connections.
    pub fn streams_per_connection(&self) -> u32 {
        self.options.streams_per_connection
    }

    /// Steps of the wall clock that this worker's sockets have seen.
    pub fn wall_steps(&self) -> u32 {
        self.wall.borrow().steps()
    }

    pub(crate) async fn connect(&self, target: &Target) -> Result<Established, WireError> {
        tokio::time::timeout(self.options.timeout, self.connect_unbounded(target)).await.unwrap_or_else(
            |_| {
                let waited = self.options.timeout.as_secs_f64();
                let message = format!("no connection to {} within {waited} s", target.peer());
                Err(WireError::new(ErrorClass::ConnectTimeout, message))
            },
        )
    }

    async fn connect_unbounded(&self, target: &Target) -> Result<Established, WireError> {
        let (addresses, dns_done) = self.resolver.lookup(target).await?;
        let mut phases = ConnectPhases { dns: dns_done, ..ConnectPhases::default() };
        let stream = self.connect_first(target, &addresses).await?;
        phases.tcp = Some(mono_now());
        let tap = stream.tap();
        let io = if target.tls {
            let io = self.encrypt(target, stream).await?;
            phases.tls = Some(mono_now());
            io
        } else {
            Io::Plain(stream)
        };
        let id = self.next_id.get();
        self.next_id.set(id + self.id_step);
        Ok(Established { io, tap, id, tls: target.tls, phases })
    }

    /// The first address that answers; each gets its share of the time.
    async fn connect_first(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
    ) -> Result<StampedStream, WireError> {
        let share = self.options.timeout / addresses.len().max(1) as u32;
        let mut failed = None;
        for (i, address) in addresses.iter().enumerate() {
            let attempt = connect_tcp(*address, self.ports.next_window());
            let connected = if i + 1 == addresses.len() {
                attempt.await
            } else {
                tokio::time::timeout(share, attempt)
                    .await
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            };
            match connected.and_then(|socket| self.stamp(socket)) {
                Ok(stream) => {
                    if i > 0 {
                        self.resolver.prefer(target, *address);
                    }
                    return Ok(stream);
                }
                Err(error) => failed = Some(WireError::connect(&target.peer(), &error)),
            }
        }
        Err(failed.unwrap_or_else(|| WireError::new(ErrorClass::Dns, "the name has no address")))
    }

    fn stamp(&self, socket: TcpStream) -> io::Result<StampedStream> {
        // On a shared connection they would be those of whatever was sent last: nobody would take them.
        let transmit = self.options.http == HttpVersion::H1 && enable_transmit_stamps(&socket).is_ok();
        StampedStream::new(socket, self.wall.clone(), transmit)
    }

    async fn encrypt(&self, target: &Target, stream: StampedStream) -> Result<Io, WireError> {
        let fail =
            |why: String| WireError::new(ErrorClass::Tls, format!("no TLS with {}: {why}", target.peer()));
        let name = ServerName::try_from(target.host.clone()).map_err(|e| fail(e.to_string()))?;
        let connector = TlsConnector::from(self.options.tls.clone());
        let stream = connector.connect(name, stream).await.map_err(|e| fail(tls_reason(&e)))?;
        if self.options.http == HttpVersion::H2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(fail(NO_HTTP2.to_owned()));
        }
        Ok(Io::Tls(Box::new(stream)))
    }
}

const NO_HTTP2: &str = "the server does not offer HTTP/2; use --http 1.1";

/// What went wrong in a handshake. A server without TLS shows itself by a record that is none.
fn tls_reason(error: &io::Error) -> String {
    let text = error.to_string();
    if text.contains("NoApplicationProtocol") {
        return NO_HTTP2.to_owned();
    }
    if text.contains("CaUsedAsEndEntity") {
        return "its certificate is self-signed".to_owned();
    }
    if text.contains("InvalidContentType") || text.contains("corrupt message") {
        return format!("{text}; does this port speak plain http?");
    }
    text
}

async fn connect_tcp(address: SocketAddr, ports: Option<RangeInclusive<u16>>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    // Without kernel stamps the run goes on with its own; the anchor has told the user.
    let _ = enable_receive_stamps(&socket);
    let limited = ports.is_some_and(|ports| limit_local_ports(&socket, ports).is_ok());
    let mut begun = socket.connect(&address.into());
    if limited && begun.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::AddrNotAvailable) {
        // That part of the range is used up; zeros stand for the whole of it.
        limit_local_ports(&socket, 0..=0)?;
        begun = socket.connect(&address.into());
    }
    match begun {
        Ok(()) => return Ok(socket.into()),
        Err(e) if is_in_progress(&e) => {}
        Err(e) => return Err(e),
    }
    // On loopback the handshake is over when connect returns; asking saves a turn of the event loop.
    if is_connected(&socket) {
        return Ok(socket.into());
    }
    let stream: TcpStream = socket.into();
    let waiting = watch(stream, Interest::WRITABLE)?;
    waiting.writable().await?.retain_ready();
    let stream = waiting.into_inner();
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

fn is_in_progress(error: &io::Error) -> bool {
    const EINPROGRESS_LINUX: i32 = 115;
    const EINPROGRESS_BSD: i32 = 36;
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(EINPROGRESS_LINUX | EINPROGRESS_BSD))
}
