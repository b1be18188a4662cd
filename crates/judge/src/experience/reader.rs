//! A person who reads along.

use ttft_model::{Channel, Record};

use super::{Arrival, READER_TOKENS_PER_S};

/// How reading one answer went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    /// From the first to the last arrival of what is read.
    pub(super) whole_ms: f64,
    /// Of it, how long there was nothing left to read.
    pub(super) waited_ms: f64,
}

/// Reads the answer, or all output where there is only reasoning; `None` of a single arrival.
///
/// With `read` tokens already read at an arrival and `had` tokens there before it, the reader has waited for what is
/// left of the gap once those tokens were read: gap − (had − read) / speed.
pub(super) fn read(r: &Record, arrivals: &[Arrival]) -> Option<Reading> {
    let events = &r.answer.events;
    let answer: Vec<Arrival> =
        arrivals.iter().filter(|a| events.channel(a.event) != Channel::Reasoning).copied().collect();
    let text = if answer.is_empty() { arrivals } else { &answer };
    let whole_ms = (text.last()?.at - text.first()?.at).as_millis_f64();
    if whole_ms <= 0.0 {
        return None;
    }
    let speed = READER_TOKENS_PER_S / 1e3;
    let (mut unread, mut waited_ms) = (0.0, 0.0);
    for pair in text.windows(2) {
        unread += tokens_of(arrivals, &pair[0]);
        let gap = (pair[1].at - pair[0].at).as_millis_f64();
        let busy = (unread / speed).min(gap);
        waited_ms += gap - busy;
        unread -= busy * speed;
    }
    // Rounding may leave a hair where the stream was exactly as fast.
    Some(Reading { whole_ms, waited_ms: if waited_ms < 1e-6 { 0.0 } else { waited_ms } })
}

fn tokens_of(arrivals: &[Arrival], arrival: &Arrival) -> f64 {
    let before = arrival.event.checked_sub(1).and_then(|i| arrivals.get(i)).map_or(0.0, |a| a.tokens_so_far);
    arrival.tokens_so_far - before
}
