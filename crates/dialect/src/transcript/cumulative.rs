//! Texts of which each event repeats all that came before, and servers that send increments all the same.

use ttft_model::Channel;

/// So many events in a row that begin with the text before them settle that a server repeats it.
const SETTLED: u32 = 4;

/// Increments hardly ever have so many bytes in common.
const LONG: usize = 16;

/// What an output value adds to the text so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It goes behind the text so far.
    More,
    /// It is the whole text so far, of which so many bytes are not new.
    Whole(usize),
    /// The text so far is this: what had looked like repetition was none. Empty unless texts are kept.
    Instead(Vec<u8>),
}

/// The texts of one answer, by channel and choice; as JSON writes them.
#[derive(Debug)]
pub(super) struct Cumulative {
    keep: bool,
    texts: Vec<Text>,
}

#[derive(Debug)]
struct Text {
    channel: Channel,
    choice: usize,
    last: Vec<u8>,
    /// Events that began with the one before them.
    repeats: u32,
    /// The server sends increments.
    increments: bool,
    /// All values one behind the other, until it is settled what they are.
    joined: Vec<u8>,
}

impl Cumulative {
    pub(super) fn new(keep: bool) -> Self {
        Self { keep, texts: Vec::new() }
    }

    /// What a value adds; `None` if it says nothing new.
    pub(super) fn step(&mut self, channel: Channel, choice: usize, raw: &[u8]) -> Option<Step> {
        let known = self.texts.iter().position(|text| text.channel == channel && text.choice == choice);
        let Some(known) = known else {
            let joined = if self.keep { raw.to_vec() } else { Vec::new() };
            let last = raw.to_vec();
            self.texts.push(Text { channel, choice, last, repeats: 0, increments: false, joined });
            return Some(Step::Whole(0));
        };
        let text = &mut self.texts[known];
        if text.increments {
            return Some(Step::More);
        }
        let settled = text.repeats >= SETTLED;
        let before = without_open_end(&text.last);
        let same = before.iter().zip(raw).take_while(|(a, b)| a == b).count();
        let repeated = same == before.len();
        // Some engines take back the end of a text; increments have hardly anything in common.
        let taken_back = same == raw.len() || (same >= LONG && 4 * same >= 3 * before.len());
        if repeated || taken_back || settled {
            let grown = raw.len() > text.last.len() || (repeated && raw.len() > same && *raw != *text.last);
            text.repeats += u32::from(repeated && grown);
            text.last.truncate(same);
            text.last.extend_from_slice(&raw[same..]);
            if self.keep && !settled {
                text.joined.extend_from_slice(raw);
            }
            return grown.then_some(Step::Whole(same));
        }
        text.increments = true;
        text.last = Vec::new();
        let mut joined = std::mem::take(&mut text.joined);
        if self.keep {
            joined.extend_from_slice(raw);
        }
        Some(Step::Instead(joined))
    }
}

/// A text without what is at its end only for now: replacement characters, which stand for a character that has not
/// come whole, and the closing marks of a list of parts that one vendor writes into the text.
fn without_open_end(mut text: &[u8]) -> &[u8] {
    while let Some(rest) = text.strip_suffix("\u{FFFD}".as_bytes()).or_else(|| text.strip_suffix(br"\ufffd"))
    {
        text = rest;
    }
    if text.starts_with(b"[{") {
        while let Some((b'"' | b'\\' | b'}' | b']', rest)) = text.split_last() {
            text = rest;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of values: the text after each, and whether it was output.
    fn check(values: &[&str], expected: &[(&str, bool)]) {
        let mut cumulative = Cumulative::new(true);
        let mut so_far = Vec::new();
        for (value, (text, output)) in values.iter().zip(expected) {
            let step = cumulative.step(Channel::Text, 0, value.as_bytes());
            assert_eq!(step.is_some(), *output, "{value:?} of {values:?}");
            match step {
                Some(Step::More) => so_far.extend_from_slice(value.as_bytes()),
                Some(Step::Whole(_)) => so_far = value.as_bytes().to_vec(),
                Some(Step::Instead(joined)) => so_far = joined,
                None => {}
            }
            assert_eq!(String::from_utf8_lossy(&so_far), *text, "{value:?} of {values:?}");
        }
    }

    #[test]
    fn each_repeats_what_came_before() {
        check(
            &["Hi", "Hi there", "Hi there", "Hi there!"],
            &[("Hi", true), ("Hi there", true), ("Hi there", false), ("Hi there!", true)],
        );
    }

    #[test]
    fn increments_are_seen() {
        check(&[" think", " this"], &[(" think", true), (" think this", true)]);
        check(&[" a", " b"], &[(" a", true), (" a b", true)]);
        check(&["Hi", " there", "!"], &[("Hi", true), ("Hi there", true), ("Hi there!", true)]);
        check(&["1", "12", "3", "3"], &[("1", true), ("12", true), ("1123", true), ("11233", true)]);
    }

    #[test]
    fn a_taken_back_end_is_no_increment() {
        check(&["Hello wor", "Hello wo"], &[("Hello wor", true), ("Hello wor", false)]);
        let long = "It was the best of tim";
        check(&[long, "It was the best of the"], &[(long, true), (long, false)]);
        check(&["\u{FFFD}", "你", "你好"], &[("\u{FFFD}", true), ("你", true), ("你好", true)]);
        check(&["a\\ufffd", "a你", "a你好"], &[("a\\ufffd", true), ("a你", true), ("a你好", true)]);
    }

    #[test]
    fn a_list_of_parts_that_grows() {
        let (first, second) = (r#"[{\"text\":\"Hi\"}]"#, r#"[{\"text\":\"Hi you\"}]"#);
        check(&[first, second, second], &[(first, true), (second, true), (second, false)]);
    }

    #[test]
    fn channels_and_choices_are_apart() {
        let mut cumulative = Cumulative::new(false);
        assert_eq!(cumulative.step(Channel::Text, 0, b"abc"), Some(Step::Whole(0)));
        assert_eq!(cumulative.step(Channel::Text, 1, b"a"), Some(Step::Whole(0)));
        assert_eq!(cumulative.step(Channel::Reasoning, 0, b"a"), Some(Step::Whole(0)));
        assert_eq!(cumulative.step(Channel::Text, 1, b"a"), None);
    }
}
