//! One request and its answer, over whichever connection there is.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::Full;
use hyper::body::Incoming;
use ttft_kernel::mono_now;
use ttft_model::{ConnectionUse, HttpVersion, Nanos, Stamp, TcpFacts};

use crate::connect::{ConnectPhases, Established};
use crate::h1::H1;
use crate::h2_client::{H2, Stream};
use crate::stamped::Tap;
use crate::{Connector, Pool, Target, WireError};

/// How long the end of a body is waited for once its last event has come: most servers send it apart, at once. Without
/// the wait a user's next request would find its connection busy and open another.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long it is waited for in the background after that.
const DRAIN: Duration = Duration::from_secs(1);

/// A request, ready to be sent more than once.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Headers without `host` and `content-length`, which the transport adds.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Body bytes, and the read that completed them.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The bytes, out of their transfer coding.
    pub bytes: Bytes,
    /// The number of that read on its connection: equal for bytes that came together.
    pub read: u64,
    /// When its last byte arrived.
    pub stamp: Stamp,
}

/// How the sending went; filled as it goes, so that it holds what is known when sending fails or is given up.
#[derive(Debug, Default)]
pub struct Sending {
    /// The name was resolved for this request.
    pub dns_done: Option<Nanos>,
    /// TCP was connected for this request.
    pub tcp_done: Option<Nanos>,
    /// TLS was ready for this request.
    pub tls_done: Option<Nanos>,
    /// A connection was ready.
    pub connected: Option<Nanos>,
    /// Just before the write call with the first byte.
    pub sent_first: Option<Nanos>,
    /// Just before the write call with the last byte.
    pub sent: Option<Nanos>,
    /// Which connection.
    pub connection: ConnectionUse,
    tap: Option<Rc<Tap>>,
}

impl Sending {
    /// Takes over what the socket knows so far. Needed only when the answer was given up before its head came.
    pub fn capture(&mut self) {
        if let Some(tap) = &self.tap {
            (self.sent_first, self.sent) = tap.sent();
        }
    }

    fn connected_by(&mut self, phases: ConnectPhases) {
        self.dns_done = phases.dns;
        self.tcp_done = phases.tcp;
        self.tls_done = phases.tls;
    }

    fn begin(&mut self, tap: &Rc<Tap>, connection: ConnectionUse) {
        tap.begin_request();
        self.begin_shared(connection);
        self.tap = Some(tap.clone());
    }

    /// On a connection whose socket also sends for others.
    fn begin_shared(&mut self, connection: ConnectionUse) {
        self.connected = Some(mono_now());
        self.connection = ConnectionUse { resent: self.connection.resent, ..connection };
    }
}

/// Sends a request and waits for the head of its answer.
///
/// A kept connection that turns out to be closed before a byte of an answer came is replaced once by a fresh one,
/// silently but on record ([`ConnectionUse::resent`]): servers close idle connections, and that is not a failure.
pub async fn send(
    connector: &Connector,
    pool: &Rc<Pool>,
    target: &Target,
    request: &Request,
    sending: &mut Sending,
) -> Result<Response, WireError> {
    match connector.options.http {
        HttpVersion::H1 => send_h1(connector, pool, target, request, sending).await,
        HttpVersion::H2 => send_h2(connector, pool, target, request, sending).await,
    }
}

/// Opens a connection and puts it into the pool, for a request to come.
pub async fn open(connector: &Connector, pool: &Rc<Pool>, target: &Target) -> Result<(), WireError> {
    let made = connector.connect(target).await?;
    match connector.options.http {
        HttpVersion::H1 => pool.give(H1::handshake(made).await?),
        HttpVersion::H2 => pool.offer(&H2::handshake(made).await?),
    }
    Ok(())
}

async fn send_h1(
    connector: &Connector,
    pool: &Rc<Pool>,
    target: &Target,
    request: &Request,
    sending: &mut Sending,
) -> Result<Response, WireError> {
    let mut kept = pool.take().await;
    loop {
        let reused = kept.is_some();
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => H1::handshake(connect(connector, target, sending).await?).await?,
        };
        let bytes_before = connection.tap.bytes_in();
        let used = ConnectionUse { id: connection.id, reused, http: 1, tls: connection.tls, resent: false };
        sending.begin(&connection.tap, used);
        match connection.send(http1_request(target, request)).await {
            Ok(answer) => {
                (sending.sent_first, sending.sent) = connection.tap.sent_before_answer();
                let head = connection.tap.last_read().1;
                let (parts, body) = answer.into_parts();
                let body = Body::H1 { connection: Box::new(connection), body, finished: false };
                return Ok(Response::new(parts, head, body, pool.clone()));
            }
            Err(error) => {
                sending.capture();
                let tap = &connection.tap;
                // Bytes that came although nothing had been asked yet (a 408, say) are no answer.
                let answered = tap.bytes_in() != bytes_before && tap.sent().0.is_some();
                if reused && !answered {
                    sending.connection.resent = true;
                } else if tap.write_failed() && !answered {
                    return Err(WireError::sending(&error));
                } else {
                    return Err(WireError::exchange(&error));
                }
            }
        }
    }
}

async fn send_h2(
    connector: &Connector,
    pool: &Rc<Pool>,
    target: &Target,
    request: &Request,
    sending: &mut Sending,
) -> Result<Response, WireError> {
    let mut kept = pool.share(connector.options.streams_per_connection);
    loop {
        let reused = kept.is_some();
        let connection = if let Some(connection) = kept.take() {
            connection
        } else {
            let made = H2::handshake(connect(connector, target, sending).await?).await?;
            pool.offer(&made);
            made
        };
        let used = ConnectionUse { id: connection.id, reused, http: 2, tls: connection.tls, resent: false };
        sending.begin_shared(used);
        match connection.send(http2_request(target, request), request.body.clone()).await {
            Ok((parts, stream)) => {
                (sending.sent_first, sending.sent) = stream.sent();
                let head = stream.head();
                return Ok(Response::new(parts, head, Body::H2(Box::new(stream)), pool.clone()));
            }
            // The server closed the connection, or said that it did not begin to work on this stream.
            Err(error) if reused && (error.is_io() || error.is_go_away() || refused(&error)) => {
                connection.retire();
                sending.connection.resent = true;
            }
            Err(error) => return Err(WireError::exchange(&error)),
        }
    }
}

fn refused(error: &h2::Error) -> bool {
    error.reason() == Some(h2::Reason::REFUSED_STREAM)
}

async fn connect(
    connector: &Connector,
    target: &Target,
    sending: &mut Sending,
) -> Result<Established, WireError> {
    let made = connector.connect(target).await?;
    sending.connected_by(made.phases);
    Ok(made)
}

fn http1_request(target: &Target, request: &Request) -> http::Request<Full<Bytes>> {
    let mut built = http::Request::new(Full::new(request.body.clone()));
    *built.method_mut() = request.method.clone();
    *built.uri_mut() = target.path.clone().into();
    *built.headers_mut() = request.headers.clone();
    if let Ok(host) = http::HeaderValue::from_str(target.authority.as_str()) {
        built.headers_mut().insert(http::header::HOST, host);
    }
    built
}

fn http2_request(target: &Target, request: &Request) -> http::Request<()> {
    let mut built = http::Request::new(());
    *built.method_mut() = request.method.clone();
    *built.version_mut() = http::Version::HTTP_2;
    *built.uri_mut() = target.absolute_uri();
    *built.headers_mut() = request.headers.clone();
    built
}

enum Body {
    H1 { connection: Box<H1>, body: Incoming, finished: bool },
    H2(Box<Stream>),
}

/// An answer whose head has come.
pub struct Response {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// When the head was complete.
    pub head: Stamp,
    body: Body,
    pool: Rc<Pool>,
}

impl Response {
    fn new(parts: http::response::Parts, head: Stamp, body: Body, pool: Rc<Pool>) -> Self {
        Self { status: parts.status.as_u16(), headers: parts.headers, head, body, pool }
    }

    /// The next body bytes, or `None` at the body's proper end.
    pub async fn chunk(&mut self) -> Option<Result<Chunk, WireError>> {
        // One read may hold thousands of chunks: other requests, and deadlines, get their turn between them.
        tokio::task::coop::consume_budget().await;
        match &mut self.body {
            Body::H1 { connection, body, finished } => {
                let chunk = connection.chunk(body).await;
                *finished = chunk.is_none();
                chunk.map(|result| result.map_err(|e| WireError::exchange(&e)))
            }
            Body::H2(stream) => {
                stream.chunk().await.map(|result| result.map_err(|e| WireError::exchange(&e)))
            }
        }
    }

    /// The stamp of the connection's last read.
    pub fn last_stamp(&self) -> Stamp {
        self.tap().last_read().1
    }

    /// What the kernel knows of the path now.
    pub fn tcp_facts(&self) -> Option<TcpFacts> {
        self.tap().tcp_facts()
    }

    /// The kernel's transmit stamps of the request: handed to the device, acknowledged by the peer. To be asked once,
    /// when the head has come. On a shared connection they would be those of whatever was sent last, so there are none.
    pub fn transmit_stamps(&self) -> (Option<Nanos>, Option<Nanos>) {
        match &self.body {
            Body::H1 { connection, .. } => connection.tap.transmit_stamps(),
            Body::H2(_) => (None, None),
        }
    }

    /// The largest lag between arrival and read so far.
    pub fn lag_max(&self) -> Option<Nanos> {
        match &self.body {
            Body::H1 { connection, .. } => connection.tap.lag_max(),
            Body::H2(stream) => stream.lag_max(),
        }
    }

    /// Gives the connection back for the next request, once the body has ended; tells when the exchange was over. A
    /// server that takes long to end a body is waited for in the background, and in the end loses the connection.
    pub async fn recycle(mut self) -> Nanos {
        if tokio::time::timeout(PATIENCE, self.skip_rest()).await.is_ok() {
            let over = self.last_stamp().at();
            self.rest();
            return over;
        }
        tokio::task::spawn_local(async move {
            if tokio::time::timeout(DRAIN, self.skip_rest()).await.is_ok() {
                self.rest();
            }
        });
        mono_now()
    }

    async fn skip_rest(&mut self) {
        if matches!(self.body, Body::H1 { finished: true, .. }) {
            return;
        }
        while let Some(Ok(_)) = self.chunk().await {}
    }

    fn rest(self) {
        if let Body::H1 { connection, .. } = self.body {
            self.pool.give(*connection);
        }
    }

    fn tap(&self) -> &Tap {
        match &self.body {
            Body::H1 { connection, .. } => &connection.tap,
            Body::H2(stream) => &stream.connection().tap,
        }
    }
}
