//! Instants as logs write them.

use ttft_plan::dataset::calendar;

/// An instant on the wall clock of whoever wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Nanoseconds since 1970; without a zone in the text taken as UTC.
    pub(super) unix_ns: i64,
    /// How much later it may have been: what its last digit is worth.
    pub(super) step_ns: i64,
}

const SECOND: i64 = 1_000_000_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads RFC 3339 and its looser kin, seconds to nanoseconds since 1970, `30/Nov/2026:16:20:05 +0000` of nginx and
/// Apache, and `11-30 16:20:05` of vLLM, whose year is `year`.
pub(super) fn told(text: &str, year: i64) -> Option<Told> {
    let text = text.trim().trim_matches(['[', ']', '"']);
    number(text).or_else(|| date(text, year))
}

/// Seconds, milliseconds, microseconds or nanoseconds, told apart by size.
fn number(text: &str) -> Option<Told> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(fraction) {
        return None;
    }
    let unit = match whole.len() {
        9..=11 => SECOND,
        12..=13 => 1_000_000,
        14..=16 => 1_000,
        17..=19 => 1,
        _ => return None,
    };
    let mut unix_ns = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    let mut step_ns = unit;
    for digit in fraction.bytes() {
        if step_ns == 1 {
            break;
        }
        step_ns /= 10;
        unix_ns += i64::from(digit - b'0') * step_ns;
    }
    Some(Told { unix_ns, step_ns })
}

fn date(text: &str, year: i64) -> Option<Told> {
    let (day, clock) = text.split_once(['T', 't', ' ']).or_else(|| text.split_once(':'))?;
    let parts: Vec<&str> = day.split(['-', '/']).collect();
    let day = match parts.as_slice() {
        // 30/Nov/2026:16:20:05 has its first colon behind the year.
        [day, month, rest] if month.len() == 3 => {
            let number = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(month))? + 1;
            let (year, clock) = rest.split_once(':').unwrap_or((rest, clock));
            let head = format!("{year}-{number:02}-{day} {clock}");
            let zone = text.rsplit_once(' ').map_or("", |(_, zone)| zone);
            return dated(&format!("{head}{zone}"));
        }
        [year, month, day] => format!("{year}-{month}-{day}"),
        [month, day] => format!("{year}-{month}-{day}"),
        _ => return None,
    };
    dated(&format!("{day} {clock}"))
}

fn dated(text: &str) -> Option<Told> {
    let unix_ns = calendar(text)?;
    let fraction = text
        .split_once(['.', ','])
        .map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count().min(9));
    Some(Told { unix_ns, step_ns: SECOND / 10_i64.pow(fraction as u32) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms() {
        const AT: i64 = 1_796_055_605;
        for (text, fraction, step) in [
            ("2026-11-30T16:20:05Z", 0, SECOND),
            ("2026-11-30T16:20:05.123Z", 123_000_000, 1_000_000),
            ("2026-11-30T18:20:05.123456+02:00", 123_456_000, 1_000),
            ("2026-11-30 16:20:05,5", 500_000_000, 100_000_000),
            ("[2026-11-30T16:20:05.123Z]", 123_000_000, 1_000_000),
            ("2026/11/30 16:20:05", 0, SECOND),
            ("30/Nov/2026:16:20:05 +0000", 0, SECOND),
            ("30/Nov/2026:11:20:05 -0500", 0, SECOND),
            ("11-30 16:20:05", 0, SECOND),
            ("1796055605", 0, SECOND),
            ("1796055605.123", 123_000_000, 1_000_000),
            ("1796055605123", 123_000_000, 1_000_000),
            ("1796055605123456", 123_456_000, 1_000),
            ("1796055605123456789", 123_456_789, 1),
        ] {
            let wanted = Told { unix_ns: AT * SECOND + fraction, step_ns: step };
            assert_eq!(told(text, 2026), Some(wanted), "{text}");
        }
        for text in ["", "yesterday", "16:20:05", "12", "30/Foo/2026:16:20:05 +0000", "2026-13-40T00:00:00Z"]
        {
            assert_eq!(told(text, 2026), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,40}") {
            let _ = told(&text, 2026);
        }

        #[test]
        fn digits_and_their_separators_are_survived(text in "[0-9:/TZ +.,-]{0,40}") {
            let _ = told(&text, 2026);
        }
    }
}
