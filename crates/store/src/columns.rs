//! The columns of `requests.arrow`, each with its way out of a record and back into one.
//!
//! This table is the file's schema, apart from the model on purpose: a field of the model may be renamed, a
//! column may not. Columns may be added before the event lists, which stay last so that a reader can leave
//! their bytes unread; anything else is a new version of the schema.

use arrow_schema::{DataType, Field};
use ttft_model::{ErrorClass, Failure, Nanos, Outcome, Record, Stamp, TcpFacts, TokenSource};

/// One column.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Never null.
    pub(crate) required: bool,
    pub(crate) cell: Cell,
}

type Get<T> = fn(&Record) -> Option<T>;
type GetText = for<'a> fn(&'a Record) -> Option<&'a str>;
type Set<T> = fn(&mut Record, T);
/// False when the text is no word that this version knows.
type SetText = fn(&mut Record, &str) -> bool;

/// What a column holds.
pub(crate) enum Cell {
    /// The request's id as a hyphenated UUID.
    RequestId,
    /// 32 hex digits.
    TraceId,
    /// 16 hex digits.
    SpanId,
    /// A name out of the plan; written for people, never read back.
    PlanName(PlanName),
    /// Yes or no.
    Bool(Get<bool>, Set<bool>),
    /// An unsigned number.
    Unsigned(Width, Get<u64>, Set<u64>),
    /// A number with a fraction.
    Float(Get<f64>, Set<f64>),
    /// An instant, on the axis of the run.
    Instant(Get<Nanos>, Set<Nanos>),
    /// A length of time.
    Duration(Get<Nanos>, Set<Nanos>),
    /// One of our own words.
    Word(GetText, SetText),
    /// Text from the server, which may hold anything.
    Text(GetText, Set<String>),
    /// First token of each choice, on the axis of the run.
    ChoiceFirstToken,
    /// Arrival of each output event, as an offset from `started_ns`.
    EventTimes,
    /// Tokens of each output event.
    EventTokens,
    /// Class of each output event.
    EventClass,
}

/// Which name of the plan.
#[derive(Clone, Copy)]
pub(crate) enum PlanName {
    Stage,
    Workload,
    Model,
}

/// Size of an unsigned number.
#[derive(Clone, Copy)]
pub(crate) enum Width {
    U8,
    U16,
    U32,
    U64,
}

impl Column {
    /// The column as Arrow sees it.
    pub(crate) fn field(&self) -> Field {
        Field::new(self.name, self.cell.data_type(), !self.required)
    }

    /// Whether it is one of the lists over output events.
    pub(crate) fn is_of_events(&self) -> bool {
        matches!(self.cell, Cell::EventTimes | Cell::EventTokens | Cell::EventClass)
    }
}

impl Cell {
    fn data_type(&self) -> DataType {
        match self {
            Self::RequestId
            | Self::TraceId
            | Self::SpanId
            | Self::PlanName(_)
            | Self::Word(..)
            | Self::Text(..) => DataType::Utf8,
            Self::Bool(..) => DataType::Boolean,
            Self::Unsigned(Width::U8, ..) => DataType::UInt8,
            Self::Unsigned(Width::U16, ..) => DataType::UInt16,
            Self::Unsigned(Width::U32, ..) => DataType::UInt32,
            Self::Unsigned(Width::U64, ..) => DataType::UInt64,
            Self::Float(..) => DataType::Float64,
            Self::Instant(..) | Self::Duration(..) => DataType::Int64,
            Self::ChoiceFirstToken | Self::EventTimes | Self::EventTokens | Self::EventClass => {
                self.item().map_or(DataType::Null, |item| DataType::List(item.into()))
            }
        }
    }

    /// The field of a list's items.
    pub(crate) fn item(&self) -> Option<Field> {
        let (data_type, nullable) = match self {
            Self::ChoiceFirstToken => (DataType::Int64, true),
            Self::EventTimes => (DataType::Int64, false),
            Self::EventTokens => (DataType::UInt32, true),
            Self::EventClass => (DataType::UInt8, false),
            _ => return None,
        };
        Some(Field::new("item", data_type, nullable))
    }
}

/// A column that is always there.
const fn required(name: &'static str, cell: Cell) -> Column {
    Column { name, required: true, cell }
}

/// A column that may be unknown.
const fn optional(name: &'static str, cell: Cell) -> Column {
    Column { name, required: false, cell }
}

/// A whole number that is always there: `whole!("worker", U32, worker)`.
macro_rules! whole {
    ($name:literal, $width:ident, $($path:ident).+) => {
        required($name, Cell::Unsigned(Width::$width, |r| Some(r.$($path).+.into()), |r, n| r.$($path).+ = n as _))
    };
}

/// A whole number that may be unknown.
macro_rules! maybe {
    ($name:literal, $width:ident, $($path:ident).+) => {
        optional(
            $name,
            Cell::Unsigned(Width::$width, |r| r.$($path).+.map(Into::into), |r, n| r.$($path).+ = Some(n as _)),
        )
    };
}

/// A yes or no that is always there.
macro_rules! flag {
    ($name:literal, $($path:ident).+) => {
        required($name, Cell::Bool(|r| Some(r.$($path).+), |r, yes| r.$($path).+ = yes))
    };
}

/// An instant of this side, null while it has not come.
macro_rules! instant {
    ($name:literal, $($path:ident).+) => {
        optional($name, Cell::Instant(|r| r.$($path).+, |r, at| r.$($path).+ = Some(at)))
    };
}

/// A receive instant by its best clock. Read back as the kernel's; [`set_kernel_stamps`] has the last word.
macro_rules! best {
    ($name:literal, $($path:ident).+) => {
        optional(
            $name,
            Cell::Instant(
                |r| r.$($path).+.map(Stamp::at),
                |r, at| r.$($path).+ = Some(Stamp { kernel: Some(at), user: at }),
            ),
        )
    };
}

/// The same instant as this process saw it; stands after [`best`].
macro_rules! user {
    ($name:literal, $($path:ident).+) => {
        optional(
            $name,
            Cell::Instant(
                |r| r.$($path).+.map(|stamp| stamp.user),
                |r, at| {
                    if let Some(stamp) = &mut r.$($path).+ {
                        stamp.user = at;
                    }
                },
            ),
        )
    };
}

macro_rules! millis {
    ($name:literal, $field:ident) => {
        optional($name, Cell::Float(|r| r.answer.timings.$field, |r, ms| r.answer.timings.$field = Some(ms)))
    };
}

macro_rules! text {
    ($name:literal, $($path:ident).+) => {
        optional($name, Cell::Text(|r| r.$($path).+.as_deref(), |r, text| r.$($path).+ = Some(text)))
    };
}

macro_rules! tcp {
    ($name:literal, $place:ident, $field:ident) => {
        optional(
            $name,
            Cell::Unsigned(
                Width::U32,
                |r| r.$place.map(|tcp| tcp.$field.into()),
                |r, n| r.$place.get_or_insert(NO_TCP).$field = n as u32,
            ),
        )
    };
}

const NO_TCP: TcpFacts = TcpFacts { rtt_us: 0, min_rtt_us: 0, retransmits: 0, out_of_order: 0 };

/// All columns, in the order of the file. Within a record they are read back in this order too.
pub(crate) static COLUMNS: &[Column] = &[
    required("request_id", Cell::RequestId),
    required("trace_id", Cell::TraceId),
    required("span_id", Cell::SpanId),
    whole!("stage", U32, stage),
    optional("stage_name", Cell::PlanName(PlanName::Stage)),
    whole!("workload", U32, workload),
    optional("workload_name", Cell::PlanName(PlanName::Workload)),
    optional("model", Cell::PlanName(PlanName::Model)),
    whole!("agent", U32, agent),
    whole!("worker", U32, worker),
    whole!("seq", U64, seq),
    whole!("attempt", U32, attempt),
    flag!("warmup", warmup),
    required("scheduled_ns", Cell::Instant(|r| Some(r.phases.scheduled), |r, at| r.phases.scheduled = at)),
    required("started_ns", Cell::Instant(|r| Some(r.phases.started), |r, at| r.phases.started = at)),
    instant!("dns_done_ns", phases.dns_done),
    instant!("tcp_done_ns", phases.tcp_done),
    instant!("tls_done_ns", phases.tls_done),
    instant!("connected_ns", phases.connected),
    instant!("sent_first_ns", phases.sent_first),
    instant!("sent_ns", phases.sent),
    instant!("sent_device_ns", phases.sent_device),
    instant!("acked_ns", phases.acked),
    best!("headers_ns", phases.headers),
    user!("headers_user_ns", phases.headers),
    best!("first_byte_ns", answer.first_byte),
    user!("first_byte_user_ns", answer.first_byte),
    best!("first_event_ns", answer.first_event),
    user!("first_event_user_ns", answer.first_event),
    best!("first_token_ns", answer.first_token),
    user!("first_token_user_ns", answer.first_token),
    best!("first_answer_ns", answer.first_answer),
    user!("first_answer_user_ns", answer.first_answer),
    instant!("first_sentence_ns", answer.first_sentence),
    best!("last_token_ns", answer.last_token),
    user!("last_token_user_ns", answer.last_token),
    best!("usage_ns", answer.usage_at),
    user!("usage_user_ns", answer.usage_at),
    best!("ended_ns", answer.ended),
    user!("ended_user_ns", answer.ended),
    required("kernel_stamps", Cell::Unsigned(Width::U8, |r| Some(kernel_stamps(r)), set_kernel_stamps)),
    required("finished_ns", Cell::Instant(|r| Some(r.finished), |r, at| r.finished = at)),
    optional("read_lag_max_ns", Cell::Duration(|r| r.read_lag_max, |r, lag| r.read_lag_max = Some(lag))),
    required("choice_first_token_ns", Cell::ChoiceFirstToken),
    maybe!("input_tokens", U64, answer.usage.input),
    maybe!("cached_tokens", U64, answer.usage.cached),
    maybe!("output_tokens", U64, answer.usage.output),
    maybe!("reasoning_tokens", U64, answer.usage.reasoning),
    required("token_source", Cell::Word(|r| Some(r.token_source.name()), set_token_source)),
    whole!("request_bytes", U64, request_bytes),
    whole!("response_bytes", U64, response_bytes),
    required("outcome", Cell::Word(|r| Some(r.outcome().name()), set_outcome)),
    optional("error_class", Cell::Word(|r| r.failure().map(|failure| failure.class.name()), set_error_class)),
    optional("error_code", Cell::Text(|r| r.failure()?.code.as_deref(), set_error_code)),
    optional(
        "error_text",
        Cell::Text(|r| r.failure().map(|failure| failure.message.as_str()), set_error_text),
    ),
    maybe!("http_status", U16, status),
    optional(
        "http_version",
        Cell::Unsigned(
            Width::U8,
            |r| (r.connection.http != 0).then(|| r.connection.http.into()),
            |r, n| r.connection.http = n as u8,
        ),
    ),
    optional(
        "tls",
        Cell::Bool(|r| connected(r).then_some(r.connection.tls), |r, yes| r.connection.tls = yes),
    ),
    optional(
        "connection",
        Cell::Unsigned(Width::U64, |r| connected(r).then_some(r.connection.id), |r, id| r.connection.id = id),
    ),
    optional(
        "reused",
        Cell::Bool(|r| connected(r).then_some(r.connection.reused), |r, yes| r.connection.reused = yes),
    ),
    flag!("resent", connection.resent),
    tcp!("rtt_us", tcp_end, rtt_us),
    tcp!("min_rtt_us", tcp_end, min_rtt_us),
    tcp!("retransmits", tcp_end, retransmits),
    tcp!("out_of_order", tcp_end, out_of_order),
    tcp!("first_token_rtt_us", tcp_first, rtt_us),
    tcp!("first_token_min_rtt_us", tcp_first, min_rtt_us),
    tcp!("first_token_retransmits", tcp_first, retransmits),
    tcp!("first_token_out_of_order", tcp_first, out_of_order),
    flag!("id_echoed", id_echoed),
    optional("retry_after_s", Cell::Float(|r| r.retry_after_s, |r, s| r.retry_after_s = Some(s))),
    optional("upstream_head_ms", Cell::Float(|r| r.upstream_head_ms, |r, ms| r.upstream_head_ms = Some(ms))),
    text!("finish_reason", answer.finish_reason),
    text!("response_id", answer.response_id),
    text!("served_model", answer.model),
    millis!("server_queue_ms", queue_ms),
    millis!("server_prefill_ms", prefill_ms),
    millis!("server_ttft_ms", ttft_ms),
    millis!("server_decode_ms", decode_ms),
    millis!("server_total_ms", total_ms),
    millis!("server_load_ms", load_ms),
    flag!("streamed", answer.facts.streamed),
    flag!("first_token_coalesced", answer.facts.first_token_coalesced),
    flag!("all_in_one_read", answer.facts.all_in_one_read),
    flag!("terminator", answer.facts.terminator),
    flag!("finish", answer.facts.finish),
    flag!("compressed", answer.facts.compressed),
    flag!("unfinished_event", answer.facts.unfinished_event),
    whole!("malformed_events", U32, answer.facts.malformed_events),
    whole!("comments", U32, answer.facts.comments),
    whole!("after_end", U32, answer.facts.after_end),
    whole!("reads", U32, answer.facts.reads),
    whole!("coalesced_reads", U32, answer.facts.coalesced_reads),
    whole!("events", U32, answer.facts.events),
    whole!("first_event_bytes", U32, answer.facts.first_event_bytes),
    required(
        "doubt",
        Cell::Unsigned(Width::U16, |r| Some(r.doubt.0.into()), |r, bits| r.doubt.0 = bits as u16),
    ),
    maybe!("session", U64, session),
    maybe!("turn", U32, turn),
    required("event_ns", Cell::EventTimes),
    required("event_tokens", Cell::EventTokens),
    required("event_class", Cell::EventClass),
];

/// The receive instants in the order of their bits in `kernel_stamps`.
fn stamps(r: &mut Record) -> [&mut Option<Stamp>; 8] {
    let answer = &mut r.answer;
    [
        &mut r.phases.headers,
        &mut answer.first_byte,
        &mut answer.first_event,
        &mut answer.first_token,
        &mut answer.first_answer,
        &mut answer.last_token,
        &mut answer.usage_at,
        &mut answer.ended,
    ]
}

/// One bit for each receive instant that the kernel stamped.
fn kernel_stamps(r: &Record) -> u64 {
    let answer = &r.answer;
    let stamps = [
        r.phases.headers,
        answer.first_byte,
        answer.first_event,
        answer.first_token,
        answer.first_answer,
        answer.last_token,
        answer.usage_at,
        answer.ended,
    ];
    let kernel = |stamp: Option<Stamp>| stamp.is_some_and(|stamp| stamp.kernel.is_some());
    stamps.into_iter().enumerate().map(|(bit, stamp)| u64::from(kernel(stamp)) << bit).sum()
}

/// Takes back the kernel stamps that [`best`] assumed.
fn set_kernel_stamps(r: &mut Record, bits: u64) {
    for (bit, stamp) in stamps(r).into_iter().enumerate() {
        if let Some(stamp) = stamp.as_mut().filter(|_| bits >> bit & 1 == 0) {
            stamp.kernel = None;
        }
    }
}

/// Whether anything is known of a connection: without one its columns are null.
fn connected(r: &Record) -> bool {
    let c = &r.connection;
    c.http != 0 || c.id != 0 || c.reused || c.tls
}

fn set_token_source(r: &mut Record, word: &str) -> bool {
    let known = [TokenSource::Usage, TokenSource::Tokenizer, TokenSource::None];
    let found = known.into_iter().find(|source| source.name() == word);
    r.token_source = found.unwrap_or_default();
    found.is_some()
}

fn set_outcome(r: &mut Record, word: &str) -> bool {
    r.answer.outcome = Outcome::from_name(word);
    r.answer.outcome.is_some()
}

fn set_error_class(r: &mut Record, word: &str) -> bool {
    r.answer.failure = ErrorClass::from_name(word).map(|class| Failure::new(class, ""));
    r.answer.failure.is_some()
}

fn set_error_code(r: &mut Record, text: String) {
    if let Some(failure) = &mut r.answer.failure {
        failure.code = Some(text);
    }
}

fn set_error_text(r: &mut Record, text: String) {
    if let Some(failure) = &mut r.answer.failure {
        failure.message = text;
    }
}
