//! Figures as sentences have them.

/// Milliseconds in three figures and a unit that suits.
pub(crate) fn ms(value: f64) -> String {
    match value.abs() {
        v if v < 1.0 => format!("{:.0} µs", value * 1e3),
        v if v < 10.0 => format!("{value:.2} ms"),
        v if v < 100.0 => format!("{value:.1} ms"),
        v if v < 10_000.0 => format!("{value:.0} ms"),
        _ => format!("{:.1} s", value / 1e3),
    }
}
