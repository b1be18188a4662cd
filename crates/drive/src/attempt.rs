//! One request, from its start to its record.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;

use http::HeaderName;
use tokio::sync::futures::Notified;
use ttft_dialect::{Dialect, End, Options, Transcript};
use ttft_kernel::mono_now;
use ttft_model::{
    Connections, Doubt, ErrorClass, Failure, Nanos, Outcome, Record, Stamp, Timeouts, TokenSource,
};
use ttft_wire::{Chunk, Connector, Pool, Request, Response, Sending, Target, WireError, send};

use crate::deadline::{Deadline, Raced};

/// How requests reach an endpoint and their answers are read.
pub(crate) struct Lane {
    pub connector: Connector,
    pub dialect: Arc<Dialect>,
    pub timeouts: Timeouts,
    pub connections: Connections,
    /// Carries each request's id.
    pub id_header: HeaderName,
    /// Idle connections that all users share.
    pub pool: Rc<Pool>,
}

impl Lane {
    pub(crate) fn new(
        connector: Connector,
        dialect: Arc<Dialect>,
        timeouts: Timeouts,
        connections: Connections,
        id_header: HeaderName,
    ) -> Self {
        let pool = if connections == Connections::New { Pool::discarding() } else { Pool::keeping() };
        Self { connector, dialect, timeouts, connections, id_header, pool }
    }
}

/// How much of an answer is kept beside the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Nothing, as under load.
    Nothing,
    /// What was said in it.
    Answer,
    /// Its head and its bytes.
    Bytes,
    /// What was understood of it, too.
    Text,
}

impl Keep {
    const fn has_bytes(self) -> bool {
        matches!(self, Self::Bytes | Self::Text)
    }

    const fn has_text(self) -> bool {
        matches!(self, Self::Answer | Self::Text)
    }
}

/// What the caller may want beside the record.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// Response headers.
    pub headers: Option<http::HeaderMap>,
    /// Text of the answer, when it was kept.
    pub text: String,
    /// Its reasoning, likewise.
    pub reasoning: String,
    /// The body as it came, when the text was kept too.
    pub reads: Vec<BodyRead>,
    /// The dialect that the body looks like, when the text was kept.
    pub looks_like: Option<Arc<Dialect>>,
}

/// What one read of the socket brought of a body.
#[derive(Debug, Clone)]
pub struct BodyRead {
    /// Its number on the connection.
    number: u64,
    /// When its last byte arrived.
    pub at: Nanos,
    /// The bytes, out of their transfer coding.
    pub bytes: Vec<u8>,
}

impl Extras {
    fn keep(&mut self, chunk: &Chunk) {
        match self.reads.last_mut() {
            Some(last) if last.number == chunk.read => last.bytes.extend_from_slice(&chunk.bytes),
            _ => self.reads.push(BodyRead {
                number: chunk.read,
                at: chunk.stamp.at(),
                bytes: chunk.bytes.to_vec(),
            }),
        }
    }
}

/// Sends `request` and reads its answer into `record`, whose ids and `scheduled` are set. Takes `started` itself.
pub(crate) async fn attempt(
    lane: &Lane,
    target: &Target,
    pool: &Rc<Pool>,
    request: &Request,
    mut cancelled: Pin<&mut Notified<'_>>,
    keep: Keep,
    record: &mut Record,
) -> Extras {
    let options = Options { keep_text: keep.has_text() };
    let mut transcript = Transcript::new(lane.dialect.clone(), options);
    let mut sending = Sending::default();
    let mut extras = Extras::default();
    record.request_bytes = request.body.len() as u64;
    record.phases.started = mono_now();
    let mut deadline = Deadline::new(record.phases.started, lane.timeouts);

    let head = {
        let sent = pin!(send(&lane.connector, pool, target, request, &mut sending));
        deadline.race(cancelled.as_mut(), sent).await
    };
    let (end, at) = match head {
        Raced::Done(Ok(mut response)) => {
            take_sending(record, &sending);
            take_head(record, &response, &lane.id_header, &mut transcript);
            // Headers are views of the connection's read buffer, and would keep it from being used again.
            let headers = std::mem::take(&mut response.headers);
            extras.headers = keep.has_bytes().then_some(headers);
            let keep = keep.has_bytes().then_some(&mut extras);
            let (end, at) =
                read_body(&mut response, cancelled, &mut deadline, &mut transcript, record, keep).await;
            take_end(record, &response);
            if end == End::Clean {
                record.finished = response.recycle().await;
            }
            (end, at)
        }
        Raced::Done(Err(error)) => {
            take_sending(record, &sending);
            (End::Failed(failure(error)), Stamp::user(mono_now()))
        }
        given_up => {
            sending.capture();
            take_sending(record, &sending);
            (given_up_end(&given_up, &deadline), Stamp::user(mono_now()))
        }
    };
    if options.keep_text {
        transcript.text().clone_into(&mut extras.text);
        transcript.reasoning_text().clone_into(&mut extras.reasoning);
        extras.looks_like = transcript.looks_like();
    }
    record.answer = transcript.finish(end, at);
    if let Some(failure) = &mut record.answer.failure
        && record.answer.outcome == Some(Outcome::Timeout)
    {
        failure.message = deadline.message();
    }
    record.finished = record.finished.max(at.at());
    settle(record);
    extras
}

async fn read_body(
    response: &mut Response,
    mut cancelled: Pin<&mut Notified<'_>>,
    deadline: &mut Deadline,
    transcript: &mut Transcript,
    record: &mut Record,
    mut keep: Option<&mut Extras>,
) -> (End, Stamp) {
    loop {
        match deadline.race(cancelled.as_mut(), response.chunk()).await {
            Raced::Done(Some(Ok(chunk))) => {
                record.response_bytes += chunk.bytes.len() as u64;
                transcript.on_body(&chunk.bytes, chunk.read, chunk.stamp);
                if let Some(extras) = &mut keep {
                    extras.keep(&chunk);
                }
                if transcript.has_output() {
                    if record.tcp_first.is_none() {
                        record.tcp_first = response.tcp_facts();
                    }
                    deadline.progressed(chunk.stamp.user);
                }
                if transcript.is_complete() {
                    return (End::Clean, chunk.stamp);
                }
            }
            Raced::Done(None) => return (End::Clean, response.last_stamp()),
            Raced::Done(Some(Err(error))) => {
                let end =
                    if error.class == ErrorClass::Reset { End::Reset } else { End::Failed(failure(error)) };
                return (end, Stamp::user(mono_now()));
            }
            given_up => return (given_up_end(&given_up, deadline), Stamp::user(mono_now())),
        }
    }
}

fn given_up_end<T>(raced: &Raced<T>, deadline: &Deadline) -> End {
    match raced {
        Raced::TimedOut => End::TimedOut(deadline.class()),
        _ => End::Cancelled,
    }
}

fn failure(error: WireError) -> Failure {
    Failure::new(error.class, error.message)
}

fn take_sending(record: &mut Record, sending: &Sending) {
    let phases = &mut record.phases;
    phases.dns_done = sending.dns_done;
    phases.tcp_done = sending.tcp_done;
    phases.tls_done = sending.tls_done;
    phases.connected = sending.connected;
    phases.sent_first = sending.sent_first;
    phases.sent = sending.sent;
    record.connection = sending.connection;
}

fn take_head(record: &mut Record, response: &Response, id_header: &HeaderName, transcript: &mut Transcript) {
    let header = |name: &str| response.headers.get(name).and_then(|value| value.to_str().ok());
    record.status = Some(response.status);
    record.phases.headers = Some(response.head);
    (record.phases.sent_device, record.phases.acked) = response.transmit_stamps();
    record.id_echoed = header(id_header.as_str()).is_some_and(|echo| echo.parse() == Ok(record.id));
    record.retry_after_s = header("retry-after").and_then(|seconds| seconds.parse().ok());
    record.upstream_head_ms = crate::told_by_proxy::upstream_head_ms(header);
    transcript.on_head(response.status, header("content-type"), header("content-encoding"));
}

fn take_end(record: &mut Record, response: &Response) {
    record.read_lag_max = response.lag_max();
    record.tcp_end = response.tcp_facts();
}

/// Sets what follows from the whole.
fn settle(record: &mut Record) {
    let answer = &record.answer;
    if answer.usage.output.is_some() {
        record.token_source = TokenSource::Usage;
    }
    let stamps = [record.phases.headers, answer.first_token, answer.last_token];
    let mut doubt = Doubt::default();
    if stamps.into_iter().flatten().any(|stamp| stamp.kernel.is_none()) {
        doubt.add(Doubt::NO_KERNEL_STAMP);
    }
    if answer.facts.first_token_coalesced {
        doubt.add(Doubt::FIRST_TOKEN_COALESCED);
    }
    if let (Some(first), Some(end)) = (record.tcp_first, record.tcp_end) {
        if end.out_of_order > first.out_of_order {
            doubt.add(Doubt::OUT_OF_ORDER);
        }
        if end.retransmits > first.retransmits {
            doubt.add(Doubt::RETRANSMITTED);
        }
    }
    if record.connection.http == 2 {
        doubt.add(Doubt::SHARED_CONNECTION);
    }
    record.doubt.add(doubt);
    record.finished = record.finished.max(record.phases.started);
}

/// A record with ids, before it is sent.
pub(crate) fn blank(scheduled: Nanos, random: &mut impl rand::Rng) -> Record {
    let mut record = Record {
        id: crate::ids::request_id(ttft_kernel::real_now(), random),
        trace: crate::ids::trace_id(random),
        attempt: 1,
        ..Record::default()
    };
    record.phases.scheduled = scheduled;
    record
}
