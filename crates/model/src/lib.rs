//! The nouns of a load test: instants, plan, record, outcome.
//!
//! Pure data. Nothing here reads a clock, opens a file or a socket, or computes a statistic; every other
//! crate speaks in these words.

#![forbid(unsafe_code)]

mod answer;
mod error_class;
mod lengths;
mod nanos;
mod nearest;
mod outcome;
mod plan;
mod record;
mod run;
mod units;

pub use answer::{Answer, Channel, EventLog, ServerTimings, StreamFacts, TokenSource, Usage};
pub use error_class::ErrorClass;
pub use lengths::{Lengths, ParseLengthsError};
pub use nanos::{Nanos, Stamp, StampSource};
pub use nearest::nearest;
pub use outcome::{Failure, Outcome};
pub use plan::{
    ApiKey, Arrival, Budget, CachePolicy, Calibration, Client, Connections, Endpoint, Header, HttpVersion,
    ImageSize, Images, Load, NVIDIA_SMI, ParseImageSizeError, ParsePickError, ParseResolveError,
    ParseThinkError, Pick, Plan, Prefixes, Prompt, Resolve, SaveStreams, Session, Share, Sources, Stage,
    StageError, Stop, Think, Timeouts, Workload,
};
pub use record::{ConnectionUse, Doubt, Phases, Record, RequestId, TcpFacts, TraceId};
pub use run::{ClockInfo, Run, StageWindow};
pub use units::{ParseUnitError, Span, parse_count};
