//! A server that answers with any bytes at all.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// What a request was.
pub(crate) struct Asked {
    /// Request line and headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn is_post(&self) -> bool {
        self.head.starts_with("POST")
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line =
            self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }
}

/// Serves on a free port until the test ends; returns the base URL. Each connection gets one answer and is closed.
pub(crate) fn serve(answer: impl Fn(&Asked) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let _ = exchange(stream, &*answer);
            });
        }
    });
    url
}

fn exchange(mut stream: TcpStream, answer: &dyn Fn(&Asked) -> String) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let mut room = [0; 16 << 10];
    loop {
        let n = stream.read(&mut room)?;
        bytes.extend_from_slice(&room[..n]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let asked = Asked { head: head.to_owned(), body: body.to_owned() };
            let length = asked.header("content-length").map_or(0, |n| n.parse().unwrap_or(0));
            if asked.body.len() >= length {
                stream.write_all(answer(&asked).as_bytes())?;
                return stream.shutdown(std::net::Shutdown::Write);
            }
        }
        if n == 0 {
            return Ok(());
        }
    }
}

/// A whole answer.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

/// An answer of JSON.
pub(crate) fn json(status: &str, body: &serde_json::Value) -> String {
    answer(status, "content-type: application/json\r\n", &body.to_string())
}

/// A stream of events.
pub(crate) fn events(events: &[&str]) -> String {
    let body = events.iter().fold(String::new(), |body, event| body + "data: " + event + "\n\n");
    answer("200 OK", "content-type: text/event-stream\r\n", &body)
}
