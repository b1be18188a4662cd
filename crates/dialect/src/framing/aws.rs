//! Binary frames of `application/vnd.amazon.eventstream`: lengths, headers, payload, and a CRC-32 of each part.
//!
//! `total length u32 | headers length u32 | CRC of these | headers | payload | CRC of all`, big endian.

use super::{Frame, MAX_EVENT, Rest, Sink, Unfinished};

/// The two lengths and their checksum.
const PRELUDE: usize = 12;
/// A frame without headers and payload.
const SMALLEST: usize = PRELUDE + 4;

/// The framer; keeps only what is cut over reads, and never more than came.
#[derive(Debug, Default)]
pub(crate) struct AwsEventStream {
    kept: Vec<u8>,
    dead: bool,
}

/// What the beginning of some bytes is.
enum Step {
    /// So many bytes are needed before more can be said.
    Needs(usize),
    /// A whole frame with headers and payload of these lengths.
    Whole {
        headers: usize,
        total: usize,
    },
    Stop(Frame<'static>),
}

impl AwsEventStream {
    pub(crate) fn push(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        while !self.dead {
            let step = step(if self.kept.is_empty() { bytes } else { &self.kept });
            match step {
                Step::Needs(wanted) => {
                    if bytes.is_empty() {
                        return;
                    }
                    let some = bytes.len().min(wanted - self.kept.len());
                    self.kept.extend_from_slice(&bytes[..some]);
                    bytes = &bytes[some..];
                }
                Step::Whole { headers, total } if self.kept.is_empty() => {
                    emit(&bytes[..total], headers, sink);
                    bytes = &bytes[total..];
                }
                Step::Whole { headers, .. } => {
                    emit(&self.kept, headers, sink);
                    self.kept.clear();
                }
                Step::Stop(frame) => {
                    self.dead = true;
                    self.kept = Vec::new();
                    sink.frame(frame);
                }
            }
        }
    }

    pub(crate) fn finish(&mut self) -> Option<Rest<'_>> {
        (!self.kept.is_empty()).then(|| Rest::Dropped(Unfinished::default()))
    }
}

fn step(bytes: &[u8]) -> Step {
    let Some(prelude) = bytes.first_chunk::<PRELUDE>() else { return Step::Needs(PRELUDE) };
    let number =
        |at: usize| u32::from_be_bytes([prelude[at], prelude[at + 1], prelude[at + 2], prelude[at + 3]]);
    let (total, headers) = (number(0) as usize, number(4) as usize);
    if crc32fast::hash(&prelude[..8]) != number(8) {
        return Step::Stop(Frame::Broken("a frame begins with lengths whose checksum is wrong"));
    }
    if total < SMALLEST || headers > total - SMALLEST {
        return Step::Stop(Frame::Broken("the lengths of a frame contradict each other"));
    }
    if total > MAX_EVENT {
        return Step::Stop(Frame::TooLong);
    }
    let Some(frame) = bytes.get(..total) else { return Step::Needs(total) };
    let (content, sum) = frame.split_at(total - 4);
    if crc32fast::hash(content).to_be_bytes() != sum {
        return Step::Stop(Frame::Broken("the checksum of a frame is wrong"));
    }
    Step::Whole { headers, total }
}

/// What the headers of a frame say.
#[derive(Default)]
struct Headers<'a> {
    message_type: &'a [u8],
    event_type: &'a [u8],
    exception_type: &'a [u8],
    error_code: &'a [u8],
    error_message: &'a [u8],
}

fn emit(frame: &[u8], headers: usize, sink: &mut impl Sink) {
    let data = &frame[PRELUDE + headers..frame.len() - 4];
    let mut told = Headers::default();
    read_headers(&frame[PRELUDE..PRELUDE + headers], &mut told);
    sink.frame(match told.message_type {
        b"exception" => Frame::Failure { code: told.exception_type, message: b"", data },
        b"error" => Frame::Failure { code: told.error_code, message: told.error_message, data },
        _ => Frame::Event { event: told.event_type, data },
    });
}

/// Reads headers as far as they can be read; what a broken one leaves out is not known.
fn read_headers<'a>(mut bytes: &'a [u8], told: &mut Headers<'a>) {
    while let Some((name, value, rest)) = header(bytes) {
        bytes = rest;
        match name {
            b":message-type" => told.message_type = value,
            b":event-type" => told.event_type = value,
            b":exception-type" => told.exception_type = value,
            b":error-code" => told.error_code = value,
            b":error-message" => told.error_message = value,
            _ => {}
        }
    }
}

/// The first header: its name, its value if that is a string or bytes, and what follows.
fn header(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, bytes) = bytes.split_first()?;
    let (name, bytes) = bytes.split_at_checked(usize::from(*length))?;
    let (kind, bytes) = bytes.split_first()?;
    let fixed = match kind {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        5 | 8 => 8,
        9 => 16,
        6 | 7 => {
            let (length, bytes) = bytes.split_first_chunk::<2>()?;
            let (value, rest) = bytes.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            return Some((name, value, rest));
        }
        _ => return None,
    };
    let (_, rest) = bytes.split_at_checked(fixed)?;
    Some((name, b"", rest))
}

#[cfg(test)]
pub(crate) mod encode {
    //! Writes frames, for tests.

    /// A frame with headers that are strings.
    pub(crate) fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        for (name, value) in headers {
            encoded.push(name.len() as u8);
            encoded.extend_from_slice(name.as_bytes());
            encoded.push(7);
            encoded.extend_from_slice(&(value.len() as u16).to_be_bytes());
            encoded.extend_from_slice(value.as_bytes());
        }
        let total = (super::SMALLEST + encoded.len() + payload.len()) as u32;
        let mut frame = [total.to_be_bytes(), (encoded.len() as u32).to_be_bytes()].concat();
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame.extend_from_slice(&encoded);
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    /// An event of that type.
    pub(crate) fn event(name: &str, payload: &[u8]) -> Vec<u8> {
        let json = "application/json";
        frame(&[(":event-type", name), (":content-type", json), (":message-type", "event")], payload)
    }
}

#[cfg(test)]
mod tests {
    use super::super::collect::frames;
    use super::super::{Framing, MAX_EVENT};
    use super::encode::{event, frame};

    const AWS: Framing = Framing::AwsEventstream;

    fn check(body: &[u8], expected: &[&str]) {
        assert_eq!(frames(AWS, [body]), expected, "in one read");
        assert_eq!(frames(AWS, body.chunks(1)), expected, "byte by byte");
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(frames(AWS, [head, tail]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn frames_cut_anywhere() {
        let body = [event("messageStart", b"{}"), event("metadata", b"{\"a\":1}")].concat();
        check(&body, &["messageStart|{}", "metadata|{\"a\":1}"]);
        check(&body[..body.len() - 1], &["messageStart|{}", "dropped "]);
        check(&frame(&[], b""), &[""]);
    }

    #[test]
    fn failures() {
        let exception = [(":exception-type", "throttlingException"), (":message-type", "exception")];
        check(&frame(&exception, b"{}"), &["failure throttlingException  {}"]);
        let error = [(":message-type", "error"), (":error-code", "500"), (":error-message", "m")];
        check(&frame(&error, b""), &["failure 500 m "]);
    }

    #[test]
    fn every_kind_of_header() {
        let mut headers = Vec::new();
        for (kind, length) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
            headers.extend_from_slice(&[1, b'x', kind]);
            headers.extend(std::iter::repeat_n(7, length));
        }
        headers.extend_from_slice(b"\x0b:event-type\x07\x00\x01e");
        let mut told = super::Headers::default();
        super::read_headers(&headers, &mut told);
        assert_eq!(told.event_type, b"e");
        for cut in 0..headers.len() {
            super::read_headers(&headers[..cut], &mut super::Headers::default());
        }
    }

    /// Lengths that lie, each with a checksum that is right.
    #[test]
    fn lengths_that_lie() {
        let lie = |total: u32, headers: u32| {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
            bytes.extend_from_slice(&[0; 64]);
            bytes
        };
        let contradict = "broken the lengths of a frame contradict each other";
        check(&lie(15, 0), &[contradict]);
        check(&lie(0, 0), &[contradict]);
        check(&lie(32, 17), &[contradict]);
        check(&lie(32, u32::MAX), &[contradict]);
        check(&lie(MAX_EVENT as u32 + 1, 0), &["too long"]);
        check(&lie(u32::MAX, 0), &["too long"]);
        check(&lie(64, 0), &["broken the checksum of a frame is wrong"]);
        check(&lie(1000, 0), &["dropped "]);
    }

    #[test]
    fn one_wrong_bit_anywhere_is_found() {
        let good = event("contentBlockDelta", b"{\"delta\":{\"text\":\"Hi\"}}");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let found = frames(AWS, [bad.as_slice()]);
            assert!(found.iter().all(|frame| frame.starts_with("broken")), "bit {bit}: {found:?}");
        }
    }
}
