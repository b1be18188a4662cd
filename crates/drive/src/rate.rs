//! The rate of an open loop over time, and the instants at which so many arrivals are expected.

use ttft_model::{Load, Nanos, Stop};

/// A rate in requests a second: linear in parts, one after another, and constant at its last value behind them.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    parts: Vec<Part>,
    /// Behind the parts.
    last: f64,
}

/// A time of a rate that changes steadily, or not at all.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    seconds: f64,
    from: f64,
    to: f64,
}

impl Part {
    /// Arrivals expected in it.
    fn expected(self) -> f64 {
        self.seconds * f64::midpoint(self.from, self.to)
    }

    /// When so many are expected, in seconds after its beginning: the root of `from·t + (to − from)/(2·seconds)·t²`, in
    /// the form that loses no digits and holds for falling rates and for none at the beginning.
    fn when(self, arrivals: f64) -> f64 {
        let slope = (self.to - self.from) / self.seconds;
        let root = (self.from * self.from + 2.0 * slope * arrivals).max(0.0).sqrt();
        if arrivals <= 0.0 { 0.0 } else { 2.0 * arrivals / (self.from + root) }
    }
}

impl Rate {
    /// The same rate for ever.
    pub fn constant(rate: f64) -> Self {
        Self { parts: Vec::new(), last: rate }
    }

    /// From `from` to `to` over so many seconds: steadily, or in equal steps, the first at `from`, the last at `to`.
    pub fn changing(from: f64, to: f64, seconds: f64, steps: Option<u32>) -> Self {
        let parts = match steps {
            None => vec![Part { seconds, from, to }],
            Some(steps) => {
                let steps = steps.max(2);
                let height = |i: u32| from + (to - from) * f64::from(i) / f64::from(steps - 1);
                let part = |i| Part { seconds: seconds / f64::from(steps), from: height(i), to: height(i) };
                (0..steps).map(part).collect()
            }
        };
        Self { parts, last: to }
    }

    /// What a stage asks for; nothing if its load has no rate. A stage that ends by a count takes as long for its change
    /// as the count needs on average.
    pub fn of(load: &Load, stop: &Stop) -> Option<Self> {
        let Load::Open { rate, rate_to, rate_steps, .. } = *load else { return None };
        let Some(to) = rate_to else { return Some(Self::constant(rate)) };
        let by_count = stop.requests.map(|n| n as f64 / f64::midpoint(rate, to));
        let seconds = stop.duration.map(|span| span.0.as_secs_f64()).or(by_count);
        let seconds = seconds.filter(|seconds| *seconds > 0.0 && seconds.is_finite());
        Some(seconds.map_or(Self::constant(rate), |seconds| Self::changing(rate, to, seconds, rate_steps)))
    }

    /// How long it changes.
    pub fn changes_for(&self) -> Nanos {
        Nanos((self.parts.iter().map(|part| part.seconds).sum::<f64>() * 1e9) as i64)
    }

    /// When so many arrivals are expected, after the beginning; nothing if never.
    pub(crate) fn when(&self, mut arrivals: f64) -> Option<Nanos> {
        let mut begin = 0.0;
        for part in &self.parts {
            let expected = part.expected();
            if arrivals < expected {
                return Some(Nanos(((begin + part.when(arrivals)) * 1e9) as i64));
            }
            arrivals -= expected;
            begin += part.seconds;
        }
        (self.last > 0.0).then(|| Nanos(((begin + arrivals / self.last) * 1e9) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(rate: &Rate, arrivals: f64) -> f64 {
        rate.when(arrivals).unwrap().as_secs_f64()
    }

    #[test]
    fn a_constant_rate_is_a_line() {
        assert!((seconds(&Rate::constant(4.0), 10.0) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_ramp_expects_the_area_below_it() {
        for (from, to) in [(0.0, 20.0), (20.0, 0.0), (2.0, 18.0), (10.0, 10.0)] {
            let rate = Rate::changing(from, to, 10.0, None);
            for i in 0..1_000u32 {
                let t = f64::from(i) / 100.0;
                let area = from * t + (to - from) / 20.0 * t * t;
                let back = seconds(&rate, area);
                // Where the rate is almost none, instants are known only by the root of their rounding.
                assert!((back - t).abs() < 1e-5, "{from} to {to} at {t}: {back}");
            }
        }
        assert_eq!(Rate::changing(20.0, 0.0, 10.0, None).when(100.5), None, "nothing comes any more");
        let behind = seconds(&Rate::changing(0.0, 20.0, 10.0, None), 140.0);
        assert!((behind - 12.0).abs() < 1e-9, "{behind}");
    }

    #[test]
    fn steps_are_of_equal_length_and_height() {
        let rate = Rate::changing(1.0, 4.0, 8.0, Some(4));
        for (arrivals, at) in [(1.0, 1.0), (2.0, 2.0), (4.0, 3.0), (6.0, 4.0), (12.0, 6.0), (16.0, 7.0)] {
            assert!((seconds(&rate, arrivals) - at).abs() < 1e-9, "{arrivals} arrivals");
        }
        assert_eq!(rate.changes_for(), Nanos::from_millis(8_000));
    }
}
