//! Instants as files write them, exact to the nanosecond: dates with up to nine digits of a second, and plain numbers.

/// Nanoseconds since 1970 of `YYYY-MM-DD hh:mm:ss`, with `T` or blanks between, any count of fraction digits (those
/// beyond nanoseconds are cut), and `Z` or an offset behind. Without an offset it is taken as UTC: only differences
/// count.
pub fn calendar(text: &str) -> Option<i64> {
    let (date, rest) = text.trim().split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-');
    let (year, month, day) =
        (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let rest = rest.trim_start();
    let zone_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone_at);
    let (time, fraction) = time.trim_end().split_once(['.', ',']).unwrap_or((time.trim_end(), "0"));
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |text| digits(text, 2))?;
    let is_date = (1970..=2200).contains(&year) && (1..=12).contains(&month);
    if !is_date || !(1..=days_of(year, month)).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    Some(seconds * 1_000_000_000 + nanos(fraction)?)
}

/// Billionths of a plain decimal number such as `12`, `0.25` or `1e3`.
pub(super) fn billionths(text: &str) -> Option<i128> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    if !unsigned.is_empty() && plain(unsigned) && unsigned.len() <= 18 && plain(fraction) {
        let value = unsigned.parse::<i128>().ok()? * 1_000_000_000 + i128::from(nanos(fraction)?);
        return Some(if whole.starts_with('-') { -value } else { value });
    }
    of_float(text.parse().ok()?)
}

/// Billionths of a float, to its own precision.
pub(super) fn of_float(value: f64) -> Option<i128> {
    (value.is_finite() && value.abs() < 1e18).then(|| (value * 1e9).round() as i128)
}

fn digits(text: &str, most: usize) -> Option<i64> {
    let is_number = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn nanos(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nine = fraction.bytes().map(|byte| i64::from(byte - b'0')).chain(std::iter::repeat(0)).take(9);
    Some(nine.fold(0, |sum, digit| sum * 10 + digit))
}

/// Seconds east of UTC of nothing, `Z`, `+01`, `+01:00` or `+0100`.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.bytes().next() {
        None => return Some(0),
        Some(b'Z' | b'z') => return (zone.len() == 1).then_some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let plain: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match plain.len() {
        2 => (digits(&plain, 2)?, 0),
        4 if plain.is_ascii() => (digits(&plain[..2], 2)?, digits(&plain[2..], 2)?),
        _ => return None,
    };
    Some(sign * (hours * 3_600 + minutes * 60))
}

const fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to that date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let years: i64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_to_the_nanosecond() {
        let base = calendar("2023-11-16 18:17:03").unwrap();
        assert_eq!(base, 1_700_158_623_000_000_000);
        for (text, ns) in [
            ("2023-11-16 18:17:03.9799500", 979_950_000),
            ("2023-11-16T18:17:03.1Z", 100_000_000),
            ("2023-11-16 18:17:03.009930+00:00", 9_930_000),
            ("2023-11-16 19:17:03.0000001234+01:00", 123),
            ("2023-11-16 19:47:03 +0130", 0),
            ("2023-11-16 13:17:03-05", 0),
        ] {
            assert_eq!(calendar(text), Some(base + ns), "{text}");
        }
        assert_eq!(calendar("2024-02-29 00:00:00").map(|ns| ns % 86_400_000_000_000), Some(0));
        for text in
            ["", "2023-02-29 00:00:00", "2023-13-01 00:00:00", "2023-11-16", "12", "2023-11-16 25:00:00"]
        {
            assert_eq!(calendar(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_to_the_billionth() {
        for (text, value) in [
            ("0", 0),
            ("12.5", 12_500_000_000),
            ("0.1234567", 123_456_700),
            ("19440110.0", 19_440_110_000_000_000),
            ("1e3", 1_000_000_000_000),
            ("-1.5", -1_500_000_000),
        ] {
            assert_eq!(billionths(text), Some(value), "{text}");
        }
        for text in ["", "-", "x", "nan", "1e30", "1.2.3"] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }
}
