//! Strings and numbers of a JSON text, once somebody wants their value.

/// Appends a string's value, escapes resolved. What is not UTF-8, or half a surrogate pair, becomes U+FFFD.
pub(crate) fn append(out: &mut String, mut raw: &[u8]) {
    while let Some(slash) = memchr::memchr(b'\\', raw) {
        out.push_str(&String::from_utf8_lossy(&raw[..slash]));
        raw = &raw[slash + 1..];
        let Some((&letter, rest)) = raw.split_first() else { return };
        raw = rest;
        match letter {
            b'n' => out.push('\n'),
            b't' => out.push('\t'),
            b'r' => out.push('\r'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'u' => raw = append_unicode(out, raw),
            other => out.push(other as char),
        }
    }
    out.push_str(&String::from_utf8_lossy(raw));
}

/// Appends the character of a `\u` escape whose digits begin `raw`; gives what follows it.
fn append_unicode<'a>(out: &mut String, raw: &'a [u8]) -> &'a [u8] {
    let Some(first) = hex(raw) else {
        out.push(char::REPLACEMENT_CHARACTER);
        return raw;
    };
    let rest = &raw[4..];
    if (0xD800..0xDC00).contains(&first)
        && let Some(second) = rest.strip_prefix(b"\\u").and_then(hex)
        && (0xDC00..0xE000).contains(&second)
    {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return &rest[6..];
    }
    out.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    rest
}

fn hex(raw: &[u8]) -> Option<u32> {
    let digits = raw.get(..4)?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | (*digit as char).to_digit(16)?))
}

/// A whole number that is not negative.
pub(crate) fn whole(raw: &[u8]) -> Option<u64> {
    if raw.iter().all(u8::is_ascii_digit) {
        return raw
            .iter()
            .try_fold(0_u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    }
    let value = number(raw)?;
    (0.0..1e18).contains(&value).then_some(value as u64)
}

/// Any number.
pub(crate) fn number(raw: &[u8]) -> Option<f64> {
    std::str::from_utf8(raw).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes() {
        for (raw, text) in [
            (&br#"a\nb\u0041\/\\\""#[..], "a\nbA/\\\""),
            (br"\ud83d\ude42!", "\u{1F642}!"),
            (br"\ud83d!", "\u{FFFD}!"),
            (br"\ud83d\u0041", "\u{FFFD}A"),
            (br"\u12", "\u{FFFD}12"),
            (b"\xE4\xBD\xA0", "\u{4F60}"),
            (b"\\", ""),
        ] {
            let mut out = String::new();
            append(&mut out, raw);
            assert_eq!(out, text, "{raw:?}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(
            [&b"12"[..], b"12.0", b"-1", b"x", b"1e3"].map(whole),
            [Some(12), Some(12), None, None, Some(1000)]
        );
        assert_eq!([&b"1.5"[..], b"-2", b"1e999"].map(number), [Some(1.5), Some(-2.0), None]);
    }

    proptest! {
        #[test]
        fn undoes_a_serializer(text in ".*") {
            let json = serde_json::to_string(&text).unwrap();
            let mut out = String::new();
            append(&mut out, &json.as_bytes()[1..json.len() - 1]);
            prop_assert_eq!(out, text);
        }
    }
}
