//! Which local ports a new connection may take.
//!
//! `connect` looks for a free port by trying, and with thousands taken for one server it tries for milliseconds. A
//! small part of the range, another one for each connection, keeps the search short.

use std::cell::Cell;
use std::ops::RangeInclusive;

use ttft_kernel::{local_ports, mono_now};

/// Ports that one connection may choose from.
const WINDOW: u16 = 128;

/// Goes round the system's range of local ports, a window a connection.
pub(crate) struct Ports {
    range: Option<RangeInclusive<u16>>,
    next: Cell<u16>,
}

impl Ports {
    /// The system's range, begun at some window: other workers begin at others.
    pub(crate) fn of_system() -> Self {
        Self { range: local_ports(), next: Cell::new((mono_now().0 / 1_000) as u16) }
    }

    /// The window of the next connection; `None` where the range is not known or too small to matter.
    pub(crate) fn next_window(&self) -> Option<RangeInclusive<u16>> {
        let range = self.range.as_ref()?;
        let windows = range.end().checked_sub(*range.start())? / WINDOW;
        if windows < 2 {
            return None;
        }
        let window = self.next.get() % windows;
        self.next.set(self.next.get().wrapping_add(1));
        let start = range.start() + window * WINDOW;
        Some(start..=start + WINDOW - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_stay_in_the_range_and_go_round() {
        let ports = Ports { range: Some(32_768..=60_999), next: Cell::new(u16::MAX - 3) };
        let windows: Vec<_> = (0..300).filter_map(|_| ports.next_window()).collect();
        assert_eq!(windows.len(), 300);
        assert!(windows.iter().all(|w| *w.start() >= 32_768 && *w.end() <= 60_999 && w.len() == 128));
        assert_ne!(windows[0], windows[1]);
        assert_eq!(Ports { range: Some(RangeInclusive::new(1, 0)), next: Cell::new(0) }.next_window(), None);
        assert_eq!(Ports { range: None, next: Cell::new(0) }.next_window(), None);
    }
}
