//! The client side of the tests: one thread, one connector, bounded in time.

use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::runtime::{Builder, LocalOptions};
use ttft_kernel::Anchor;
use ttft_model::{HttpVersion, Resolve, Stamp};
use ttft_wire::{
    Chunk, ConnectOptions, Connector, Pool, Request, Resolver, Response, Sending, Target, TlsOptions,
    WireError, send, tls_config,
};

/// No test takes longer.
const LIMIT: Duration = Duration::from_mins(1);

/// Runs a test's client side on an event loop of its own.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    ANCHOR.get_or_init(Anchor::establish);
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async { tokio::time::timeout(LIMIT, work).await.expect("the test hangs") })
}

/// Connects without certificates to check; what most tests need.
pub(crate) fn options(http: HttpVersion) -> ConnectOptions {
    static TLS: OnceLock<[Arc<rustls::ClientConfig>; 2]> = OnceLock::new();
    let configs = TLS.get_or_init(|| {
        [HttpVersion::H1, HttpVersion::H2]
            .map(|http| tls_config(&TlsOptions { insecure: true, ca: None, http }).unwrap())
    });
    let [h1, h2] = configs;
    let tls = if http == HttpVersion::H1 { h1 } else { h2 }.clone();
    ConnectOptions { tls, http, timeout: Duration::from_secs(20), streams_per_connection: 100 }
}

pub(crate) struct Client {
    pub connector: Connector,
    pub pool: Rc<Pool>,
}

impl Client {
    pub(crate) fn new(options: ConnectOptions) -> Self {
        Self::resolving(options, &[])
    }

    pub(crate) fn resolving(options: ConnectOptions, resolve: &[Resolve]) -> Self {
        Self { connector: Connector::new(options, Resolver::new(resolve), 0, 1), pool: Pool::keeping() }
    }

    pub(crate) fn h1() -> Self {
        Self::new(options(HttpVersion::H1))
    }

    pub(crate) fn h2() -> Self {
        Self::new(options(HttpVersion::H2))
    }

    /// Sends a small request.
    pub(crate) async fn send(&self, target: &Target) -> (Result<Response, WireError>, Sending) {
        self.send_body(target, Bytes::from_static(b"{\"ask\":1}")).await
    }

    pub(crate) async fn send_body(
        &self,
        target: &Target,
        body: Bytes,
    ) -> (Result<Response, WireError>, Sending) {
        let request = Request { method: Method::POST, headers: HeaderMap::new(), body };
        let mut sending = Sending::default();
        let result = send(&self.connector, &self.pool, target, &request, &mut sending).await;
        (result, sending)
    }

    /// Sends a small request that must be answered, reads the answer to its end, and gives the connection back.
    pub(crate) async fn exchange(&self, target: &Target) -> (Vec<u8>, Sending) {
        let (response, sending) = self.send(target).await;
        let mut response = response.unwrap();
        let body = joined(&all_chunks(&mut response).await.unwrap());
        response.recycle().await;
        (body, sending)
    }
}

/// All body bytes, or what stopped them.
pub(crate) async fn all_chunks(response: &mut Response) -> Result<Vec<Chunk>, WireError> {
    let mut chunks = Vec::new();
    while let Some(chunk) = response.chunk().await {
        chunks.push(chunk?);
    }
    Ok(chunks)
}

pub(crate) fn joined(chunks: &[Chunk]) -> Vec<u8> {
    chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect()
}

/// A stamp that the kernel made, where the kernel makes any.
pub(crate) fn assert_stamped(stamp: Stamp) {
    if cfg!(target_os = "linux") {
        let kernel = stamp.kernel.expect("the kernel stamps what it receives");
        assert!(kernel <= stamp.user, "{stamp:?}");
    }
}
