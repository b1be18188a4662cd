//! The client's record beside the engine's log, request by request.

use std::collections::HashMap;

use serde::Serialize;
use ttft_model::{Nanos, Outcome, Record, RequestId, Stamp};
use ttft_store::RequestReader;

use crate::spread::Spread;
use crate::truth::Truth;

/// One request that ended well: reported − true, in nanoseconds.
pub(crate) struct Joined {
    /// Of `ttft`.
    ttft: i64,
    /// Of `ttft_sent`.
    sent: Option<i64>,
    /// Of what a client without kernel stamps would report as `ttft`.
    user: i64,
    /// The connection, and when the request was begun, to tell the first on it.
    connection: u64,
    started: Nanos,
    /// The first token shared its read with later output: an upper bound, for which no accuracy is claimed.
    flagged: bool,
}

/// The requests of the run that ended well and that the engine knows.
pub(crate) fn join(records: RequestReader, truth: &[Truth]) -> anyhow::Result<Vec<Joined>> {
    let by_id: HashMap<RequestId, Truth> =
        truth.iter().filter_map(|truth| Some((truth.id?, *truth))).collect();
    let mut joined = Vec::new();
    for record in records {
        let record = record?;
        if let (Outcome::Ok, Some(first), Some(truth)) =
            (record.outcome(), record.answer.first_token, by_id.get(&record.id))
        {
            joined.push(compare(&record, first, *truth));
        }
    }
    Ok(joined)
}

fn compare(record: &Record, first: Stamp, truth: Truth) -> Joined {
    let phases = &record.phases;
    let error = |reported: Nanos| reported.0 - truth.ttft_ns();
    Joined {
        ttft: error(first.at() - phases.started),
        sent: phases.sent.map(|sent| error(first.at() - sent)),
        user: error(first.user - phases.started),
        connection: record.connection.id,
        started: phases.started,
        flagged: record.answer.facts.first_token_coalesced,
    }
}

/// The errors of one case in microseconds. Flagged first tokens are counted and left out.
#[derive(Debug, Serialize)]
pub(crate) struct Errors {
    /// Requests that were joined.
    pub(crate) joined: usize,
    /// Of these, first tokens that shared their read with later output.
    pub(crate) flagged: usize,
    pub(crate) ttft: Spread,
    pub(crate) ttft_sent: Spread,
    /// By the stamps that the process itself takes.
    pub(crate) user_clock: Spread,
    /// `ttft` of the first request on each connection.
    pub(crate) first_on_connection: Spread,
    /// `ttft` of all later ones.
    pub(crate) later_on_connection: Spread,
}

impl Errors {
    pub(crate) fn of(all: &[Joined]) -> Self {
        let mut first: HashMap<u64, Nanos> = HashMap::new();
        for request in all {
            let known = first.entry(request.connection).or_insert(request.started);
            *known = request.started.min(*known);
        }
        let is_first = |request: &Joined| first.get(&request.connection) == Some(&request.started);
        let sure = || all.iter().filter(|request| !request.flagged);
        Self {
            joined: all.len(),
            flagged: all.len() - sure().count(),
            ttft: Spread::of(sure().map(|request| request.ttft)),
            ttft_sent: Spread::of(sure().filter_map(|request| request.sent)),
            user_clock: Spread::of(sure().map(|request| request.user)),
            first_on_connection: Spread::of(sure().filter(|r| is_first(r)).map(|request| request.ttft)),
            later_on_connection: Spread::of(sure().filter(|r| !is_first(r)).map(|request| request.ttft)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(connection: u64, started: i64, ttft: i64, flagged: bool) -> Joined {
        Joined { ttft, sent: Some(ttft / 2), user: ttft * 2, connection, started: Nanos(started), flagged }
    }

    #[test]
    fn flagged_requests_are_counted_and_left_out() {
        let errors = Errors::of(&[request(1, 0, 1_000, false), request(1, 9, 1_000_000, true)]);
        assert_eq!((errors.joined, errors.flagged, errors.ttft.n), (2, 1, 1));
        assert_eq!(
            (errors.ttft.max, errors.ttft_sent.max, errors.user_clock.max),
            (Some(1.0), Some(0.5), Some(2.0))
        );
    }

    #[test]
    fn the_first_on_a_connection_is_the_one_that_began_first() {
        let all = [request(1, 5, 2_000, false), request(1, 3, 7_000, false), request(2, 4, 9_000, false)];
        let errors = Errors::of(&all);
        assert_eq!((errors.first_on_connection.n, errors.first_on_connection.max), (2, Some(9.0)));
        assert_eq!((errors.later_on_connection.n, errors.later_on_connection.max), (1, Some(2.0)));
    }
}
