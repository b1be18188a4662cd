//! Numbers as people read them: three figures, grouped thousands, a unit that suits.

/// The unit of a row or column of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Micros,
    Millis,
    Seconds,
}

impl Unit {
    /// The unit in which that many milliseconds read best.
    pub(crate) fn of(ms: Option<f64>) -> Self {
        match ms.map(f64::abs) {
            Some(ms) if ms > 0.0 && ms < 1.0 => Self::Micros,
            Some(ms) if ms >= 10_000.0 => Self::Seconds,
            _ => Self::Millis,
        }
    }

    /// Its sign.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
        }
    }

    /// That many milliseconds in this unit, without its sign.
    pub(crate) fn show(self, ms: f64) -> String {
        match self {
            Self::Micros => figures(ms * 1e3),
            Self::Millis => figures(ms),
            Self::Seconds => figures(ms / 1e3),
        }
    }
}

/// Milliseconds with the unit that suits them; a dash for unknown.
pub fn time(ms: Option<f64>) -> String {
    let unit = Unit::of(ms);
    ms.map_or_else(|| "–".to_owned(), |ms| format!("{} {}", unit.show(ms), unit.sign()))
}

/// At least three figures, thousands grouped, `∞` for infinity.
pub(crate) fn figures(value: f64) -> String {
    match value.abs() {
        v if v.is_infinite() => "∞".to_owned(),
        0.0 => "0".to_owned(),
        v if v < 0.005 => "0.00".to_owned(),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        v => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(v.round() as u64))
        }
    }
}

/// A count with grouped thousands.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share of one as per cent.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.1 => "< 0.1 %".to_owned(),
        p if p > 99.9 && p < 100.0 => "> 99.9 %".to_owned(),
        p if p.fract().abs() < 1e-9 => format!("{p:.0} %"),
        p => format!("{p:.1} %"),
    }
}

/// Which of the two words goes with that count.
pub(crate) const fn plural(n: u64, one: &'static str, more: &'static str) -> &'static str {
    if n == 1 { one } else { more }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures() {
        for (value, text) in [
            (0.0, "0"),
            (0.034, "0.03"),
            (-0.004, "0.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (-1234.4, "-1,234"),
            (1_234_567.0, "1,234,567"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(figures(value), text, "{value}");
        }
    }

    #[test]
    fn times_and_shares() {
        assert_eq!(time(Some(0.0412)), "41.2 µs");
        assert_eq!(time(Some(412.0)), "412 ms");
        assert_eq!(time(Some(12_340.0)), "12.3 s");
        assert_eq!(time(None), "–");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(0.9999), "> 99.9 %");
        assert_eq!(percent(0.12345), "12.3 %");
    }
}
