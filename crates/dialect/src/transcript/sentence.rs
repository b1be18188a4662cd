//! When the first sentence of an answer was there, told from its text as it comes, without keeping it.
//!
//! A sentence ends with `.`, `!`, `?` or `…` before white space or the text's end, closing quotes and brackets apart;
//! with `。`, `！` or `？` at once; and at a line's end. A point behind a number or a single letter (`1.`, `J.`) ends
//! none. What an abbreviation is nobody knows here: `Dr. ` ends one. The instant is that of the event that brought its
//! last character, though it is known only later.

use ttft_model::Stamp;

/// Follows one text.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstSentence {
    state: State,
    /// Inside an escape of JSON: the letter behind the backslash, or so many digits of a `\u` with their value.
    escape: Escape,
    /// Bytes of a character that is not complete.
    partial: u32,
    /// Letters or digits since the last white space, and whether all of them are digits.
    word: u32,
    is_number: bool,
    /// The last event with text that is not white space.
    last: Option<Stamp>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum State {
    #[default]
    Open,
    /// A sentence ended there if what follows is white space.
    Perhaps(Stamp),
    Done(Stamp),
}

#[derive(Debug, Clone, Copy, Default)]
enum Escape {
    #[default]
    None,
    Slash,
    Unicode {
        digits: u8,
        value: u32,
    },
}

impl FirstSentence {
    /// Whether it is known.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }

    /// The instant; of a text that is over, so that nothing follows.
    pub(super) fn at_end(&self) -> Option<Stamp> {
        match self.state {
            State::Open => None,
            State::Perhaps(at) | State::Done(at) => Some(at),
        }
    }

    /// More text, as JSON writes it, of an event with that stamp.
    pub(super) fn push(&mut self, raw: &[u8], at: Stamp) {
        for &byte in raw {
            if self.is_done() {
                return;
            }
            match self.escape {
                Escape::None if byte == b'\\' => self.escape = Escape::Slash,
                Escape::None => self.byte(byte, at),
                Escape::Slash => {
                    self.escape = Escape::None;
                    match byte {
                        b'u' => self.escape = Escape::Unicode { digits: 0, value: 0 },
                        b'n' | b'r' => self.char('\n', at),
                        b't' | b'b' | b'f' => self.char(' ', at),
                        other => self.char(char::from(other), at),
                    }
                }
                Escape::Unicode { digits, value } => {
                    let value = value << 4 | char::from(byte).to_digit(16).unwrap_or(0);
                    self.escape = Escape::Unicode { digits: digits + 1, value };
                    if digits == 3 {
                        self.escape = Escape::None;
                        // Half of a pair is some character that ends nothing.
                        self.char(char::from_u32(value).unwrap_or('x'), at);
                    }
                }
            }
        }
    }

    /// A byte of UTF-8.
    fn byte(&mut self, byte: u8, at: Stamp) {
        match byte {
            0..=0x7f => {
                self.partial = 0;
                self.char(char::from(byte), at);
            }
            // The characters of interest have three bytes.
            0x80..=0xbf if self.partial > 0 && self.partial < 0x1_0000 => {
                self.partial = self.partial << 8 | u32::from(byte);
                match self.partial {
                    0x00e3_8082 => self.char('。', at),
                    0x00ef_bc81 => self.char('！', at),
                    0x00ef_bc9f => self.char('？', at),
                    0x00e2_80a6 => self.char('…', at),
                    0x00e2_809d | 0x00e2_8099 => self.char('”', at),
                    0x1_0000.. => self.char('x', at),
                    _ => {}
                }
            }
            0x80..=0xbf => {}
            lead => {
                self.partial = u32::from(lead);
                if lead < 0xe0 {
                    // Two bytes: a letter, like the four of an emoji.
                    self.char('x', at);
                }
            }
        }
    }

    fn char(&mut self, c: char, at: Stamp) {
        let is_break = c == '\n';
        match (self.state, c) {
            (State::Perhaps(end), c) if c.is_whitespace() => return self.state = State::Done(end),
            (State::Perhaps(_), '"' | '\'' | ')' | ']' | '*' | '_' | '”') => return,
            (State::Perhaps(_), '.' | '!' | '?' | '…') => return self.state = State::Perhaps(at),
            _ => self.state = State::Open,
        }
        match c {
            '。' | '！' | '？' if self.last.is_some() => self.state = State::Done(at),
            '!' | '?' | '…' if self.word > 0 => self.state = State::Perhaps(at),
            '.' if self.word > 1 && !self.is_number => self.state = State::Perhaps(at),
            _ if is_break => {
                if let Some(last) = self.last {
                    self.state = State::Done(last);
                }
            }
            c if c.is_whitespace() => (self.word, self.is_number) = (0, false),
            c if c.is_alphanumeric() => {
                self.is_number = c.is_ascii_digit() && (self.word == 0 || self.is_number);
                self.word += 1;
                self.last = Some(at);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ttft_model::Nanos;

    use super::*;

    /// The number of the piece that completed the first sentence.
    fn first(pieces: &[&str]) -> Option<i64> {
        let mut sentence = FirstSentence::default();
        for (i, piece) in pieces.iter().enumerate() {
            sentence.push(piece.as_bytes(), Stamp::user(Nanos(i as i64)));
        }
        sentence.at_end().map(|stamp| stamp.at().0)
    }

    #[test]
    fn a_sentence_ends_where_a_reader_would_say() {
        for (pieces, at) in [
            (&["The sky", " is blue", ".", " It"][..], Some(2)),
            (&["The sky is blue."], Some(0)),
            (&["Pi is 3", ".", "14", ", nearly", ".", " So"], Some(4)),
            (&["1", ".", " First", " this", ".", "\\n"], Some(4)),
            (&["J", ".", " S", ".", " Bach", "!", " Yes"], Some(5)),
            (&["He said \\\"no", ".", "\\\"", " Then"], Some(1)),
            (&["Really", "?", "!", " Yes"], Some(2)),
            (&["天是", "蓝的", "。", "它"], Some(2)),
            (&["天是", "\\u84dd\\u7684", "\\u3002", "它"], Some(2)),
            (&["# A title", "\\n\\n", "Text"], Some(0)),
            (&["\\n\\n", "Yes", "\\n"], Some(1)),
            (&["Il fait beau", "…", " Non"], Some(1)),
            (&["no end at all"], None),
            (&["", " ", "..."], None),
        ] {
            assert_eq!(first(pieces), at, "{pieces:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_cut_anywhere_say_the_same(bytes in prop::collection::vec(any::<u8>(), 0..60), cut in 0usize..60) {
            let at = Stamp::user(Nanos(0));
            let (mut whole, mut parts) = (FirstSentence::default(), FirstSentence::default());
            whole.push(&bytes, at);
            let cut = cut.min(bytes.len());
            parts.push(&bytes[..cut], at);
            parts.push(&bytes[cut..], at);
            prop_assert_eq!(whole.at_end().is_some(), parts.at_end().is_some());
        }
    }
}
