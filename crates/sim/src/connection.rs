//! One client's connection: its socket, what was read and not yet understood, what is to be written.

use std::io::{self, ErrorKind, Write};

use mio::net::TcpStream;
use ttft_kernel::{WallOffset, mono_now, recv_stamped};
use ttft_model::{Nanos, Stamp};

use crate::exchange::Exchange;
use crate::http::Head;

/// Bytes that may wait unread while an answer is under way.
const MAX_AHEAD: usize = 1 << 20;

/// One client's connection.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    /// Counts connections from 1.
    pub(crate) number: u64,
    opened: Nanos,
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    written: usize,
    /// The head of the request whose body is being read.
    pub(crate) head: Option<Head>,
    /// When the last read brought something.
    pub(crate) arrival: Stamp,
    pub(crate) exchange: Option<Box<Exchange>>,
    /// No more requests; to be closed when everything is written.
    pub(crate) closing: bool,
    /// Output is held back until then.
    pub(crate) held_until: Option<Nanos>,
    /// Reading stopped because the client is far ahead.
    pub(crate) paused: bool,
    pub(crate) idle_since: Option<Nanos>,
}

/// What a look at the socket brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Something,
    Nothing,
    /// The client is gone.
    End,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream, number: u64) -> Self {
        let now = mono_now();
        Self {
            socket,
            number,
            opened: now,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            head: None,
            arrival: Stamp::user(now),
            exchange: None,
            closing: false,
            held_until: None,
            paused: false,
            idle_since: Some(now),
        }
    }

    /// Reads all there is. `buffer` is a place to read to.
    pub(crate) fn read(&mut self, buffer: &mut [u8], wall: &mut WallOffset) -> Read {
        let mut read = Read::Nothing;
        loop {
            if self.exchange.is_some() && self.input.len() > MAX_AHEAD {
                self.paused = true;
                return read;
            }
            match recv_stamped(&self.socket, buffer) {
                Ok(received) if received.len == 0 => return Read::End,
                Ok(received) => {
                    self.arrival = wall.convert(received.kernel_real_ns, self.opened);
                    self.input.extend_from_slice(&buffer[..received.len]);
                    read = Read::Something;
                    // A short read emptied the socket; what comes later raises a new edge.
                    if received.len < buffer.len() {
                        return read;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Read::End,
            }
        }
    }

    /// Writes what fits. An error means that the client is gone.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.held_until.is_some() {
            return Ok(());
        }
        if let Some(exchange) = &mut self.exchange {
            if exchange.has_unstamped() {
                exchange.stamp(mono_now());
            }
            if let Some(at) = exchange.split_at.take() {
                self.write_to(at)?;
            }
        }
        self.write_to(self.output.len())
    }

    /// Whether everything is written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.output.is_empty()
    }

    fn write_to(&mut self, end: usize) -> io::Result<()> {
        while self.written < end {
            match (&self.socket).write(&self.output[self.written..end]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.written == self.output.len() {
            self.written = 0;
            self.output.clear();
            // One padded event must not keep its megabytes.
            self.output.shrink_to(1 << 16);
        }
        Ok(())
    }
}
