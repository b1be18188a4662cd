//! Hostile text made harmless and visible before it reaches a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with everything that could move a cursor, change a colour, start a line or turn the direction of
/// writing replaced by a visible name: `\n`, `\t`, `\x1b`, `\u{202e}`.
///
/// Ordinary text in any script passes as it is, and so does a lone backslash.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            c if !is_hostile(c) => safe.push(c),
            // Writing to a string cannot fail.
            c if (c as u32) < 0x100 => drop(write!(safe, "\\x{:02x}", c as u32)),
            c => drop(write!(safe, "\\u{{{:x}}}", c as u32)),
        }
    }
    Cow::Owned(safe)
}

/// Controls (C0, DEL, C1), line and paragraph separators, marks that turn the direction of writing, and characters
/// that are invisible on purpose. The joiners of Indic scripts and emoji are let through.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escaped text of at most `width` characters, the last one an ellipsis where something was cut off.
pub(crate) fn escape_to(text: &str, width: usize) -> String {
    let safe = escape(text);
    if safe.chars().count() <= width {
        return safe.into_owned();
    }
    safe.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_text_is_made_visible() {
        for (text, safe) in [
            ("plain, ünïcode, 漢字, \\", "plain, ünïcode, 漢字, \\"),
            ("\u{1b}[31mred\u{1b}]0;title\u{7}", "\\x1b[31mred\\x1b]0;title\\x07"),
            ("two\r\nlines\tand\u{2028}more", "two\\r\\nlines\\tand\\u{2028}more"),
            ("\u{9b}31m", "\\x9b31m"),
            ("abc\u{202e}fdp.exe", "abc\\u{202e}fdp.exe"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ] {
            assert_eq!(escape(text), safe);
        }
        assert_eq!(escape_to("abcdef\n", 4), "abc…");
        assert_eq!(escape_to("abcd", 4), "abcd");
    }

    proptest! {
        #[test]
        fn nothing_hostile_is_left(text in any::<String>()) {
            prop_assert!(!escape(&text).chars().any(is_hostile));
        }
    }
}
