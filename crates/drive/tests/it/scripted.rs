//! A server that does to each request what a test says.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(45);

pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub(crate) const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
pub(crate) const TOKEN: &str = r#"{"choices":[{"index":0,"delta":{"content":"word "}}]}"#;
pub(crate) const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
pub(crate) const END: &str = "0\r\n\r\n";

/// One event in one chunk.
pub(crate) fn event(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

/// A whole answer of one token.
pub(crate) fn answer() -> String {
    [HEAD, &event(TOKEN), &event(FINISH), &event("[DONE]"), END].concat()
}

/// Starts a server; `script` is called for each request, whose head and body have been read.
pub(crate) fn serve(
    script: impl Fn(&mut TcpStream) -> io::Result<()> + Clone + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let script = script.clone();
            std::thread::spawn(move || talk(socket, &script));
        }
    });
    addr
}

fn talk(mut socket: TcpStream, script: &impl Fn(&mut TcpStream) -> io::Result<()>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(LIMIT))?;
    socket.set_write_timeout(Some(LIMIT))?;
    while read_request(&mut socket)? {
        script(&mut socket)?;
    }
    Ok(())
}

fn read_request(socket: &mut TcpStream) -> io::Result<bool> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let got = socket.read(&mut buffer)?;
        if got == 0 {
            return Ok(false);
        }
        text.extend_from_slice(&buffer[..got]);
        let Some(head) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let lines = String::from_utf8_lossy(&text[..head]).to_ascii_lowercase();
        let length = lines.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if text.len() >= head + 4 + length.parse::<usize>().unwrap() {
            return Ok(true);
        }
    }
}

/// Waits until the client has gone.
pub(crate) fn hang(socket: &mut TcpStream) -> io::Result<()> {
    while socket.read(&mut [0; 64])? > 0 {}
    Err(io::ErrorKind::ConnectionAborted.into())
}

pub(crate) fn say(socket: &mut TcpStream, text: &str) -> io::Result<()> {
    socket.write_all(text.as_bytes())
}
