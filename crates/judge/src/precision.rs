//! When a stage has shown enough: `--precision 5%` ends it once the 95 % interval of p95 of TTFT is narrower than that
//! share of p95 itself.
//!
//! An interval that is looked at again and again until it happens to be narrow covers less than it claims. So there are
//! few looks, each half as many requests again after the one before, and the interval of a look leaves out only its part
//! of the 5 %: over all looks together it covers. Requests that depend on their neighbours count for fewer.

use ttft_model::{Nanos, Outcome, Record};

use crate::series::design_effect;
use crate::{interval, metrics, quantile};

/// The percentile whose interval is looked at.
const P: f64 = 0.95;

/// Requests before the first look: fewer bound p95 from neither side well.
const FIRST: u64 = 200;

/// From one look to the next.
const GROWTH: f64 = 1.5;

/// Looks among which the 5 % are divided: from 200 to a million requests.
const LOOKS: f64 = 21.0;

/// Of more requests the later ones are no longer kept (16 MiB); a stage of so many ends by its own rules.
const MOST: usize = 1 << 20;

/// Watches one stage.
#[derive(Debug, Clone)]
pub struct Precision {
    share: f64,
    /// Starts and TTFT in milliseconds, of requests that were ok.
    seen: Vec<(Nanos, f64)>,
    /// The next look is at so many.
    next: u64,
    last: Option<Look>,
}

/// What a look saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Requests looked at.
    pub n: u64,
    /// p95 of TTFT in milliseconds.
    pub p95_ms: f64,
    /// Its interval, which holds over all looks together.
    pub interval_ms: [Option<f64>; 2],
    /// How wide that is, over p95; `None` where one end is open.
    pub width: Option<f64>,
}

impl Precision {
    /// A watch for a stage that is to go on until the interval is narrower than that share, such as 0.05.
    pub fn new(share: f64) -> Self {
        Self { share, seen: Vec::new(), next: FIRST, last: None }
    }

    /// Takes a request in. Warm-ups, and requests that were not ok, say nothing.
    pub fn push(&mut self, r: &Record) {
        if !r.warmup
            && r.outcome() == Outcome::Ok
            && self.seen.len() < MOST
            && let Some(ttft) = metrics::ttft(r)
        {
            self.seen.push((r.phases.started, ttft));
        }
    }

    /// Looks, if it is time to. Whether the stage may end.
    pub fn is_reached(&mut self) -> bool {
        let n = self.seen.len() as u64;
        if n >= self.next {
            while self.next <= n {
                self.next = (self.next as f64 * GROWTH).ceil() as u64;
            }
            self.last = Some(self.look());
        }
        self.last.is_some_and(|look| look.width.is_some_and(|width| width < self.share))
    }

    /// The last look, for whoever wants to say what was seen.
    pub fn last(&self) -> Option<Look> {
        self.last
    }

    fn look(&mut self) -> Look {
        self.seen.sort_unstable_by_key(|(started, _)| *started);
        let n = self.seen.len() as u64;
        let mut sorted: Vec<f64> = self.seen.iter().map(|(_, ms)| *ms).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let p95_ms = quantile::of_sorted(&sorted, P).unwrap_or(f64::NAN);
        let beyond = self.seen.iter().map(|(_, ms)| f64::from(u8::from(*ms > p95_ms)));
        let worth = (n as f64 / design_effect(beyond)).floor().max(1.0);
        let (low, high) = interval::places(worth as u64, P, 0.05 / LOOKS);
        // The same shares of all requests.
        let value = |place: f64| {
            let place = (place / worth * n as f64).clamp(1.0, n as f64);
            interval::at_place(place, |k| sorted[(k as usize).min(sorted.len() - 1)])
        };
        let interval_ms = [low.map(value), high.map(value)];
        let width = match interval_ms {
            [Some(low), Some(high)] => Some((high - low) / p95_ms),
            _ => None,
        };
        Look { n, p95_ms, interval_ms, width }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use rand_distr::{Distribution as _, LogNormal, StandardNormal};
    use ttft_model::Stamp;

    use super::*;

    fn record(i: u64, ttft_ms: f64) -> Record {
        let mut r = Record { seq: i, ..Record::default() };
        r.phases.started = Nanos(i as i64);
        r.answer.first_token = Some(Stamp::user(Nanos(i as i64 + (ttft_ms * 1e6) as i64)));
        r.answer.outcome = Some(Outcome::Ok);
        r
    }

    /// The last look at values that are drawn until the precision is had, or `most` are.
    fn until(share: f64, most: u64, mut draw: impl FnMut() -> f64) -> (bool, Look) {
        let mut precision = Precision::new(share);
        for i in 0..most {
            precision.push(&record(i, draw()));
            if precision.is_reached() {
                return (true, precision.last().unwrap());
            }
        }
        (false, precision.last().unwrap())
    }

    #[test]
    fn it_stops_when_the_interval_is_narrow_and_not_before() {
        let mut random = StdRng::seed_from_u64(5);
        let narrow = LogNormal::new(5.0, 0.1).unwrap();
        let (reached, look) = until(0.1, 100_000, || narrow.sample(&mut random));
        assert!(reached && look.width.unwrap() < 0.1 && (200..2_000).contains(&look.n), "{look:?}");
        let wide = LogNormal::new(5.0, 1.0).unwrap();
        let (reached, look) = until(0.05, 3_000, || wide.sample(&mut random));
        assert!(!reached && look.width.unwrap() > 0.05, "{look:?}");
    }

    #[test]
    fn what_it_stops_with_covers_although_it_looked_often() {
        let truth = (5.0f64 + 0.5 * 1.644_853_626_951_472_7).exp();
        let law = LogNormal::new(5.0, 0.5).unwrap();
        let mut random = StdRng::seed_from_u64(6);
        let covered = (0..300)
            .filter(|_| {
                let (_, look) = until(0.25, 20_000, || law.sample(&mut random));
                let [low, high] = look.interval_ms.map(Option::unwrap);
                (low..=high).contains(&truth)
            })
            .count();
        assert!(covered >= 285, "{covered} of 300");
    }

    #[test]
    fn requests_that_depend_on_each_other_must_be_more() {
        let mut random = StdRng::seed_from_u64(7);
        let law = LogNormal::new(5.0, 0.3).unwrap();
        let (_, alone) = until(0.1, 200_000, || law.sample(&mut random));
        let mut log = 0.0f64;
        let (_, together) = until(0.1, 200_000, || {
            let noise: f64 = StandardNormal.sample(&mut random);
            log = 0.98 * log + 0.3 * (1.0f64 - 0.98 * 0.98).sqrt() * noise;
            (5.0 + log).exp()
        });
        assert!(together.n > 2 * alone.n, "{} and {}", alone.n, together.n);
    }

    #[test]
    fn what_is_not_ok_says_nothing() {
        let mut precision = Precision::new(0.5);
        for i in 0..500 {
            let mut r = record(i, 100.0);
            (r.warmup, r.answer.outcome) = (i % 2 == 0, Some(Outcome::Timeout));
            precision.push(&r);
        }
        assert!(!precision.is_reached() && precision.last().is_none());
    }
}
