//! One request, complete: the only thing that crosses from a worker to the rest of the program.

use serde::{Deserialize, Serialize};

use crate::{Answer, Failure, Nanos, Outcome, Stamp, TokenSource};

/// A `UUIDv7` of one attempt, sent in `x-request-id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestId(pub [u8; 16]);

impl std::fmt::Display for RequestId {
    /// The hyphenated form, 8-4-4-4-12 lower-case digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                at += 1;
            }

            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 15)];
            at += 2;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl std::str::FromStr for RequestId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut id = [0; 16];
        let mut digits = text.bytes().filter(|b| *b != b'-').map(|b| (b as char).to_digit(16));
        for byte in &mut id {
            let (high, low) = (digits.next().flatten().ok_or(())?, digits.next().flatten().ok_or(())?);
            *byte = (high << 4 | low) as u8;
        }
        if digits.next().is_some() { Err(()) } else { Ok(Self(id)) }
    }
}

/// The trace id and parent span id sent in `traceparent` (W3C Trace Context).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceId {
    /// 16 bytes, the whole trace.
    pub trace: [u8; 16],
    /// 8 bytes, our span.
    pub span: [u8; 8],
}

/// The instants of sending, up to the response head. All on the monotonic axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// The load shape wanted the request to start.
    pub scheduled: Nanos,
    /// A worker began it, before taking or making a connection.
    pub started: Nanos,
    /// The name was resolved; `None` on a reused connection or a literal address.
    pub dns_done: Option<Nanos>,
    /// TCP was connected; `None` on a reused connection.
    pub tcp_done: Option<Nanos>,
    /// TLS was ready; `None` on a reused connection or without TLS.
    pub tls_done: Option<Nanos>,
    /// The connection was ready for the request.
    pub connected: Option<Nanos>,
    /// Just before the write call that took the first request byte.
    pub sent_first: Option<Nanos>,
    /// Just before the write call that took the last request byte.
    pub sent: Option<Nanos>,
    /// The kernel handed the last request byte to the device (transmit stamp).
    pub sent_device: Option<Nanos>,
    /// The peer's kernel acknowledged the last request byte (transmit stamp).
    pub acked: Option<Nanos>,
    /// The response head was complete.
    pub headers: Option<Stamp>,
}

/// What `TCP_INFO` said, in microseconds and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpFacts {
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Smallest round trip seen on the connection.
    pub min_rtt_us: u32,
    /// Segments that this side sent again, over the connection's life.
    pub retransmits: u32,
    /// Segments that came out of order, over the connection's life.
    pub out_of_order: u32,
}

/// Which connection a request used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionUse {
    /// Number of the connection within its agent.
    pub id: u64,
    /// It was ready before this request began: it had carried another, or had been opened ahead.
    pub reused: bool,
    /// It was found closed before any byte of an answer, and the request was sent once more on a fresh one.
    pub resent: bool,
    /// 1 or 2 for HTTP/1.1 and HTTP/2; 0 when no connection was had.
    pub http: u8,
    /// TLS was used.
    pub tls: bool,
}

/// Reasons to trust a record less, set where the doubt arises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Doubt(pub u16);

impl Doubt {
    /// A receive instant had no kernel stamp.
    pub const NO_KERNEL_STAMP: Self = Self(1);
    /// Later output shared the read of the first token: TTFT is an upper bound.
    pub const FIRST_TOKEN_COALESCED: Self = Self(1 << 1);
    /// Segments came out of order: a stamp may be earlier than the data was readable.
    pub const OUT_OF_ORDER: Self = Self(1 << 2);
    /// Segments of the request were sent again.
    pub const RETRANSMITTED: Self = Self(1 << 3);
    /// The wall clock stepped while the request ran; stamps around the step are this process's own.
    pub const CLOCK_STEP: Self = Self(1 << 4);
    /// The connection is shared by several streams (HTTP/2), whose bytes share reads.
    pub const SHARED_CONNECTION: Self = Self(1 << 5);

    /// Adds a reason.
    pub fn add(&mut self, reason: Self) {
        self.0 |= reason.0;
    }

    /// Whether that reason is set.
    pub const fn has(self, reason: Self) -> bool {
        self.0 & reason.0 != 0
    }
}

/// One attempt of one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// Its id.
    pub id: RequestId,
    /// Its trace context.
    pub trace: TraceId,
    /// Index into the plan's stages.
    pub stage: u32,
    /// Index into the plan's workloads.
    pub workload: u32,
    /// The machine that sent it, 0 when there is one.
    pub agent: u32,
    /// The worker thread that sent it.
    pub worker: u32,
    /// Its number within the stage, from 0; warm-up requests count by themselves.
    pub seq: u64,
    /// The conversation that it is a turn of, by its number within the stage; `None` where it stands alone.
    pub session: Option<u64>,
    /// Which turn of it, from 1.
    pub turn: Option<u32>,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// A warm-up request: kept, never counted.
    pub warmup: bool,
    /// Sending.
    pub phases: Phases,
    /// The answer, with its outcome.
    pub answer: Answer,
    /// When the exchange was over for us, however it ended.
    pub finished: Nanos,
    /// HTTP status, when a response head came.
    pub status: Option<u16>,
    /// Request bytes of the body.
    pub request_bytes: u64,
    /// Response bytes of the body.
    pub response_bytes: u64,
    /// The connection.
    pub connection: ConnectionUse,
    /// `TCP_INFO` at the first token.
    pub tcp_first: Option<TcpFacts>,
    /// `TCP_INFO` at the end.
    pub tcp_end: Option<TcpFacts>,
    /// Where the output token count comes from.
    pub token_source: TokenSource,
    /// The largest user − kernel over the reads of this request.
    pub read_lag_max: Option<Nanos>,
    /// The response echoed our request id.
    pub id_echoed: bool,
    /// `retry-after` in seconds, when the server asked for it.
    pub retry_after_s: Option<f64>,
    /// From a proxy's sending of the request to its upstream's response head, as its response headers tell.
    pub upstream_head_ms: Option<f64>,
    /// Doubts.
    pub doubt: Doubt,
}

impl Record {
    /// How it ended. A record without an answer's outcome was cancelled.
    pub fn outcome(&self) -> Outcome {
        self.answer.outcome.unwrap_or(Outcome::Cancelled)
    }

    /// What went wrong.
    pub fn failure(&self) -> Option<&Failure> {
        self.answer.failure.as_ref()
    }
}
