//! One request outside a run: for `check`, and for asking a server what it has.

use std::sync::Arc;

use http::{HeaderMap, Method};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;
use ttft_dialect::Dialect;
use ttft_kernel::{mono_now, real_now};
use ttft_model::{Connections, ErrorClass, Nanos, Record, Resolve, Timeouts};
use ttft_wire::{ConnectOptions, Connector, Pool, Request, Resolver, Sending, Target, WireError, send};

use crate::attempt::{BodyRead, Extras, Keep, Lane, attempt, blank};
use crate::maker::RequestMaker;

/// What one request brought.
#[derive(Debug, Clone)]
pub struct Single {
    /// The record.
    pub record: Record,
    /// Response headers, when they came.
    pub headers: Option<HeaderMap>,
    /// Text of the answer.
    pub text: String,
    /// Its body as it came.
    pub reads: Vec<BodyRead>,
    /// The dialect that the body looks like, whatever it was read as.
    pub looks_like: Option<Arc<Dialect>>,
}

impl Single {
    pub(crate) fn new(record: Record, extras: Extras) -> Self {
        let Extras { headers, text, reads, looks_like, .. } = extras;
        Self { record, headers, text, reads, looks_like }
    }
}

/// Sends `count` requests one after another on kept connections, and keeps their text.
pub fn single(
    target: &Target,
    dialect: &Arc<Dialect>,
    connect: &ConnectOptions,
    resolve: &[Resolve],
    timeouts: Timeouts,
    maker: &RequestMaker,
    count: u64,
) -> std::io::Result<Vec<Single>> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let singles = runtime.block_on(async {
        let connector = Connector::new(connect.clone(), Resolver::new(resolve), 0, 1);
        let lane =
            Lane::new(connector, dialect.clone(), timeouts, Connections::Reuse, maker.id_header().clone());
        let cancel = Notify::new();
        let mut random = SmallRng::seed_from_u64(real_now() as u64);
        let mut singles = Vec::new();
        for number in 0..count {
            let mut record = blank(mono_now(), &mut random);
            record.seq = number;
            let request = maker.make(dialect, number, record.id, &record.trace, &mut String::new());
            let cancelled = std::pin::pin!(cancel.notified());
            let extras =
                attempt(&lane, target, &lane.pool, &request, cancelled, Keep::Text, &mut record).await;
            singles.push(Single::new(record, extras));
        }
        singles
    });
    // A resolver that still waits for its server is not waited for.
    runtime.shutdown_background();
    Ok(singles)
}

/// The answer to a GET.
#[derive(Debug, Clone)]
pub struct Got {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body as it came: nothing is unpacked.
    pub body: Vec<u8>,
    /// When it was complete.
    pub ended: Nanos,
}

/// The status and body of a GET, at most `limit` bytes of it.
pub fn get(
    target: &Target,
    connect: &ConnectOptions,
    resolve: &[Resolve],
    headers: HeaderMap,
    limit: usize,
) -> Result<(u16, Vec<u8>), WireError> {
    get_whole(target, connect, resolve, headers, limit).map(|got| (got.status, got.body))
}

/// The whole answer to a GET, at most `limit` bytes of its body.
pub fn get_whole(
    target: &Target,
    connect: &ConnectOptions,
    resolve: &[Resolve],
    headers: HeaderMap,
    limit: usize,
) -> Result<Got, WireError> {
    let request = Request { method: Method::GET, headers, body: bytes::Bytes::new() };
    whole(target, connect, resolve, &request, limit)
}

/// The status and body of the answer to a POST, at most `limit` bytes of it.
pub fn post(
    target: &Target,
    connect: &ConnectOptions,
    resolve: &[Resolve],
    headers: HeaderMap,
    body: Vec<u8>,
    limit: usize,
) -> Result<(u16, Vec<u8>), WireError> {
    let request = Request { method: Method::POST, headers, body: body.into() };
    whole(target, connect, resolve, &request, limit).map(|got| (got.status, got.body))
}

fn whole(
    target: &Target,
    connect: &ConnectOptions,
    resolve: &[Resolve],
    request: &Request,
    limit: usize,
) -> Result<Got, WireError> {
    let fail = |e: std::io::Error| WireError { class: ErrorClass::Client, message: e.to_string() };
    let runtime =
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).map_err(fail)?;
    let got = runtime.block_on(async {
        let connector = Connector::new(connect.clone(), Resolver::new(resolve), 0, 1);
        let exchange = async {
            let mut response =
                send(&connector, &Pool::discarding(), target, request, &mut Sending::default()).await?;
            let mut body = Vec::new();
            while body.len() < limit
                && let Some(chunk) = response.chunk().await
            {
                body.extend_from_slice(&chunk?.bytes);
            }
            body.truncate(limit);
            Ok(Got { status: response.status, headers: response.headers.clone(), body, ended: mono_now() })
        };
        tokio::time::timeout(connect.timeout, exchange).await.unwrap_or_else(|_| {
            let message = format!("no answer from {} in time", target.peer());
            Err(WireError { class: ErrorClass::TimeoutTotal, message })
        })
    });
    runtime.shutdown_background();
    got
}
