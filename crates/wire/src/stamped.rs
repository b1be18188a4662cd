//! The stamped socket: every read knows when its last byte arrived, every write when it left.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use ttft_kernel::{
    AsyncFd, Interest, WallOffset, mono_now, recv_stamped_buf, send_stamped, take_transmit_stamps, tcp_facts,
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
    /// The kernel's own stamp of that read: reads of one segment share it.
    last_real_ns: Cell<Option<i64>>,
    arrivals: Cell<u64>,
    bytes_in: Cell<u64>,
    bytes_out: Cell<u64>,
    /// The last write and the bytes out when the last bytes came in: what is written later (TLS closes with words of
    /// its own) is none of the request.
    out_before_in: Cell<(Option<Nanos>, u64)>,
    /// Sends whose transmit stamps may wait to be taken.
    stamps_due: Cell<u32>,
    write_failed: Cell<bool>,
    sent_first: Cell<Option<Nanos>>,
    sent_last: Cell<Option<Nanos>>,
    lag_max: Cell<Option<Nanos>>,
}

impl Tap {
    /// The last read: its number on this socket, and its stamp. A segment that took several reads counts as one.
    pub(crate) fn last_read(&self) -> (u64, Stamp) {
        (self.arrivals.get(), self.last.get())
    }

    /// Decrypted bytes that HTTP has been given.
    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes_in.get()
    }

    /// HTTP is given so many bytes, decrypted.
    pub(crate) fn note_bytes_in(&self, bytes: usize) {
        if bytes > 0 {
            self.bytes_in.set(self.bytes_in.get() + bytes as u64);
            self.out_before_in.set((self.sent_last.get(), self.bytes_out.get()));
        }
    }

    /// The peer stopped to take bytes before it had all of them.
    pub(crate) fn write_failed(&self) -> bool {
        self.write_failed.get()
    }

    /// Whether bytes, the end of the stream or an error wait to be read.
    pub(crate) fn has_unread(&self) -> bool {
        !matches!(self.socket.peek(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
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

    /// The same, up to the bytes that came in last.
    pub(crate) fn sent_before_answer(&self) -> (Option<Nanos>, Option<Nanos>) {
        (self.sent_first.get(), self.out_before_in.get().0)
    }

    /// The largest lag of a read since [`Tap::begin_request`].
    pub(crate) fn lag_max(&self) -> Option<Nanos> {
        self.lag_max.get()
    }

    /// The kernel's transmit stamps of everything written before the last bytes came in: handed to the device,
    /// acknowledged by the peer.
    pub(crate) fn transmit_stamps(&self) -> (Option<Nanos>, Option<Nanos>) {
        let bytes_out = self.out_before_in.get().1;
        if !self.transmit || bytes_out == 0 {
            return (None, None);
        }
        let stamps = take_transmit_stamps(&*self.socket, (bytes_out - 1) as u32);
        self.stamps_due.set(0);
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
        if kernel_real_ns.is_none() || kernel_real_ns != self.last_real_ns.replace(kernel_real_ns) {
            self.arrivals.set(self.arrivals.get() + 1);
        }
        self.lag_max.set(self.lag_max.get().max(stamp.lag()));
    }

    fn note_write(&self, before: Nanos, bytes: usize) {
        if self.sent_first.get().is_none() {
            self.sent_first.set(Some(before));
        }
        self.sent_last.set(Some(before));
        self.bytes_out.set(self.bytes_out.get() + bytes as u64);
        self.stamps_due.set(self.stamps_due.get() + u32::from(self.transmit));
    }

    /// Throws away the stamps of sends that more will follow. They count against the receive buffer, until no answer
    /// fits into it, and as long as one waits the socket reports an error to whoever registers it.
    fn discard_transmit_stamps(&self) {
        if self.transmit {
            self.stamps_due.set(0);
            take_transmit_stamps(&*self.socket, 0);
        }
    }
}

/// Sends in a row whose stamps may pile up.
const STAMPS_DUE: u32 = 16;

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
            last_real_ns: Cell::new(None),
            arrivals: Cell::new(0),
            bytes_in: Cell::new(0),
            bytes_out: Cell::new(0),
            out_before_in: Cell::new((None, 0)),
            stamps_due: Cell::new(0),
            write_failed: Cell::new(false),
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

    pub(crate) fn tap_ref(&self) -> &Tap {
        &self.tap
    }

    /// Waits until a full socket takes bytes again.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.room.is_none() {
            self.tap.discard_transmit_stamps();
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
            let room = into.remaining();
            match recv_stamped_buf(&*self.tap.socket, into) {
                Ok(received) => {
                    // A short read emptied the socket: without this every event would cost a second, empty read.
                    if received.len > 0 && received.len < room {
                        ready.clear_ready();
                    }
                    if received.len > 0 {
                        self.tap.note_read(received.kernel_real_ns);
                    }
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
            if self.tap.stamps_due.get() >= STAMPS_DUE {
                self.tap.discard_transmit_stamps();
            }
            let before = mono_now();
            match send_stamped(&*self.tap.socket, parts, self.tap.transmit) {
                Ok(sent) => {
                    self.tap.note_write(before, sent);
                    return Poll::Ready(Ok(sent));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready!(self.poll_room(cx))?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The peer may have answered before it closed (a request too large for it, say). Whoever waits for the
                // answer reads that, or the end of the stream, next; an error here would make HTTP forget it.
                Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                    self.tap.write_failed.set(true);
                    return Poll::Pending;
                }
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
