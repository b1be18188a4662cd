//! The anchor: a pair of loopback sockets that keeps the kernel stamping for the whole run, and tells whether it
//! does.
//!
//! The kernel starts to stamp when the first socket of the system asks for it, and does so from a work queue: the
//! first packets after that may carry none. So before a run one byte is sent to ourselves until a stamp comes back,
//! and the pair stays open.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use ttft_model::Nanos;

use crate::{WallOffset, enable_receive_stamps, mono_now, recv_stamped};

/// Tries before we believe that this system gives no stamps.
const TRIES: u32 = 200;

/// Keeps kernel stamps switched on while it lives.
#[derive(Debug)]
pub struct Anchor {
    _pair: Option<(TcpStream, TcpStream)>,
    first_lag: Option<Nanos>,
}

impl Anchor {
    /// Switches stamps on and waits for the first one, at most a fifth of a second.
    pub fn establish() -> Self {
        match Self::probe() {
            Ok(anchor) => anchor,
            Err(_) => Self { _pair: None, first_lag: None },
        }
    }

    fn probe() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut sender = TcpStream::connect(listener.local_addr()?)?;
        let (receiver, _) = listener.accept()?;
        enable_receive_stamps(&receiver)?;
        sender.set_nodelay(true)?;
        receiver.set_nonblocking(true)?;
        let mut wall = WallOffset::new();
        let mut buffer = [0; 16];
        for _ in 0..TRIES {
            let sent = mono_now();
            sender.write_all(b".")?;
            let received = loop {
                match recv_stamped(&receiver, &mut buffer) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    other => break other?,
                }
            };
            let stamp = wall.convert(received.kernel_real_ns, sent);
            if let Some(lag) = stamp.lag() {
                return Ok(Self { _pair: Some((sender, receiver)), first_lag: Some(lag) });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { _pair: Some((sender, receiver)), first_lag: None })
    }

    /// Whether the kernel stamps what it receives.
    pub fn holds(&self) -> bool {
        self.first_lag.is_some()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_stamps_loopback() {
        assert!(Anchor::establish().holds());
    }
}
