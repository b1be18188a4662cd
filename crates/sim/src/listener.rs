//! The listening socket.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

/// A listener with the queue and the options that accepted sockets inherit.
pub(crate) fn listen(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    // Linux hands both of these down to accepted sockets: two system calls less for each.
    socket.set_tcp_nodelay(true)?;
    ttft_kernel::enable_receive_stamps(&socket)?;
    // A congestion control with pacing would put a timer between a token and the wire. Best effort.
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_congestion(b"reno");
    socket.bind(&addr.into())?;
    socket.listen(65_535)?;
    Ok(socket.into())
}
