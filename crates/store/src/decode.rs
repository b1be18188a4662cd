//! One record batch back into records.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, PrimitiveArray, RecordBatch};
use ttft_model::{Nanos, Record};

use crate::columns::{Cell, Column, Width};
use crate::layout::Layout;

/// The batch's rows. The message names the column that holds what it cannot hold.
pub(crate) fn records(batch: &RecordBatch, layout: &Layout) -> Result<Vec<Record>, String> {
    let mut records = vec![Record::default(); batch.num_rows()];
    for (column, place) in &layout.columns {
        fill(column, batch.column(*place), &mut records)
            .ok_or_else(|| format!("column `{}` holds what it cannot hold", column.name))?;
    }
    let same_length = |r: &Record| {
        let events = &r.answer.events;
        events.at.len() == events.tokens.len() && events.at.len() == events.class.len()
    };
    if records.iter().all(same_length) { Ok(records) } else { Err("event lists differ in length".to_owned()) }
}

/// Sets one column in all records.
fn fill(column: &Column, array: &dyn Array, records: &mut [Record]) -> Option<()> {
    match &column.cell {
        Cell::Bool(_, set) => each(array.as_boolean_opt()?, records, set),
        Cell::Unsigned(Width::U8, _, set) => unsigned::<UInt8Type>(array, records, *set)?,
        Cell::Unsigned(Width::U16, _, set) => unsigned::<UInt16Type>(array, records, *set)?,
        Cell::Unsigned(Width::U32, _, set) => unsigned::<UInt32Type>(array, records, *set)?,
        Cell::Unsigned(Width::U64, _, set) => unsigned::<UInt64Type>(array, records, *set)?,
        Cell::Float(_, set) => each(array.as_primitive_opt::<Float64Type>()?, records, set),
        Cell::Instant(_, set) | Cell::Duration(_, set) => {
            each(array.as_primitive_opt::<Int64Type>()?, records, |r, ns| set(r, Nanos(ns)));
        }
        Cell::RequestId => text(array, records, set_id)?,
        Cell::TraceId => text(array, records, |r, digits| hex(digits, &mut r.trace.trace))?,
        Cell::SpanId => text(array, records, |r, digits| hex(digits, &mut r.trace.span))?,
        Cell::Word(_, set) => text(array, records, set)?,
        Cell::Text(_, set) => each(array.as_string_opt::<i32>()?, records, |r, text| set(r, text.to_owned())),
        Cell::PlanName(_) => {}
        Cell::ChoiceFirstToken => list::<Int64Type>(array, records, |r, items| {
            r.answer.choice_first_token = items.iter().map(|at| at.map(Nanos)).collect();
        })?,
        Cell::EventTimes => list::<Int64Type>(array, records, |r, items| {
            let started = r.phases.started.0;
            let instant = |offset: &i64| Nanos(started.saturating_add(*offset));
            r.answer.events.at = items.values().iter().map(instant).collect();
        })?,
        Cell::EventTokens => list::<UInt32Type>(array, records, |r, items| {
            r.answer.events.tokens = items.iter().map(|tokens| tokens.unwrap_or(0)).collect();
        })?,
        Cell::EventClass => list::<UInt8Type>(array, records, |r, items| {
            r.answer.events.class = items.values().to_vec();
        })?,
    }
    Some(())
}

/// Calls for each value that is not null.
fn each<A>(array: A, records: &mut [Record], mut set: impl FnMut(&mut Record, A::Item))
where
    A: ArrayAccessor + Copy,
{
    for (i, record) in records.iter_mut().enumerate() {
        if array.is_valid(i) {
            set(record, array.value(i));
        }
    }
}

fn unsigned<T>(array: &dyn Array, records: &mut [Record], set: fn(&mut Record, u64)) -> Option<()>
where
    T: ArrowPrimitiveType<Native: Into<u64>>,
{
    each(array.as_primitive_opt::<T>()?, records, |r, n| set(r, n.into()));
    Some(())
}

/// `None` as soon as a text is refused.
fn text(
    array: &dyn Array,
    records: &mut [Record],
    mut set: impl FnMut(&mut Record, &str) -> bool,
) -> Option<()> {
    let mut fine = true;
    each(array.as_string_opt::<i32>()?, records, |r, text| fine &= set(r, text));
    fine.then_some(())
}

fn list<T: ArrowPrimitiveType>(
    array: &dyn Array,
    records: &mut [Record],
    mut set: impl FnMut(&mut Record, PrimitiveArray<T>),
) -> Option<()> {
    let lists = array.as_list_opt::<i32>()?;
    let values = lists.values().as_primitive_opt::<T>()?;
    let offsets = lists.value_offsets();
    for (i, record) in records.iter_mut().enumerate() {
        if lists.is_valid(i) {
            let (from, to) = (offsets[i] as usize, offsets[i + 1] as usize);
            set(record, values.slice(from, to - from));
        }
    }
    Some(())
}

fn set_id(r: &mut Record, text: &str) -> bool {
    match text.parse() {
        Ok(id) => r.id = id,
        Err(()) => return false,
    }
    true
}

/// Reads exactly as many hex digits as there are.
fn hex(digits: &str, bytes: &mut [u8]) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    if digits.len() != bytes.len() * 2 {
        return false;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => *byte = (high << 4 | low) as u8,
            _ => return false,
        }
    }
    true
}
