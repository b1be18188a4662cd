//! A proxy that buffers: it hands an answer on when it has all of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Runs until the test's process ends.
pub(crate) struct HoldingProxy {
    pub(crate) url: String,
}

impl HoldingProxy {
    /// Before that server.
    pub(crate) fn before(url: &str) -> Self {
        let upstream: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(upstream).unwrap();
                let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut up, &mut down));
                std::thread::spawn(move || hold(server, client));
            }
        });
        Self { url }
    }
}

/// Hands on one whole answer after another.
fn hold(mut server: TcpStream, mut client: TcpStream) {
    let mut held = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n) = server.read(&mut buffer) {
        held.extend_from_slice(&buffer[..n]);
        if (n == 0 || is_whole(&held)) && client.write_all(&std::mem::take(&mut held)).is_err() {
            return;
        }
        if n == 0 {
            let _ = client.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn is_whole(held: &[u8]) -> bool {
    let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&held[..end]).to_lowercase();
    match head.lines().find_map(|line| line.strip_prefix("content-length:")) {
        Some(length) => held.len() >= end + 4 + length.trim().parse::<usize>().unwrap(),
        None => held.ends_with(b"\r\n0\r\n\r\n"),
    }
}
