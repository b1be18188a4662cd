//! TCP sockets with the kernel's stamps: when bytes arrived, when they left, when the peer had them.

use std::io::{self, IoSlice};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use libc::{c_int, c_void};
use tokio::io::ReadBuf;
use ttft_model::TcpFacts;

use super::control::{self, Control};
use crate::{Received, TransmitStamps};

/// Bytes of `struct tcp_info` up to `tcpi_snd_wnd` (Linux 5.4); older kernels fill less.
const TCP_INFO_BYTES: usize = 232;
const TCP_ESTABLISHED: u8 = 1;

/// Asks for a receive stamp with every read. Call it before `connect` or right after `accept`.
pub fn enable_receive_stamps(fd: impl AsFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    set_option(&fd, libc::SO_TIMESTAMPING, flags).or_else(|_| set_option(&fd, libc::SO_TIMESTAMPNS, 1))
}

/// Lets [`send_stamped`] ask for transmit stamps. Only on a connected socket with nothing in flight.
pub fn enable_transmit_stamps(fd: impl AsFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set_option(&fd, libc::SO_TIMESTAMPING, flags)
}

/// Lets `connect` choose its port from this part of the system's range only (Linux 6.3). The kernel's own search gets
/// slow, by milliseconds a connection, once thousands of ports to one server are taken.
pub fn limit_local_ports(fd: impl AsFd, ports: RangeInclusive<u16>) -> io::Result<()> {
    const IP_LOCAL_PORT_RANGE: c_int = 51;
    let value = u32::from(*ports.end()) << 16 | u32::from(*ports.start());
    set_option_at(&fd, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, value)
}

fn set_option(fd: &impl AsFd, name: c_int, value: u32) -> io::Result<()> {
    set_option_at(fd, libc::SOL_SOCKET, name, value)
}

fn set_option_at(fd: &impl AsFd, level: c_int, name: c_int, value: u32) -> io::Result<()> {
    // SAFETY: the option's value is one integer that lives across the call, and its size is passed with it.
    let result = unsafe {
        libc::setsockopt(
            raw(fd),
            level,
            name,
            (&raw const value).cast::<c_void>(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    check(result as isize).map(|_| ())
}

/// Reads what is there, with the stamp of the last byte. The socket must be non-blocking.
pub fn recv_stamped(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    recv_into(&fd, buffer.as_mut_ptr(), buffer.len())
}

/// The same into the unfilled part of a buffer, which need not be initialised before: that would cost more than the
/// read of a small event.
pub fn recv_stamped_buf(fd: impl AsFd, buffer: &mut ReadBuf<'_>) -> io::Result<Received> {
    // SAFETY: nothing is de-initialised: the room is only written to.
    let room = unsafe { buffer.unfilled_mut() };
    let received = recv_into(&fd, room.as_mut_ptr().cast(), room.len())?;
    // SAFETY: the kernel has written `len` bytes to the front of the room.
    unsafe { buffer.assume_init(received.len) };
    buffer.advance(received.len);
    Ok(received)
}

fn recv_into(fd: &impl AsFd, room: *mut u8, len: usize) -> io::Result<Received> {
    let mut part = libc::iovec { iov_base: room.cast(), iov_len: len };
    let mut stamps = Control::EMPTY;
    let mut message =
        control::message(&raw mut part, 1, stamps.0.as_mut_ptr().cast(), control::CONTROL_BYTES);
    // SAFETY: the message points to one iovec over the caller's room, of that length, and to `stamps`, all alive
    // across the call.
    let len = check(unsafe { libc::recvmsg(raw(fd), &raw mut message, 0) })?;
    Ok(Received { len, kernel_real_ns: control::parse(&message).stamp })
}

/// Writes what fits, and asks for transmit stamps of it when told to. The socket must be non-blocking.
pub fn send_stamped(fd: impl AsFd, parts: &[IoSlice<'_>], stamp: bool) -> io::Result<usize> {
    let mut ask = Control::EMPTY;
    let control_len = if stamp { control::ask_for_transmit_stamps(&mut ask) } else { 0 };
    // IoSlice is guaranteed to have the layout of iovec, and sendmsg does not write to it.
    let message = control::message(
        parts.as_ptr().cast_mut().cast::<libc::iovec>(),
        parts.len(),
        if stamp { ask.0.as_mut_ptr().cast() } else { std::ptr::null_mut() },
        control_len,
    );
    // SAFETY: the message points to `parts` and `ask`, both alive across the call.
    check(unsafe { libc::sendmsg(raw(&fd), &raw const message, libc::MSG_NOSIGNAL) })
}

/// Takes the transmit stamps that have come in for the send whose last byte was number `last_byte` of the
/// connection (from 0, wrapping). Stamps of earlier sends are thrown away.
pub fn take_transmit_stamps(fd: impl AsFd, last_byte: u32) -> TransmitStamps {
    const AT_ONCE: usize = 4;
    let mut stamps = TransmitStamps::default();
    let mut controls = [Control::EMPTY; AT_ONCE];
    // A request is one send, or a few when its body is large; the bound is for a peer that plays tricks.
    for _ in 0..64 {
        let mut messages = controls.each_mut().map(|buffer| libc::mmsghdr {
            msg_hdr: control::message(
                std::ptr::null_mut(),
                0,
                buffer.0.as_mut_ptr().cast(),
                control::CONTROL_BYTES,
            ),
            msg_len: 0,
        });
        // SAFETY: each header points to a control buffer of its own, all alive across the call; no data is read.
        let got = unsafe {
            libc::recvmmsg(
                raw(&fd),
                messages.as_mut_ptr(),
                AT_ONCE as libc::c_uint,
                libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).unwrap_or(0);
        for message in &messages[..got] {
            let said = control::parse(&message.msg_hdr);
            match said.transmit {
                Some((control::TSTAMP_SND, byte)) if byte == last_byte => stamps.device = said.stamp,
                Some((control::TSTAMP_ACK, byte)) if byte == last_byte => stamps.acked = said.stamp,
                _ => {}
            }
        }
        if got < AT_ONCE {
            break;
        }
    }
    stamps
}

/// Whether the connection is established: on loopback it is, as soon as `connect` returns.
pub fn is_connected(fd: impl AsFd) -> bool {
    tcp_info(&fd).is_some_and(|info| info[0] == TCP_ESTABLISHED)
}

/// What the kernel knows of the path.
pub fn tcp_facts(fd: impl AsFd) -> Option<TcpFacts> {
    let info = tcp_info(&fd)?;
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    // Offsets of tcpi_rtt, tcpi_min_rtt, tcpi_total_retrans and tcpi_rcv_ooopack in `linux/tcp.h`.
    Some(TcpFacts {
        rtt_us: word(68),
        min_rtt_us: word(148),
        retransmits: word(100),
        out_of_order: word(224),
    })
}

fn tcp_info(fd: &impl AsFd) -> Option<[u8; TCP_INFO_BYTES]> {
    let mut info = [0u8; TCP_INFO_BYTES];
    let mut len = TCP_INFO_BYTES as libc::socklen_t;
    // SAFETY: the buffer and its length are passed together and live across the call.
    let result = unsafe {
        libc::getsockopt(raw(fd), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut len)
    };
    (result == 0).then_some(info)
}

fn raw(fd: &impl AsFd) -> RawFd {
    fd.as_fd().as_raw_fd()
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{Anchor, WallOffset, mono_now};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn a_stamp_lies_between_send_and_read() {
        let anchor = Anchor::establish();
        let (mut near, far) = pair();
        enable_receive_stamps(&far).unwrap();
        let mut wall = WallOffset::new();
        let before = mono_now();
        near.write_all(b"hello").unwrap();
        let mut buffer = [0; 64];
        let got = recv_stamped(&far, &mut buffer).unwrap();
        let stamp = wall.convert(got.kernel_real_ns, before);
        assert_eq!(&buffer[..got.len], b"hello");
        let kernel = stamp.kernel.expect("loopback is stamped while the anchor holds");
        assert!(before <= kernel && kernel <= stamp.user, "{before:?} {stamp:?}");
        drop(anchor);
    }

    #[test]
    fn transmit_stamps_belong_to_the_last_send() {
        let _anchor = Anchor::establish();
        let (near, mut far) = pair();
        enable_transmit_stamps(&near).unwrap();
        let mut wall = WallOffset::new();
        let before = mono_now();
        assert_eq!(send_stamped(&near, &[IoSlice::new(b"head"), IoSlice::new(b"body")], true).unwrap(), 8);
        assert_eq!(send_stamped(&near, &[IoSlice::new(b"tail")], true).unwrap(), 4);
        let mut buffer = [0; 12];
        far.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"headbodytail");
        // An answer carries the acknowledgement, as in a real exchange.
        far.write_all(b"!").unwrap();
        (&near).read_exact(&mut buffer[..1]).unwrap();
        let stamps = take_transmit_stamps(&near, 11);
        let device = wall.convert_past(stamps.device.unwrap(), before).unwrap();
        let acked = wall.convert_past(stamps.acked.unwrap(), before).unwrap();
        assert!(before <= device && device <= acked && acked <= mono_now());
        assert_eq!(take_transmit_stamps(&near, 11), TransmitStamps::default());
    }

    #[test]
    fn facts_of_a_fresh_connection() {
        let (near, _far) = pair();
        assert!(is_connected(&near));
        let facts = tcp_facts(&near).unwrap();
        assert!(facts.rtt_us > 0 && facts.retransmits == 0, "{facts:?}");
    }
}
