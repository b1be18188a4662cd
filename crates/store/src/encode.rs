//! Records into the bytes of one Arrow record batch.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt8Builder,
    UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use ttft_model::{Nanos, Record};

use crate::columns::{COLUMNS, Cell, PlanName, Width};
use crate::redact::Secrets;
use crate::schema::RequestsInfo;

/// Buffers of a batch are padded to this many bytes. The format's least: a batch of one row stays small.
const ALIGNMENT: usize = 8;

/// Collects records as columns, and gives them out as blocks of the stream.
pub(crate) struct Encoder {
    context: Context,
    schema: SchemaRef,
    columns: Vec<Builder>,
    stream: StreamWriter<Vec<u8>>,
    rows: usize,
    events: usize,
}

/// What a row holds that is not in its record.
struct Context {
    zero: Nanos,
    info: RequestsInfo,
    secrets: Secrets,
}

impl Encoder {
    /// An encoder, and the block that every stream begins with.
    pub(crate) fn new(info: RequestsInfo, secrets: Secrets) -> Result<(Self, Vec<u8>), ArrowError> {
        let schema = Arc::new(info.schema());
        let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
        let mut stream = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
        let head = std::mem::take(stream.get_mut());
        let columns = COLUMNS.iter().map(|column| Builder::of(&column.cell)).collect();
        let context = Context { zero: Nanos(info.zero_monotonic_ns), info, secrets };
        Ok((Self { context, schema, columns, stream, rows: 0, events: 0 }, head))
    }

    /// Texts that must not be in any row from now on.
    pub(crate) fn secrets(&mut self) -> &mut Secrets {
        &mut self.context.secrets
    }

    /// Takes the names of rows to come from here. What the head of the stream says stays.
    pub(crate) fn know(&mut self, info: RequestsInfo) {
        self.context.info = info;
    }

    /// Adds rows.
    pub(crate) fn push(&mut self, records: &[Record]) {
        for (column, builder) in COLUMNS.iter().zip(&mut self.columns) {
            for record in records {
                builder.push(&column.cell, record, &self.context);
            }
        }
        self.rows += records.len();
        self.events += records.iter().map(|record| record.answer.events.len()).sum::<usize>();
    }

    /// Rows collected.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Events in the rows collected.
    pub(crate) fn events(&self) -> usize {
        self.events
    }

    /// The rows collected as one block.
    pub(crate) fn take_block(&mut self) -> Result<Vec<u8>, ArrowError> {
        let arrays: Vec<ArrayRef> = self.columns.iter_mut().map(Builder::finish).collect();
        (self.rows, self.events) = (0, 0);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        self.stream.write(&batch)?;
        Ok(std::mem::take(self.stream.get_mut()))
    }

    /// The block that ends a stream.
    pub(crate) fn take_end(&mut self) -> Result<Vec<u8>, ArrowError> {
        self.stream.finish()?;
        Ok(std::mem::take(self.stream.get_mut()))
    }
}

/// One column under way.
enum Builder {
    Bool(BooleanBuilder),
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    F64(Float64Builder),
    I64(Int64Builder),
    Text(StringBuilder),
    ListI64(ListBuilder<Int64Builder>),
    ListU32(ListBuilder<UInt32Builder>),
    ListU8(ListBuilder<UInt8Builder>),
}

impl Builder {
    fn of(cell: &Cell) -> Self {
        match cell {
            Cell::Bool(..) => Self::Bool(BooleanBuilder::new()),
            Cell::Unsigned(Width::U8, ..) => Self::U8(UInt8Builder::new()),
            Cell::Unsigned(Width::U16, ..) => Self::U16(UInt16Builder::new()),
            Cell::Unsigned(Width::U32, ..) => Self::U32(UInt32Builder::new()),
            Cell::Unsigned(Width::U64, ..) => Self::U64(UInt64Builder::new()),
            Cell::Float(..) => Self::F64(Float64Builder::new()),
            Cell::Instant(..) | Cell::Duration(..) => Self::I64(Int64Builder::new()),
            Cell::ChoiceFirstToken | Cell::EventTimes => Self::ListI64(list(cell, Int64Builder::new())),
            Cell::EventTokens => Self::ListU32(list(cell, UInt32Builder::new())),
            Cell::EventClass => Self::ListU8(list(cell, UInt8Builder::new())),
            Cell::RequestId
            | Cell::TraceId
            | Cell::SpanId
            | Cell::PlanName(_)
            | Cell::Word(..)
            | Cell::Text(..) => Self::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, cell: &Cell, r: &Record, context: &Context) {
        match (self, cell) {
            (Self::Bool(b), Cell::Bool(get, _)) => b.append_option(get(r)),
            (Self::U8(b), Cell::Unsigned(_, get, _)) => b.append_option(get(r).map(|n| n as u8)),
            (Self::U16(b), Cell::Unsigned(_, get, _)) => b.append_option(get(r).map(|n| n as u16)),
            (Self::U32(b), Cell::Unsigned(_, get, _)) => b.append_option(get(r).map(|n| n as u32)),
            (Self::U64(b), Cell::Unsigned(_, get, _)) => b.append_option(get(r)),
            (Self::F64(b), Cell::Float(get, _)) => b.append_option(get(r)),
            (Self::I64(b), Cell::Instant(get, _)) => {
                b.append_option(get(r).map(|at| since(at, context.zero)));
            }
            (Self::I64(b), Cell::Duration(get, _)) => b.append_option(get(r).map(|length| length.0)),
            (Self::Text(b), cell) => push_text(b, cell, r, context),
            (Self::ListI64(b), Cell::ChoiceFirstToken) => {
                let choices = &r.answer.choice_first_token;
                b.values().extend(choices.iter().map(|at| at.map(|at| since(at, context.zero))));
                b.append(true);
            }
            (Self::ListI64(b), _) => {
                let values = b.values();
                for at in &r.answer.events.at {
                    values.append_value(since(*at, r.phases.started));
                }
                b.append(true);
            }
            (Self::ListU32(b), _) => {
                push_tokens(b.values(), &r.answer.events.tokens);
                b.append(true);
            }
            (Self::ListU8(b), _) => {
                b.values().append_slice(&r.answer.events.class);
                b.append(true);
            }
            _ => unreachable!("builders are made from the same table"),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        let builder: &mut dyn ArrayBuilder = match self {
            Self::Bool(b) => b,
            Self::U8(b) => b,
            Self::U16(b) => b,
            Self::U32(b) => b,
            Self::U64(b) => b,
            Self::F64(b) => b,
            Self::I64(b) => b,
            Self::Text(b) => b,
            Self::ListI64(b) => b,
            Self::ListU32(b) => b,
            Self::ListU8(b) => b,
        };
        builder.finish()
    }
}

fn list<B: ArrayBuilder>(cell: &Cell, values: B) -> ListBuilder<B> {
    let builder = ListBuilder::new(values);
    match cell.item() {
        Some(item) => builder.with_field(item),
        None => builder,
    }
}

/// A distance that cannot overflow, whatever a clock said.
fn since(at: Nanos, from: Nanos) -> i64 {
    at.0.saturating_sub(from.0)
}

/// The model says 0 where the server did not tell; on disk unknown is null.
fn push_tokens(values: &mut UInt32Builder, tokens: &[u32]) {
    if tokens.iter().all(|n| *n == 0) {
        values.append_nulls(tokens.len());
    } else {
        values.extend(tokens.iter().map(|n| (*n != 0).then_some(*n)));
    }
}

fn push_text(b: &mut StringBuilder, cell: &Cell, r: &Record, context: &Context) {
    let text = match cell {
        Cell::RequestId => {
            // Writing to a builder cannot fail.
            let _ = write!(b, "{}", r.id);
            Some("")
        }
        Cell::TraceId => Some(push_hex(b, &r.trace.trace)),
        Cell::SpanId => Some(push_hex(b, &r.trace.span)),
        Cell::PlanName(name) => plan_name(*name, r, &context.info),
        Cell::Word(get, _) => get(r),
        Cell::Text(get, _) => {
            return b.append_option(get(r).map(|text| context.secrets.scrub(text)));
        }
        _ => unreachable!("no other column is text"),
    };
    b.append_option(text);
}

/// Writes digits into the value under way; the empty rest to end it with is returned.
fn push_hex(b: &mut StringBuilder, bytes: &[u8]) -> &'static str {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            let _ = b.write_char(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
    ""
}

fn plan_name<'a>(name: PlanName, r: &Record, info: &'a RequestsInfo) -> Option<&'a str> {
    match name {
        PlanName::Stage => info.stages.get(r.stage as usize).map(String::as_str),
        PlanName::Workload => info.workloads.get(r.workload as usize).map(String::as_str),
        PlanName::Model => info.models.get(r.stage as usize)?.as_deref(),
    }
}
