//! The stamped socket: every read knows when its last byte arrived, every write when it left.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use ttft_kernel::{
    AsyncFd, Interest, WallOffset, mono_now, recv_stamped, send_stamped, take_transmit_stamps, tcp_facts,
    watch,
};
use ttft_model::{Nanos, Stamp, TcpFacts};

/// The offset between the clocks, shared by all sockets of a worker.
pub(crate) type Wall = Rc<RefCell<WallOffset>>;

/// What one socket has seen, readable while HTTP owns the socket itself.
#[derive(Debug)]
pub(crate) struct Tap {
    socket: Rc<TcpStream>,
    wall: Wall,
    opened: Nanos,
    transmit: bool,
    last: Cell<Stamp>,
    reads: Cell<u64>,
    bytes_out: Cell<u64>,
    sent_first: Cell<Option<Nanos>>,
    sent_last: Cell<Option<Nanos>>,
    lag_max: Cell<Option<Nanos>>,
}

impl Tap {
    /// The last read: its number on this socket, and its stamp.
    pub(crate) fn last_read(&self) -> (u64, Stamp) {
        (self.reads.get(), self.last.get())
    }

    /// How many reads brought bytes.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// Forgets the last request's part of the numbers.
    pub(crate) fn begin_request(&self) {
        self.sent_first.set(None);
        self.sent_last.set(None);
        self.lag_max.set(None);
    }

    /// Just before the first and the last write since [`Tap::begin_request`].
    pub(crate) fn sent(&self) -> (Option<Nanos>, Option<Nanos>) {
        (self.sent_first.get(), self.sent_last.get())
    }

    /// The largest lag of a read since [`Tap::begin_request`].
    pub(crate) fn lag_max(&self) -> Option<Nanos> {
        self.lag_max.get()
    }

    /// The kernel's transmit stamps of everything written so far: handed to the device, acknowledged by the peer.
    pub(crate) fn transmit_stamps(&self) -> (Option<Nanos>, Option<Nanos>) {
        if !self.transmit || self.bytes_out.get() == 0 {
            return (None, None);
        }
        let stamps = take_transmit_stamps(&*self.socket, (self.bytes_out.get() - 1) as u32);
        let not_before = self.sent_first.get().unwrap_or(self.opened);
        let mut wall = self.wall.borrow_mut();
        let mut convert = |stamp: Option<i64>| stamp.and_then(|at| wall.convert_past(at, not_before));
        (convert(stamps.device), convert(stamps.acked))
    }

    /// What the kernel knows of the path.
    pub(crate) fn tcp_facts(&self) -> Option<TcpFacts> {
        tcp_facts(&*self.socket)
    }

    fn note_read(&self, kernel_real_ns: Option<i64>) {
        let stamp = self.wall.borrow_mut().convert(kernel_real_ns, self.opened);
        self.last.set(stamp);
        self.reads.set(self.reads.get() + 1);
        self.lag_max.set(self.lag_max.get().max(stamp.lag()));
    }

    fn note_write(&self, before: Nanos, bytes: usize) {
        if self.sent_first.get().is_none() {
            self.sent_first.set(Some(before));
        }
        self.sent_last.set(Some(before));
        self.bytes_out.set(self.bytes_out.get() + bytes as u64);
    }
}

/// A connected TCP socket that stamps. Registered for reading only: transmit stamps come as error events, which a
/// registration for writing would take for a closed peer, and a full socket is rare enough to wait for apart.
pub(crate) struct StampedStream {
    fd: AsyncFd<Rc<TcpStream>>,
    room: Option<AsyncFd<TcpStream>>,
    tap: Rc<Tap>,
}

impl StampedStream {
    /// Takes over a connected, non-blocking socket.
    pub(crate) fn new(socket: TcpStream, wall: Wall, transmit: bool) -> io::Result<Self> {
        let socket = Rc::new(socket);
        let opened = mono_now();
        let tap = Rc::new(Tap {
            socket: socket.clone(),
            wall,
            opened,
            transmit,
            last: Cell::new(Stamp::user(opened)),
            reads: Cell::new(0),
            bytes_out: Cell::new(0),
            sent_first: Cell::new(None),
            sent_last: Cell::new(None),
            lag_max: Cell::new(None),
        });
        Ok(Self { fd: watch(socket, Interest::READABLE)?, room: None, tap })
    }

    /// What this socket sees.
    pub(crate) fn tap(&self) -> Rc<Tap> {
        self.tap.clone()
    }

    /// Waits until a full socket takes bytes again.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.room.is_none() {
            self.room = Some(watch(self.tap.socket.try_clone()?, Interest::WRITABLE)?);
        }
        if let Some(room) = &self.room {
            ready!(room.poll_write_ready(cx))?.retain_ready();
        }
        // Registered anew each time: a registration that has seen an error event never waits again.
        self.room = None;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for StampedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.fd.poll_read_ready(cx))?;
            let room = into.initialize_unfilled();
            match recv_stamped(&*self.tap.socket, room) {
                Ok(received) => {
                    // A short read emptied the socket: without this every event would cost a second, empty read.
                    if received.len > 0 && received.len < room.len() {
                        ready.clear_ready();
                    }
                    if received.len > 0 {
                        self.tap.note_read(received.kernel_real_ns);
                    }
                    into.advance(received.len);
                    return Poll::Ready(Ok(()));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl AsyncWrite for StampedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.room.is_some() {
                ready!(self.poll_room(cx))?;
            }
            let before = mono_now();
            match send_stamped(&*self.tap.socket, parts, self.tap.transmit) {
                Ok(sent) => {
                    self.tap.note_write(before, sent);
                    return Poll::Ready(Ok(sent));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready!(self.poll_room(cx))?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.tap.socket.shutdown(std::net::Shutdown::Write))
    }
}
