//! Server-sent events to the letter of the WHATWG rules, except that unknown fields are handed on, and lines that look
//! like bare JSON: some gateways write their error so into a stream that broke.
//!
//! An event whose bytes lie in one push is handed on in place; only what is cut over pushes, or spread over several
//! `data` lines, is copied. `id` and `retry` are understood and not needed: nothing is ever reconnected here.

use super::{Frame, MAX_EVENT, Rest, Sink, Unfinished};

/// Data of more bytes, blanks at its end included, is no terminator that came without its blank line.
const LONGEST_TERMINATOR: usize = 64;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The framer.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    /// Bytes of the byte order mark seen so far; 3 once that question is settled.
    bom: usize,
    /// A CR ended the last line: a LF that follows belongs to it.
    after_cr: bool,
    /// A line whose end has not come.
    line: Vec<u8>,
    /// Data lines of the open event, joined by LF, unless they are still borrowed.
    data: Vec<u8>,
    /// Name of the open event, unless it is still borrowed.
    event: Vec<u8>,
    /// The open event has data.
    has_data: bool,
    /// An event was too long.
    dead: bool,
}

/// What of the open event lies in the bytes of the current push.
#[derive(Default, Clone, Copy)]
struct Borrowed<'a> {
    data: Option<&'a [u8]>,
    event: Option<&'a [u8]>,
}

impl Sse {
    pub(crate) fn push(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        if self.bom < BOM.len() {
            bytes = self.skip_bom(bytes);
        }
        let mut open = Borrowed::default();
        while !self.dead && !bytes.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }

            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + self.data.len() + piece.len() > MAX_EVENT {
                self.dead = true;
                (self.line, self.data) = (Vec::new(), Vec::new());
                sink.frame(Frame::TooLong);
                return;
            }
            let Some(end) = end else {
                self.line.extend_from_slice(piece);
                break;
            };
            self.after_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(piece, &mut open, sink);
            } else {
                // Taken out and put back so that its memory is used again.
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(piece);
                self.keep(&mut open);
                let mut kept = Borrowed::default();
                self.take_line(&line, &mut kept, sink);
                self.keep(&mut kept);
                line.clear();
                self.line = line;
            }
            bytes = &bytes[end + 1..];
        }
        self.keep(&mut open);
    }

    /// At the end of the body: the open event is dropped, but it may be a terminator or an error.
    pub(crate) fn finish(&mut self) -> Option<Rest<'_>> {
        let line = std::mem::take(&mut self.line);
        let mut open = Borrowed::default();
        if let (b"data", value) = split(&line) {
            self.add_data(value, &mut open);
        }
        self.keep(&mut open);
        self.line = line;
        let cut = !self.line.is_empty() && self.line[0] != b':';
        let field = match split(&self.line) {
            (b"data" | b"event" | b"id" | b"retry", _) => None,
            field => Some(field).filter(|_| cut),
        };
        let stray = !self.has_data && self.line.first() == Some(&b'{');
        let data = if stray { &self.line } else { &self.data };
        let unfinished = Unfinished { event: &self.event, data, field: field.filter(|_| !stray) };
        (self.has_data || cut || !self.event.is_empty()).then_some(Rest::Dropped(unfinished))
    }

    /// The data so far of the open event, unless it is longer than any terminator.
    pub(crate) fn open_event(&self) -> Option<&[u8]> {
        if self.line.len().max(self.data.len()) > LONGEST_TERMINATOR {
            return None;
        }
        match (self.has_data, self.line.is_empty()) {
            (true, true) => Some(&self.data),
            (false, false) => match split(&self.line) {
                (b"data", value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// Skips a byte order mark at the very start, also one cut over pushes.
    fn skip_bom<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let rest = &BOM[self.bom..];
        let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        if same == bytes.len() && same < rest.len() {
            self.bom += same;
            return &[];
        }
        if same < rest.len() {
            // It was no mark: what looked like its beginning belongs to the first line.
            self.line.extend_from_slice(&BOM[..self.bom]);
            self.bom = BOM.len();
            return bytes;
        }
        self.bom = BOM.len();
        &bytes[same..]
    }

    fn take_line<'a>(&mut self, line: &'a [u8], open: &mut Borrowed<'a>, sink: &mut impl Sink) {
        if line.is_empty() {
            return self.dispatch(open, sink);
        }
        if line[0] == b':' {
            return sink.frame(Frame::Comment);
        }
        match split(line) {
            (b"data", value) => self.add_data(value, open),
            (b"event", value) => open.event = Some(value),
            (b"id" | b"retry", _) => {}
            _ if line[0] == b'{' => sink.frame(Frame::Stray { line }),
            (name, value) => sink.frame(Frame::Field { name, value }),
        }
    }

    fn add_data<'a>(&mut self, value: &'a [u8], open: &mut Borrowed<'a>) {
        if self.has_data {
            self.keep(open);
            self.data.push(b'\n');
            self.data.extend_from_slice(value);
        } else {
            self.has_data = true;
            open.data = Some(value);
        }
    }

    fn dispatch(&mut self, open: &mut Borrowed<'_>, sink: &mut impl Sink) {
        if self.has_data {
            sink.frame(Frame::Event {
                event: open.event.unwrap_or(&self.event),
                data: open.data.unwrap_or(&self.data),
            });
        }
        *open = Borrowed::default();
        self.has_data = false;
        self.data.clear();
        self.event.clear();
    }

    /// Copies what is borrowed, because its bytes are about to go.
    fn keep(&mut self, open: &mut Borrowed<'_>) {
        if let Some(data) = open.data.take() {
            self.data.extend_from_slice(data);
        }
        if let Some(event) = open.event.take() {
            self.event.clear();
            self.event.extend_from_slice(event);
        }
    }
}

/// A line as field name and value, one space after the colon removed.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::super::collect::frames;
    use super::super::{Frame, Framing, MAX_EVENT, Sink};
    use super::Sse;

    /// The same frames must come out however the body is cut.
    fn check(body: &[u8], expected: &[&str]) {
        assert_eq!(frames(Framing::Sse, [body]), expected, "{body:?} in one read");
        assert_eq!(frames(Framing::Sse, body.chunks(1)), expected, "{body:?} byte by byte");
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(frames(Framing::Sse, [head, tail]), expected, "{body:?} cut at {cut}");
        }
    }

    #[test]
    fn line_ends() {
        check(b"data: a\n\ndata: b\n\n", &["a", "b"]);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check(b"data: a\r\rdata: b\r\r", &["a", "b"]);
        check(b"data: a\r\n\ndata: b\n\r\n\r\ndata: c\r\r\n", &["a", "b", "c"]);
        check("data: a\u{2028}\u{85}b\n\n".as_bytes(), &["a\u{2028}\u{85}b"]);
    }

    #[test]
    fn fields() {
        check(b"data:a\n\ndata:  b\n\ndata: c \n\n", &["a", " b", "c "]);
        check(b"data: a\ndata:b\ndata\n\n", &["a\nb\n"]);
        check(b"data\n\n", &[""]);
        check(b"event: x\n\ndata: a\n\n", &["a"]);
        check(b"id: 7\ndata: a\nevent: x\nretry: 3\nevent: y\n\n", &["y|a"]);
        check(b"event: x\nevent:\ndata: a\n\n", &["a"]);
        check(b":\n: keep-alive\n\ndata: a\n:mid\n\n", &["comment", "comment", "comment", "a"]);
        check(b"error: {\"code\":500}\n\n", &["field error={\"code\":500}"]);
        check(b"data : a\n\n", &["field data =a"]);
        check("data: \u{4f60}\u{597d}\n\n".as_bytes(), &["\u{4f60}\u{597d}"]);
    }

    #[test]
    fn byte_order_mark_once() {
        check(b"\xEF\xBB\xBFdata: a\n\n", &["a"]);
        check(b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", &["field \u{feff}data=a"]);
        check(b"\xEF\xBBdata: a\n\ndata: b\n\n", &["field \u{fffd}data=a", "b"]);
    }

    #[test]
    fn an_open_event_is_dropped() {
        check(b"data: a\n\ndata: [DONE]\n", &["a", "dropped [DONE]"]);
        check(b"data: a\n\ndata: [DONE]", &["a", "dropped [DONE]"]);
        check(b"data: a\n\ndata: {\"x", &["a", "dropped {\"x"]);
        check(b"event: e\ndata: x\n", &["dropped e|x"]);
        check(b"data: x\nerror: y", &["dropped x error=y"]);
        check(b"{\"error\":1}\n{\"a\":", &["stray {\"error\":1}", "dropped {\"a\":"]);
        check(b"data: a\n\n: ping", &["a"]);
    }

    #[test]
    fn too_long_ends_it_once() {
        #[derive(Default)]
        struct Count(usize, usize);
        impl Sink for Count {
            fn frame(&mut self, frame: Frame<'_>) {
                self.0 += usize::from(matches!(frame, Frame::TooLong));
                self.1 += 1;
            }
        }
        let (mut sse, mut count) = (Sse::default(), Count::default());
        let piece = vec![b'x'; 1 << 20];
        sse.push(b"data: ", &mut count);
        for _ in 0..MAX_EVENT / piece.len() + 4 {
            sse.push(&piece, &mut count);
        }
        sse.push(b"\n\ndata: a\n\n", &mut count);
        assert_eq!((count.0, count.1), (1, 1));
        assert!(sse.line.capacity() == 0 && sse.data.capacity() == 0, "the memory is given back");
    }
}
