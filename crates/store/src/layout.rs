//! How the columns that we know lie in a file, and which bytes of a batch they need.

use std::sync::Arc;

use arrow_ipc::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};

use crate::columns::{COLUMNS, Cell, Column};

/// Whether the lists over output events are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// Every event of every answer.
    Load,
    /// None: [`ttft_model::EventLog`] stays empty, and most of the file's bytes are not even read.
    Skip,
}

/// The way from a file's schema to ours.
pub(crate) struct Layout {
    /// The file's schema.
    pub(crate) schema: SchemaRef,
    /// Indices of the columns to read, ascending.
    pub(crate) projection: Vec<usize>,
    /// Our columns, and where each lies among those read.
    pub(crate) columns: Vec<(&'static Column, usize)>,
}

impl Layout {
    /// Finds our columns. The message says what is missing.
    pub(crate) fn find(schema: Schema, events: Events) -> Result<Self, String> {
        let mut found = Vec::new();
        for column in COLUMNS {
            if matches!(column.cell, Cell::PlanName(_)) || (events == Events::Skip && column.is_of_events()) {
                continue;
            }
            match schema.index_of(column.name) {
                Ok(index) if schema.field(index).data_type().equals_datatype(column.field().data_type()) => {
                    found.push((column, index));
                }
                Ok(index) => {
                    let is = schema.field(index).data_type();
                    return Err(format!(
                        "column `{}` is {is}, not {}",
                        column.name,
                        column.field().data_type()
                    ));
                }
                Err(_) if column.required => return Err(format!("column `{}` is missing", column.name)),
                // Added to the schema after this file was written.
                Err(_) => {}
            }
        }
        let mut projection: Vec<usize> = found.iter().map(|(_, index)| *index).collect();
        projection.sort_unstable();
        let place = |index: usize| projection.binary_search(&index).unwrap_or_default();
        let columns = found.iter().map(|(column, index)| (*column, place(*index))).collect();
        Ok(Self { columns, schema: Arc::new(schema), projection })
    }

    /// Bytes of a batch's body up to the end of the last column read. Also checks what Arrow's decoder takes on
    /// trust: that no buffer lies outside the body, and that no count is absurd.
    pub(crate) fn body_needed(&self, batch: &RecordBatch<'_>, body_len: u64) -> Result<u64, String> {
        let (Some(buffers), Some(nodes)) = (batch.buffers(), batch.nodes()) else {
            return Err("a batch without buffers".to_owned());
        };
        let most_rows = body_len.saturating_mul(8);
        let is_count = |n: i64| u64::try_from(n).is_ok_and(|n| n <= most_rows);
        if !is_count(batch.length())
            || nodes.iter().any(|n| !is_count(n.length()) || !is_count(n.null_count()))
        {
            return Err("a batch with more rows than bytes".to_owned());
        }
        let spans = buffers.iter().map(|buffer| {
            let (from, len) = (u64::try_from(buffer.offset()).ok()?, u64::try_from(buffer.length()).ok()?);
            let end = from.checked_add(len).filter(|end| *end <= body_len)?;
            Some((len, end))
        });
        let spans: Vec<(u64, u64)> = spans.collect::<Option<_>>().ok_or("a buffer outside of its batch")?;

        let mut needed = 0;
        let mut rest = spans.as_slice();
        for (index, field) in self.schema.fields().iter().enumerate() {
            let Some(widths) = widths_of(field.data_type()) else { return Ok(body_len) };
            let (own, after) = rest.split_at_checked(widths.len()).ok_or("a batch with too few buffers")?;
            rest = after;
            if own.iter().zip(widths).any(|((len, _), width)| len % width != 0) {
                return Err("a buffer that ends inside a value".to_owned());
            }
            if self.projection.binary_search(&index).is_ok() {
                needed = own.iter().map(|(_, end)| *end).fold(needed, u64::max);
            }
        }
        Ok(needed)
    }
}

/// Bytes of a value in each of the buffers of a column of that type; `None` for types that no column of this version
/// has.
fn widths_of(data_type: &DataType) -> Option<Vec<u64>> {
    const BITS: u64 = 1;
    const OFFSETS: u64 = 4;
    match data_type {
        DataType::Utf8 => Some(vec![BITS, OFFSETS, 1]),
        DataType::Boolean => Some(vec![BITS, BITS]),
        DataType::List(item) => Some([vec![BITS, OFFSETS], widths_of(item.data_type())?].concat()),
        other => Some(vec![BITS, other.primitive_width()? as u64]),
    }
}
