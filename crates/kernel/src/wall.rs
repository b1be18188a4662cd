//! Kernel stamps are on the wall clock; this turns them into instants of the monotonic axis, across steps of the
//! wall clock.
//!
//! Both clocks are slewed together, so their difference is constant until somebody sets the wall clock. A stamp
//! taken before a step and read after it must be converted by the old difference. Which one applies is decided by
//! causality: a stamp converted by the old difference must lie before the step, by the new one after it, and
//! neither after the read that returned it. Where both are possible the stamp is not trusted.

use ttft_model::{Nanos, Stamp};

use crate::{mono_now, real_now};

/// Differences below this are noise of reading two clocks, not a step.
const NOISE: i64 = 1_000;

/// The difference between the wall clock and the monotonic one, kept true by every conversion.
#[derive(Debug, Clone)]
pub struct WallOffset {
    /// Wall − monotonic, now.
    offset: i64,
    /// When `offset` was last seen to hold.
    confirmed: Nanos,
    /// The last step.
    step: Option<Step>,
    steps: u32,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    /// The difference before it.
    old_offset: i64,
    /// It happened after this instant,
    after: Nanos,
    /// and before this one.
    before: Nanos,
}

impl Default for WallOffset {
    fn default() -> Self {
        Self::new()
    }
}

impl WallOffset {
    /// Measures the difference.
    pub fn new() -> Self {
        let (offset, now) = measure();
        Self::from_reading(offset, now)
    }

    fn from_reading(offset: i64, now: Nanos) -> Self {
        Self { offset, confirmed: now, step: None, steps: 0 }
    }

    /// Steps of the wall clock seen so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The stamp of a read that just returned. `not_before` is an instant before which the bytes cannot have
    /// arrived (the start of the connection, say).
    pub fn convert(&mut self, kernel_real_ns: Option<i64>, not_before: Nanos) -> Stamp {
        let user = mono_now();
        let Some(kernel) = kernel_real_ns else { return Stamp::user(user) };
        self.observe(user, real_now(), measure);
        Stamp { kernel: self.resolve(kernel, user, not_before), user }
    }

    /// The same for a stamp whose read was some time ago: a transmit stamp.
    pub fn convert_past(&mut self, kernel_real_ns: i64, not_before: Nanos) -> Option<Nanos> {
        self.convert(Some(kernel_real_ns), not_before).kernel
    }

    /// Compares a reading of both clocks with the known difference; `remeasure` is asked when they disagree, since
    /// being preempted between two readings looks like a step.
    fn observe(&mut self, mono: Nanos, real: i64, remeasure: impl FnOnce() -> (i64, Nanos)) {
        if ((real - mono.0) - self.offset).abs() <= NOISE {
            self.confirmed = mono;
            return;
        }
        let (offset, now) = remeasure();
        if (offset - self.offset).abs() > NOISE {
            self.step = Some(Step { old_offset: self.offset, after: self.confirmed, before: now });
            self.offset = offset;
            self.steps += 1;
        }
        self.confirmed = now;
    }

    fn resolve(&self, kernel: i64, user: Nanos, not_before: Nanos) -> Option<Nanos> {
        let new = Nanos(kernel - self.offset);
        let new_holds = new.0 <= user.0 + NOISE;
        let Some(step) = self.step else {
            return new_holds.then_some(new.min(user));
        };
        let old = Nanos(kernel - step.old_offset);
        let new_holds = new_holds && new.0 >= step.after.0 - NOISE;
        let old_holds = old.0 <= step.before.0 + NOISE && old >= not_before && old <= user;
        match (new_holds, old_holds) {
            (true, false) => Some(new.min(user)),
            (false, true) => Some(old),
            _ => None,
        }
    }
}

/// Wall − monotonic, from the tightest of a few bracketed readings, and the instant of that reading.
fn measure() -> (i64, Nanos) {
    let mut best = (i64::MAX, 0, Nanos::ZERO);
    for _ in 0..8 {
        let before = mono_now();
        let real = real_now();
        let after = mono_now();
        let width = (after - before).0;
        if width < best.0 {
            best = (width, real - before.0 - width / 2, after);
        }
        if width < 200 {
            break;
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OFFSET: i64 = 1_700_000_000_000_000_000;

    /// A read at `user` of bytes that arrived at `arrived`, the wall clock having stepped by `step` at `stepped`.
    fn read_after_step(arrived: i64, stepped: i64, step: i64, user: i64) -> Option<Nanos> {
        let mut wall = WallOffset::from_reading(OFFSET, Nanos(1_000_000));
        let offset_at = |t: i64| if t >= stepped { OFFSET + step } else { OFFSET };
        wall.observe(Nanos(user), user + offset_at(user), || (offset_at(user), Nanos(user)));
        wall.resolve(arrived + offset_at(arrived), Nanos(user), Nanos(1_000_000))
    }

    #[test]
    fn no_step_converts_exactly() {
        assert_eq!(read_after_step(5_000_000, i64::MAX, 0, 5_020_000), Some(Nanos(5_000_000)));
    }

    #[test]
    fn large_steps_either_way_move_nothing() {
        for step in [-3_600_000_000_000, 3_600_000_000_000, -50_000_000, 50_000_000] {
            assert_eq!(
                read_after_step(5_000_000, 6_000_000, step, 7_000_000),
                Some(Nanos(5_000_000)),
                "{step}"
            );
            assert_eq!(
                read_after_step(6_500_000, 6_000_000, step, 7_000_000),
                Some(Nanos(6_500_000)),
                "{step}"
            );
        }
    }

    #[test]
    fn being_preempted_between_two_readings_is_no_step() {
        let mut wall = WallOffset::from_reading(OFFSET, Nanos(0));
        wall.observe(Nanos(1_000_000), 1_000_000 + OFFSET + 4_000_000, || (OFFSET + 30, Nanos(5_000_000)));
        assert_eq!((wall.steps(), wall.offset), (0, OFFSET));
    }

    #[test]
    fn later_requests_are_untouched_by_an_old_step() {
        let mut wall = WallOffset::from_reading(OFFSET, Nanos(0));
        let new = OFFSET + 250_000_000;
        wall.observe(Nanos(1_000_000_000), 1_000_000_000 + new, || (new, Nanos(1_000_000_000)));
        assert_eq!(wall.steps(), 1);
        let arrived = 9_000_000_000;
        wall.observe(Nanos(arrived + 10_000), arrived + 10_000 + new, || unreachable!());
        assert_eq!(
            wall.resolve(arrived + new, Nanos(arrived + 10_000), Nanos(8_900_000_000)),
            Some(Nanos(arrived))
        );
    }

    #[test]
    fn the_real_clocks_agree_with_themselves() {
        let mut wall = WallOffset::new();
        let stamp = wall.convert(Some(real_now()), Nanos::ZERO);
        let lag = stamp.lag().expect("a stamp taken just now converts");
        assert!((0..1_000_000_000).contains(&lag.0), "{lag:?}");
    }

    proptest! {
        /// Whatever the step, a conversion gives the true instant or declines; it never invents one.
        #[test]
        fn a_step_never_moves_an_instant(
            arrived in 2_000_000i64..10_000_000, stepped in 2_000_000i64..10_000_000,
            step in -20_000_000i64..20_000_000, late in 0i64..5_000_000,
        ) {
            let got = read_after_step(arrived, stepped, step, arrived + late);
            // A step below the noise cannot be told from none.
            if let Some(at) = got { prop_assert!((at.0 - arrived).abs() <= NOISE, "{at:?} for {arrived}"); }
        }
    }
}
