//! How far a log's clock is from ours, from lines of requests whose start and end we know.

/// Log lines of a request are written within it; this much outside of it is still believed.
const SLACK_NS: i64 = 50_000_000;

/// Zones differ by multiples of this.
const QUARTER_HOUR_NS: i64 = 15 * 60 * 1_000_000_000;

/// A log's clock against ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// Its clock minus ours; 0 where the lines fit ours as it is.
    pub(super) ahead_ns: i64,
    /// By how much that may be wrong, either way.
    pub(super) within_ns: i64,
    /// Lines that it fits.
    pub(super) fits: usize,
    /// Lines that were looked at.
    pub(super) of: usize,
}

/// What one line says: between which bounds its clock minus ours is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    least: i64,
    most: i64,
}

impl Bounds {
    /// A line written at `told` (the log's clock, to `step`) of a request that ran from `start` to `end` (ours).
    pub(super) fn of(told: i64, step: i64, start: i64, end: i64) -> Self {
        Self { least: told - end - SLACK_NS, most: told + step - start + SLACK_NS }
    }

    fn hold(self, ahead: i64) -> bool {
        self.least <= ahead && ahead <= self.most
    }
}

/// The difference that fits most lines: none if that fits nearly all of them, else a whole number of quarters of an hour
/// (a zone) if one does, else the middle of what is possible.
pub(super) fn compare(lines: &[Bounds]) -> Option<Clock> {
    let of = lines.len();
    let fitting = |ahead: i64| lines.iter().filter(|bounds| bounds.hold(ahead)).count();
    let (least, most) = most_common(lines)?;
    let best = fitting(least);
    let middle = least + (most - least) / 2;
    let quarters = (middle as f64 / QUARTER_HOUR_NS as f64).round() as i64;
    let chosen = [0, quarters * QUARTER_HOUR_NS].into_iter().find(|ahead| fitting(*ahead) * 10 >= best * 9);
    Some(match chosen {
        Some(ahead_ns) => Clock { ahead_ns, within_ns: 0, fits: fitting(ahead_ns), of },
        None => Clock { ahead_ns: middle, within_ns: (most - least) / 2, fits: best, of },
    })
}

/// The interval in which most bounds overlap.
fn most_common(lines: &[Bounds]) -> Option<(i64, i64)> {
    let mut edges: Vec<(i64, bool)> =
        lines.iter().flat_map(|bounds| [(bounds.least, false), (bounds.most, true)]).collect();
    // At one point all that begin there begin before others end.
    edges.sort_unstable();
    let (mut depth, mut deepest, mut found) = (0, 0, None);
    for (i, (at, ends)) in edges.iter().enumerate() {
        if *ends {
            depth -= 1;
            continue;
        }
        depth += 1;
        if depth > deepest {
            deepest = depth;
            found = edges[i..].iter().find(|(_, ends)| *ends).map(|(end, _)| (*at, *end));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;
    const HOUR: i64 = 3_600_000 * MS;

    /// Requests of 800 ms, logged 10 ms before their end, by a clock that is so far ahead.
    fn logged(ahead: i64, step: i64) -> Vec<Bounds> {
        (0..20)
            .map(|i| {
                let (start, end) = (i * 137 * MS, (i * 137 + 800) * MS);
                let at = end - 10 * MS + ahead;
                Bounds::of(at.div_euclid(step) * step, step, start, end)
            })
            .collect()
    }

    #[test]
    fn clocks_that_agree() {
        for step in [1, MS, 1000 * MS] {
            let clock = compare(&logged(0, step)).unwrap();
            assert_eq!(clock, Clock { ahead_ns: 0, within_ns: 0, fits: 20, of: 20 });
        }
        assert_eq!(compare(&[]), None);
    }

    #[test]
    fn a_zone_is_told_exactly() {
        for hours in [-5, 2, 14] {
            assert_eq!(compare(&logged(hours * HOUR, 1000 * MS)).unwrap().ahead_ns, hours * HOUR);
        }
        let india = 5 * HOUR + HOUR / 2;
        assert_eq!(compare(&logged(india, MS)).unwrap().ahead_ns, india);
    }

    #[test]
    fn one_line_of_another_clock_changes_nothing() {
        let mut lines = logged(0, MS);
        lines.push(Bounds::of(9 * HOUR, MS, 0, 800 * MS));
        assert_eq!(compare(&lines).unwrap(), Clock { ahead_ns: 0, within_ns: 0, fits: 20, of: 21 });
    }

    proptest! {
        #[test]
        fn any_difference_is_found_within_what_is_said(ahead in -100 * HOUR..100 * HOUR) {
            let clock = compare(&logged(ahead, MS)).unwrap();
            prop_assert_eq!(clock.fits, 20);
            // Where it fits as it is, or as a zone, it is off by less than a request.
            prop_assert!((clock.ahead_ns - ahead).abs() <= clock.within_ns.max(900 * MS));
        }
    }
}
