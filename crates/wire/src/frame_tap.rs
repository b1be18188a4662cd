//! On HTTP/2 one read feeds many streams, so "the last read" is nobody's. This tap stands between TLS and the HTTP/2
//! library, follows the 9-byte frame headers both ways, and notes for each stream which read completed each of its
//! frames, and which write took its last byte.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use ttft_kernel::mono_now;
use ttft_model::{Nanos, Stamp};

use crate::io::Io;
use crate::stamped::Tap;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PREFACE_BYTES: usize = 24;

/// A frame that has come in whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Payload bytes without padding.
    pub len: usize,
    /// The read that completed it.
    pub read: u64,
    pub stamp: Stamp,
}

/// What one stream has seen.
#[derive(Debug, Default)]
pub(crate) struct StreamLog {
    pub head: Option<Arrival>,
    body_begun: bool,
    pub data: VecDeque<Arrival>,
    pub sent_first: Option<Nanos>,
    pub sent_last: Option<Nanos>,
    pub lag_max: Option<Nanos>,
}

/// The streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct FrameLog {
    streams: HashMap<u32, StreamLog>,
}

impl FrameLog {
    /// Starts to keep a stream's frames.
    pub(crate) fn open(&mut self, stream: u32) {
        self.streams.entry(stream).or_default();
    }

    /// Stops to keep them.
    pub(crate) fn close(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }

    pub(crate) fn stream(&mut self, stream: u32) -> Option<&mut StreamLog> {
        self.streams.get_mut(&stream)
    }
}

/// Follows frames through bytes that are cut anywhere.
#[derive(Debug, Default)]
struct FrameWalk {
    skip: usize,
    header: [u8; 9],
    have: usize,
    left: usize,
    padding_unread: bool,
    padding: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    stream: u32,
    kind: u8,
    flags: u8,
    len: usize,
}

impl FrameWalk {
    /// Walks over `bytes`; calls `begun` when a frame's header is whole and `ended` when the frame is.
    fn walk(&mut self, mut bytes: &[u8], mut begun: impl FnMut(Frame), mut ended: impl FnMut(Frame)) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            if self.have < 9 {
                let taken = (9 - self.have).min(bytes.len());
                self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
                self.have += taken;
                bytes = &bytes[taken..];
                if self.have < 9 {
                    return;
                }
                let frame = self.frame();
                self.left = frame.len;
                self.padding_unread = frame.kind == DATA && frame.flags & PADDED != 0;
                self.padding = 0;
                begun(frame);
            }
            if self.padding_unread && self.left > 0 && !bytes.is_empty() {
                self.padding = usize::from(bytes[0]) + 1;
                self.padding_unread = false;
            }
            let taken = self.left.min(bytes.len());
            self.left -= taken;
            bytes = &bytes[taken..];
            if self.left == 0 {
                let frame = self.frame();
                self.have = 0;
                ended(Frame { len: frame.len.saturating_sub(self.padding), ..frame });
            }
        }
    }

    fn frame(&self) -> Frame {
        let [len @ .., kind, flags, s0, s1, s2, s3] = self.header;
        let len = len.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        Frame { stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]), kind, flags, len }
    }
}

/// The stream that HTTP/2 reads from and writes to.
pub(crate) struct FrameTap {
    io: Io,
    tap: Rc<Tap>,
    log: Rc<RefCell<FrameLog>>,
    incoming: FrameWalk,
    outgoing: FrameWalk,
}

impl FrameTap {
    pub(crate) fn new(io: Io, tap: Rc<Tap>, log: Rc<RefCell<FrameLog>>) -> Self {
        let outgoing = FrameWalk { skip: PREFACE_BYTES, ..FrameWalk::default() };
        Self { io, tap, log, incoming: FrameWalk::default(), outgoing }
    }

    fn note_incoming(&mut self, bytes: &[u8]) {
        let (read, stamp) = self.tap.last_read();
        let mut log = self.log.borrow_mut();
        self.incoming.walk(
            bytes,
            |_| {},
            |frame| {
                let Some(stream) = log.stream(frame.stream) else { return };
                let arrival = Arrival { len: frame.len, read, stamp };
                match frame.kind {
                    DATA => {
                        stream.body_begun = true;
                        stream.data.push_back(arrival);
                    }
                    // What came before were interim answers (1xx); what ends the stream are trailers.
                    HEADERS | CONTINUATION
                        if frame.flags & END_HEADERS != 0
                            && (stream.head.is_none()
                                || !stream.body_begun && frame.flags & END_STREAM == 0) =>
                    {
                        stream.head = Some(arrival);
                    }
                    _ => return,
                }
                stream.lag_max = stream.lag_max.max(stamp.lag());
            },
        );
    }

    fn note_outgoing(&mut self, bytes: &[u8], before: Nanos) {
        let log = &self.log;
        self.outgoing.walk(
            bytes,
            |frame| {
                if frame.kind == HEADERS
                    && let Some(stream) = log.borrow_mut().stream(frame.stream)
                {
                    stream.sent_first.get_or_insert(before);
                }
            },
            |frame| {
                if matches!(frame.kind, HEADERS | DATA)
                    && frame.flags & END_STREAM != 0
                    && let Some(stream) = log.borrow_mut().stream(frame.stream)
                {
                    stream.sent_last = Some(before);
                }
            },
        );
    }
}

impl AsyncRead for FrameTap {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, into))?;
        this.note_incoming(&into.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FrameTap {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let before = mono_now();
        let sent = ready!(Pin::new(&mut this.io).poll_write(cx, bytes))?;
        this.note_outgoing(&bytes[..sent], before);
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let before = mono_now();
        let sent = ready!(Pin::new(&mut this.io).poll_write_vectored(cx, parts))?;
        let mut left = sent;
        for part in parts {
            let taken = left.min(part.len());
            this.note_outgoing(&part[..taken], before);
            left -= taken;
        }
        Poll::Ready(Ok(sent))
    }

    // Without it each frame's header and payload would leave in segments of their own.
    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn walked(walk: &mut FrameWalk, pieces: &[&[u8]]) -> Vec<Frame> {
        let mut seen = Vec::new();
        for piece in pieces {
            walk.walk(piece, |_| {}, |frame| seen.push(frame));
        }
        seen
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_frames(cuts in prop::collection::vec(0usize..200, 0..12)) {
            let mut bytes = vec![b'P'; PREFACE_BYTES];
            bytes.extend(frame(HEADERS, END_HEADERS, 1, b"abc"));
            bytes.extend(frame(DATA, PADDED, 1, &[2, b'x', b'y', b'z', 0, 0]));
            bytes.extend(frame(DATA, 0, 3, b""));
            bytes.extend(frame(DATA, END_STREAM, 0x7fff_ffff, &[7; 90]));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let mut walk = FrameWalk { skip: PREFACE_BYTES, ..FrameWalk::default() };
            let seen: Vec<(u32, u8, usize)> =
                walked(&mut walk, &pieces).iter().map(|f| (f.stream, f.kind, f.len)).collect();
            prop_assert_eq!(seen, vec![(1, HEADERS, 3), (1, DATA, 3), (3, DATA, 0), (0x7fff_ffff, DATA, 90)]);
        }
    }
}
