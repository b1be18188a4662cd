//! What flowed through one window of time: rates, tokens, requests in flight, Little's law.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ttft_model::{Nanos, Outcome, Record};

use crate::Distribution;

/// A span of time within a stage, as `summary.json` holds it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowFigures {
    /// Where it begins, in seconds since the stage's start.
    pub start_s: f64,
    /// Where it ends, in seconds since the stage's start.
    pub end_s: f64,
    /// Its length in seconds.
    pub duration_s: f64,
    /// Ok requests that ended inside.
    pub requests: u64,
    /// Ok requests per second, each counted by the share of its time from start to end that lies inside. Counting
    /// ends alone would lose half of the requests in flight at the window's end, in every closed loop.
    pub requests_per_s: Option<f64>,
    /// Output tokens generated inside, per second; null when nobody counted them.
    pub output_tokens_per_s: Option<f64>,
    /// Input tokens of requests whose first token came inside, per second; null when nobody counted them.
    pub input_tokens_per_s: Option<f64>,
    /// Mean number of requests in flight, whatever became of them.
    pub in_flight: Option<f64>,
    /// Whether these figures agree with each other.
    pub littles_law: Option<Little>,
    /// `ttft`, `tpot` and `e2e` of ok requests that started inside; only of the window `whole`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_ms: BTreeMap<String, Distribution>,
}

/// Little's law: mean in flight = rate × mean time in flight. A ratio far from 1 says that the window was no steady
/// state, or that requests are missing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// Mean number of requests in flight, by the integral over time.
    pub in_flight: f64,
    /// Requests per second, whatever became of them, each counted by the share of its time that lies inside.
    pub rate: f64,
    /// Mean time from start to end in seconds, of the requests that ended inside.
    pub mean_total_s: f64,
    /// `rate × mean_total_s`.
    pub expected: f64,
    /// `in_flight / expected`.
    pub ratio: f64,
}

/// The sums behind [`WindowFigures`]. An open window ends with the last request.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    start: Nanos,
    end: Option<Nanos>,
    ok: u64,
    ok_share: f64,
    all_share: f64,
    ok_tokens_known: u64,
    input_known: u64,
    ended: u64,
    time_in_flight_s: f64,
    in_flight_ns: f64,
    output_tokens: f64,
    input_tokens: f64,
}

impl Flow {
    pub(crate) fn new(start: Nanos, end: Option<Nanos>) -> Self {
        Self {
            start,
            end,
            ok: 0,
            ok_share: 0.0,
            all_share: 0.0,
            ok_tokens_known: 0,
            input_known: 0,
            ended: 0,
            time_in_flight_s: 0.0,
            in_flight_ns: 0.0,
            output_tokens: 0.0,
            input_tokens: 0.0,
        }
    }

    /// Whether that instant lies inside, both ends included.
    pub(crate) fn holds(&self, at: Nanos) -> bool {
        at >= self.start && self.end.is_none_or(|end| at <= end)
    }

    /// Counts one request that is no warm-up.
    pub(crate) fn push(&mut self, r: &Record) {
        let share = self.share_of(r.phases.started, r.finished);
        self.in_flight_ns += self.overlap(r.phases.started, r.finished);
        self.all_share += share;
        if self.holds(r.finished) {
            self.ended += 1;
            self.time_in_flight_s += (r.finished - r.phases.started).as_secs_f64();
        }
        if r.outcome() != Outcome::Ok {
            return;
        }
        self.ok += u64::from(self.holds(r.finished));
        self.ok_share += share;
        let Some(first) = r.answer.first_token.map(ttft_model::Stamp::at) else { return };
        let last = r.answer.last_token.map_or(first, ttft_model::Stamp::at);
        if let Some(tokens) = r.answer.output_tokens() {
            self.ok_tokens_known += 1;
            self.output_tokens += tokens as f64 * self.share_of(first, last);
        }
        if let Some(tokens) = r.answer.usage.input {
            self.input_known += 1;
            self.input_tokens += if self.holds(first) { tokens as f64 } else { 0.0 };
        }
    }

    /// Ok requests that ended inside.
    pub(crate) fn ok(&self) -> u64 {
        self.ok
    }

    /// Requests that ended inside, whatever became of them.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// The figures, given the stage's start and the instant at which its last request ended.
    pub(crate) fn figures(&self, stage_start: Nanos, last: Nanos) -> WindowFigures {
        let end = self.end.unwrap_or(last).max(self.start);
        let length = (end - self.start).as_secs_f64();
        let per_s = |amount: f64| (length > 0.0).then(|| amount / length);
        let in_flight = per_s(self.in_flight_ns / 1e9);
        WindowFigures {
            start_s: (self.start - stage_start).as_secs_f64(),
            end_s: (end - stage_start).as_secs_f64(),
            duration_s: length,
            requests: self.ok,
            requests_per_s: per_s(self.ok_share),
            output_tokens_per_s: per_s(self.output_tokens).filter(|_| self.ok_tokens_known > 0),
            input_tokens_per_s: per_s(self.input_tokens).filter(|_| self.input_known > 0),
            in_flight,
            littles_law: in_flight.and_then(|in_flight| self.little(in_flight, length)),
            latency_ms: BTreeMap::new(),
        }
    }

    fn little(&self, in_flight: f64, length: f64) -> Option<Little> {
        let rate = self.all_share / length;
        let mean_total_s = self.time_in_flight_s / self.ended as f64;
        let expected = rate * mean_total_s;
        (expected > 0.0).then(|| Little {
            in_flight,
            rate,
            mean_total_s,
            expected,
            ratio: in_flight / expected,
        })
    }

    /// Nanoseconds of a span that lie inside.
    fn overlap(&self, from: Nanos, to: Nanos) -> f64 {
        let to = self.end.map_or(to, |end| to.min(end));
        (to - from.max(self.start)).0.max(0) as f64
    }

    /// The share of a span that lies inside; of an instant, all or nothing.
    pub(crate) fn share_of(&self, from: Nanos, to: Nanos) -> f64 {
        if to > from {
            self.overlap(from, to) / (to - from).0 as f64
        } else {
            f64::from(u8::from(self.holds(from)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttft_model::Stamp;

    fn ok(started: i64, first: i64, last: i64, tokens: u64) -> Record {
        let at = |s: i64| Some(Stamp::user(Nanos::from_millis(s * 1000)));
        let mut r = Record::default();
        r.phases.started = Nanos::from_millis(started * 1000);
        r.finished = Nanos::from_millis(last * 1000);
        r.answer.first_token = at(first);
        r.answer.last_token = at(last);
        r.answer.usage.output = Some(tokens);
        r.answer.usage.input = Some(7);
        r.answer.outcome = Some(Outcome::Ok);
        r
    }

    #[test]
    fn tokens_are_spread_between_first_and_last() {
        let mut flow = Flow::new(Nanos::from_millis(10_000), Some(Nanos::from_millis(20_000)));
        flow.push(&ok(0, 5, 15, 100));
        flow.push(&ok(12, 15, 25, 100));
        let figures = flow.figures(Nanos::ZERO, Nanos::ZERO);
        assert_eq!(figures.output_tokens_per_s, Some(10.0), "half of each");
        assert_eq!(figures.input_tokens_per_s, Some(0.7), "only the second read its prompt inside");
        assert_eq!(figures.requests, 1);
        assert!((figures.requests_per_s.unwrap() - (5.0 / 15.0 + 8.0 / 13.0) / 10.0).abs() < 1e-12);
        assert_eq!(figures.in_flight, Some(1.3));
    }

    #[test]
    fn little_holds_where_all_is_inside() {
        let mut flow = Flow::new(Nanos::ZERO, None);
        (0..50).for_each(|i| flow.push(&ok(i, i + 1, i + 4, 9)));
        let little = flow.figures(Nanos::ZERO, Nanos::from_millis(53_000)).littles_law.unwrap();
        assert!((little.ratio - 1.0).abs() < 1e-12, "{little:?}");
        assert!((little.mean_total_s - 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_closed_loop_loses_nothing_at_its_end() {
        // Eight users, two rounds of ten seconds; the window ends when the first of them is done.
        let mut flow = Flow::new(Nanos::ZERO, Some(Nanos::from_millis(20_000)));
        for user in 0..8i64 {
            for round in 0..2 {
                let mut r = ok(round * 10, round * 10 + 1, round * 10 + 10, 9);
                r.finished = r.finished + Nanos(user);
                flow.push(&r);
            }
        }
        let figures = flow.figures(Nanos::ZERO, Nanos::ZERO);
        assert!((figures.requests_per_s.unwrap() - 0.8).abs() < 1e-6);
        assert!((figures.littles_law.unwrap().ratio - 1.0).abs() < 1e-6);
    }

    #[test]
    fn an_empty_window_has_no_rates() {
        let flow = Flow::new(Nanos(5), Some(Nanos(1)));
        let figures = flow.figures(Nanos::ZERO, Nanos::ZERO);
        assert_eq!((figures.duration_s, figures.requests_per_s, figures.littles_law), (0.0, None, None));
    }
}
