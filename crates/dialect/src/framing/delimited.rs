//! Events with one delimiter byte after each: lines, or NUL-terminated values. Blank ones are skipped.

use super::{Frame, MAX_EVENT, Rest, Sink};

/// The framer; keeps only what is cut over reads.
#[derive(Debug)]
pub(crate) struct Delimited {
    delimiter: u8,
    kept: Vec<u8>,
    dead: bool,
}

impl Delimited {
    pub(crate) fn new(delimiter: u8) -> Self {
        Self { delimiter, kept: Vec::new(), dead: false }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        while !self.dead && !bytes.is_empty() {
            let end = memchr::memchr(self.delimiter, bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.kept.len() + piece.len() > MAX_EVENT {
                self.dead = true;
                self.kept = Vec::new();
                sink.frame(Frame::TooLong);
                return;
            }
            let Some(end) = end else {
                self.kept.extend_from_slice(piece);
                return;
            };
            if self.kept.is_empty() {
                emit(piece, sink);
            } else {
                self.kept.extend_from_slice(piece);
                emit(&self.kept, sink);
                self.kept.clear();
            }
            bytes = &bytes[end + 1..];
        }
    }

    pub(crate) fn finish(&mut self) -> Option<Rest<'_>> {
        let rest = self.kept.trim_ascii();
        (!rest.is_empty()).then_some(Rest::Event(rest))
    }
}

fn emit(event: &[u8], sink: &mut impl Sink) {
    let data = event.trim_ascii();
    if !data.is_empty() {
        sink.frame(Frame::Event { event: b"", data });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Framing;
    use super::super::collect::frames;

    #[test]
    fn lines_cut_anywhere() {
        let body = b"{\"a\":1}\r\n\n{\"b\":2}\n{\"c\"";
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(
                frames(Framing::Ndjson, [head, tail]),
                ["{\"a\":1}", "{\"b\":2}", "{\"c\""],
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn nul_ends_a_value() {
        assert_eq!(frames(Framing::Nul, [&b"{\n}\0{}\0"[..]]), ["{\n}", "{}"]);
    }
}
