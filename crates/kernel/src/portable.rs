//! Platforms without kernel stamps: the same calls, whose answers say that there are none.

use std::io::{self, IoSlice};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd};

use tokio::io::ReadBuf;
use ttft_model::TcpFacts;

use crate::{Received, TransmitStamps};

fn unsupported() -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// This platform has no receive stamps on TCP.
pub fn enable_receive_stamps(_fd: impl AsFd) -> io::Result<()> {
    Err(unsupported())
}

/// This platform has no transmit stamps.
pub fn enable_transmit_stamps(_fd: impl AsFd) -> io::Result<()> {
    Err(unsupported())
}

/// Reads what is there, without a stamp.
pub fn recv_stamped(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    // SAFETY: buffer and length belong together and live across the call.
    let len = unsafe { libc::recv(fd.as_fd().as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    Ok(Received { len, kernel_real_ns: None })
}

/// The same into the unfilled part of a buffer.
pub fn recv_stamped_buf(fd: impl AsFd, buffer: &mut ReadBuf<'_>) -> io::Result<Received> {
    let received = recv_stamped(fd, buffer.initialize_unfilled())?;
    buffer.advance(received.len);
    Ok(received)
}

/// Not possible here.
pub fn limit_local_ports(_fd: impl AsFd, _ports: RangeInclusive<u16>) -> io::Result<()> {
    Err(unsupported())
}

/// Writes what fits.
pub fn send_stamped(fd: impl AsFd, parts: &[IoSlice<'_>], _stamp: bool) -> io::Result<usize> {
    // SAFETY: IoSlice has the layout of iovec, and the slices live across the call.
    let len =
        unsafe { libc::writev(fd.as_fd().as_raw_fd(), parts.as_ptr().cast(), parts.len() as libc::c_int) };
    usize::try_from(len).map_err(|_| io::Error::last_os_error())
}

/// No stamps.
pub fn take_transmit_stamps(_fd: impl AsFd, _last_byte: u32) -> TransmitStamps {
    TransmitStamps::default()
}

/// Not told here; the caller waits for writability.
pub fn is_connected(_fd: impl AsFd) -> bool {
    false
}

/// Not told here.
pub fn tcp_facts(_fd: impl AsFd) -> Option<TcpFacts> {
    None
}

/// Not possible here.
pub fn pin_to_cpu(_cpu: usize) -> io::Result<()> {
    Err(unsupported())
}

/// Not possible here.
pub fn request_realtime() -> io::Result<()> {
    Err(unsupported())
}

/// Nothing to set here.
pub fn set_timer_slack(_ns: u32) {}

/// Elsewhere priorities are the whole process's: nothing is changed.
pub fn yield_to_others() {}
