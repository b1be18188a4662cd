//! The objects of one JSON array that arrives piece by piece, cut by their braces.

use super::{Frame, MAX_EVENT, Rest, Sink, Unfinished};
use crate::json::string_end;

/// The framer. It keeps what of an object is cut over reads, and looks at each byte once.
#[derive(Debug, Default)]
pub(crate) struct JsonArray {
    kept: Vec<u8>,
    place: Place,
    dead: bool,
}

/// Where in the text the next byte stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between objects: brackets, commas and blanks mean nothing.
    #[default]
    Between,
    /// In something between objects that is none; it goes on to the next comma, line or brace.
    Junk,
    /// So many braces are open.
    Object { depth: usize, text: Text },
}

/// Whether a brace would count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    AfterBackslash,
}

impl JsonArray {
    pub(crate) fn push(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        while !self.dead && !bytes.is_empty() {
            if self.place == Place::Between {
                let Some(start) = bytes.iter().position(|b| !is_between(*b)) else { return };
                bytes = &bytes[start..];
                self.place = if bytes[0] == b'{' {
                    Place::Object { depth: 0, text: Text::Outside }
                } else {
                    Place::Junk
                };
            }

            let end = self.end(bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.kept.len() + piece.len() > MAX_EVENT {
                self.dead = true;
                self.kept = Vec::new();
                return sink.frame(Frame::TooLong);
            }
            let Some(end) = end else { return self.kept.extend_from_slice(piece) };
            self.place = Place::Between;
            if self.kept.is_empty() {
                sink.frame(Frame::Event { event: b"", data: piece.trim_ascii() });
            } else {
                self.kept.extend_from_slice(piece);
                sink.frame(Frame::Event { event: b"", data: self.kept.trim_ascii() });
                self.kept.clear();
            }
            bytes = &bytes[end..];
        }
    }

    /// Where the open object, or the junk, ends; `None` if behind these bytes.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let Place::Object { depth, text } = &mut self.place else {
            return memchr::memchr3(b',', b'\n', b'{', bytes);
        };
        let mut i = 0;
        loop {
            match text {
                Text::AfterBackslash => {
                    bytes.get(i)?;
                    (*text, i) = (Text::Inside, i + 1);
                }
                Text::Inside => {
                    i += memchr::memchr2(b'"', b'\\', &bytes[i..])?;
                    *text = if bytes[i] == b'"' { Text::Outside } else { Text::AfterBackslash };
                    i += 1;
                }
                Text::Outside => {
                    i += bytes[i..].iter().position(|b| matches!(b, b'"' | b'{' | b'}'))?;
                    match bytes[i] {
                        // A text that ends in these bytes is passed at once.
                        b'"' => match string_end(bytes, i + 1) {
                            Ok(end) => {
                                i = end;
                                continue;
                            }
                            Err(_) => *text = Text::Inside,
                        },
                        b'{' => *depth += 1,
                        _ => *depth -= 1,
                    }
                    i += 1;
                    if *depth == 0 {
                        return Some(i);
                    }
                }
            }
        }
    }

    pub(crate) fn finish(&mut self) -> Option<Rest<'_>> {
        let rest = self.kept.trim_ascii();
        match self.place {
            _ if rest.is_empty() => None,
            Place::Junk => Some(Rest::Event(rest)),
            _ => Some(Rest::Dropped(Unfinished { data: rest, ..Unfinished::default() })),
        }
    }
}

/// What may stand between objects.
const fn is_between(byte: u8) -> bool {
    matches!(byte, b'[' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::super::collect::frames;
    use super::super::{Framing, MAX_EVENT};

    /// The same frames must come out however the body is cut.
    fn check(body: &str, expected: &[&str]) {
        let body = body.as_bytes();
        assert_eq!(frames(Framing::JsonArray, [body]), expected, "in one read");
        assert_eq!(frames(Framing::JsonArray, body.chunks(1)), expected, "byte by byte");
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(frames(Framing::JsonArray, [head, tail]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn objects_cut_anywhere() {
        check("[{\"a\":1}\n,\r\n{\"b\":[{}]}\n]\n", &["{\"a\":1}", "{\"b\":[{}]}"]);
        check(r#"[{"a":"}{\"\\"},{"b":"\\\"{"}]"#, &[r#"{"a":"}{\"\\"}"#, r#"{"b":"\\\"{"}"#]);
        check("[]", &[]);
        check("", &[]);
    }

    #[test]
    fn what_is_cut_off_is_dropped() {
        check("[{\"a\":1},{\"b\":{}", &["{\"a\":1}", "dropped {\"b\":{}"]);
        check("[{\"a\":\"x", &["dropped {\"a\":\"x"]);
    }

    #[test]
    fn what_is_no_object_is_handed_on() {
        check("[1, {\"a\":1}", &["1", "{\"a\":1}"]);
        check("[{\"a\":1}]oh no\n", &["{\"a\":1}", "oh no"]);
        check("}", &["}"]);
    }

    #[test]
    fn too_long_ends_it() {
        let long = format!("[{{\"a\":\"{}", "x".repeat(MAX_EVENT));
        assert_eq!(frames(Framing::JsonArray, long.as_bytes().chunks(1 << 20)), ["too long"]);
        assert_eq!(frames(Framing::JsonArray, [long.as_bytes()]), ["too long"]);
    }
}
