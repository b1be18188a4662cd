//! HTTP/2 by hand: frames as bytes, so that a test decides which of them share a segment.

use std::io::{self, Read, Write};

use crate::server::Talk;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
const ACK: u8 = 1;

/// `:status: 200`, from the static table.
const STATUS_200: u8 = 0x88;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The head of an answer, 200.
pub(crate) fn head(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &[STATUS_200])
}

/// The same in two frames.
pub(crate) fn head_in_two(stream: u32) -> Vec<u8> {
    let rest = b"\x00\x01x\x01y";
    [frame(HEADERS, 0, stream, &[STATUS_200]), frame(CONTINUATION, END_HEADERS, stream, rest)].concat()
}

/// `:status: 103`.
pub(crate) fn early_hints(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, b"\x08\x03103")
}

/// Trailers `x: y`, the end of a stream.
pub(crate) fn trailers(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x00\x01x\x01y")
}

pub(crate) fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, bytes)
}

pub(crate) fn padded(stream: u32, bytes: &[u8], padding: u8) -> Vec<u8> {
    let payload = [&[padding], bytes, &vec![0; padding.into()][..]].concat();
    frame(DATA, PADDED, stream, &payload)
}

pub(crate) fn end(stream: u32) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, b"")
}

pub(crate) fn reset(stream: u32, reason: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &reason.to_be_bytes())
}

/// No streams after `last` will be worked on.
pub(crate) fn go_away(last: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), 0u32.to_be_bytes()].concat())
}

impl<S: Read + Write> Talk<S> {
    /// Reads the client's preface and sends settings that allow `streams` at once.
    pub(crate) fn greet(&mut self, streams: u32) -> io::Result<()> {
        let preface = self.take(24)?;
        assert_eq!(preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let limit = [&[0, 3][..], &streams.to_be_bytes()].concat();
        self.write(frame(SETTINGS, 0, 0, &limit))
    }

    /// The stream of the next request, once its body has come; `None` when the client has closed.
    pub(crate) fn stream(&mut self) -> io::Result<Option<u32>> {
        while let Some((kind, flags, stream)) = self.next_frame()? {
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                return Ok(Some(stream));
            }
        }
        Ok(None)
    }

    /// Kind, flags and stream of the next frame. What asks for an acknowledgement has got it.
    pub(crate) fn next_frame(&mut self) -> io::Result<Option<(u8, u8, u32)>> {
        let head = match self.take(9) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            head => head?,
        };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let payload = self.take(length as usize)?;
        let (kind, flags) = (head[3], head[4]);
        match kind {
            SETTINGS if flags & ACK == 0 => self.write(frame(SETTINGS, ACK, 0, b""))?,
            PING if flags & ACK == 0 => self.write(frame(PING, ACK, 0, &payload))?,
            _ => {}
        }
        Ok(Some((kind, flags, u32::from_be_bytes([head[5], head[6], head[7], head[8]]))))
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.unread.drain(..length).collect())
    }
}
