//! A client of raw bytes: it shares nothing with the program's own client, nor with the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use ttft_sim::{Faults, Profile, Sim, SimOptions};

pub(crate) fn options() -> SimOptions {
    SimOptions::new(Profile::load("instant").unwrap())
}

pub(crate) fn timed(ttft_ms: f64, itl_ms: f64) -> SimOptions {
    SimOptions::new(Profile::load("fixed").unwrap().with_times(Some(ttft_ms), Some(itl_ms)).unwrap())
}

pub(crate) fn with_faults(faults: &[&str]) -> Sim {
    Sim::start(SimOptions { faults: Faults::parse(faults.iter().copied()).unwrap(), ..options() }).unwrap()
}

/// The usual request: five tokens, as a stream with usage.
pub(crate) const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hello there"}],"stream":true,
    "max_tokens":5,"ignore_eos":true,"stream_options":{"include_usage":true}}"#;

pub(crate) fn connect(sim: &Sim) -> TcpStream {
    let socket = TcpStream::connect(sim.addr()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// An HTTP response, its body unchunked.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body came to its announced end.
    pub(crate) whole: bool,
    /// The connection was reset.
    pub(crate) reset: bool,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The events' data, `[DONE]` as it is.
    pub(crate) fn data(&self) -> Vec<String> {
        let text = self.text().replace("\r\n", "\n");
        assert!(text.is_empty() || text.ends_with("\n\n"), "{text:?}");
        text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).map(str::to_owned).collect()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.data().iter().filter(|d| *d != "[DONE]").map(|d| serde_json::from_str(d).unwrap()).collect()
    }

    /// How many words came as visible text.
    pub(crate) fn words(&self) -> usize {
        self.events()
            .iter()
            .filter_map(|event| {
                let choice = &event["choices"][0];
                choice["delta"]["content"].as_str().or(choice["text"].as_str()).map(str::to_owned)
            })
            .map(|text| text.split_whitespace().count())
            .sum()
    }
}

/// Reads one response. `spare` holds bytes read beyond the last one.
pub(crate) fn read(socket: &mut TcpStream, spare: &mut Vec<u8>) -> Response {
    let mut response = Response { head: String::new(), body: Vec::new(), whole: false, reset: false };
    let mut more = |spare: &mut Vec<u8>, response: &mut Response| {
        let mut buffer = [0; 16_384];
        match socket.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                spare.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) => {
                response.reset = error.kind() == std::io::ErrorKind::ConnectionReset;
                assert!(response.reset, "{error}");
                false
            }
        }
    };
    let find = |spare: &[u8], what: &[u8]| spare.windows(what.len()).position(|w| w == what);
    let end = loop {
        if let Some(end) = find(spare, b"\r\n\r\n") {
            break end + 4;
        }
        if !more(spare, &mut response) {
            return response;
        }
    };
    response.head = String::from_utf8(spare.drain(..end).collect()).unwrap();
    if response.status() == 100 {
        return response;
    }
    if let Some(length) = response.header("content-length") {
        let length: usize = length.parse().unwrap();
        while spare.len() < length && more(spare, &mut response) {}
        response.whole = spare.len() >= length;
        response.body = spare.drain(..length.min(spare.len())).collect();
    } else if response.header("transfer-encoding").is_some() {
        loop {
            let Some(line) = find(spare, b"\r\n") else {
                if more(spare, &mut response) {
                    continue;
                }
                return response;
            };
            let size = usize::from_str_radix(std::str::from_utf8(&spare[..line]).unwrap(), 16).unwrap();
            if spare.len() < line + 2 + size + 2 {
                if more(spare, &mut response) {
                    continue;
                }
                return response;
            }
            response.body.extend_from_slice(&spare[line + 2..line + 2 + size]);
            assert_eq!(&spare[line + 2 + size..][..2], b"\r\n");
            spare.drain(..line + 2 + size + 2);
            if size == 0 {
                response.whole = true;
                return response;
            }
        }
    } else {
        while more(spare, &mut response) {}
        response.body = std::mem::take(spare);
        response.whole = !response.reset;
    }
    response
}

/// Sends bytes on a new connection and reads one response.
pub(crate) fn ask_raw(sim: &Sim, bytes: &str) -> Response {
    let mut socket = connect(sim);
    socket.write_all(bytes.as_bytes()).unwrap();
    read(&mut socket, &mut Vec::new())
}

pub(crate) fn ask(sim: &Sim, path: &str, headers: &str, body: &str) -> Response {
    ask_raw(sim, &post(path, headers, body))
}

pub(crate) fn chat(sim: &Sim) -> Response {
    ask(sim, "/v1/chat/completions", "", CHAT)
}

pub(crate) fn get(sim: &Sim, path: &str) -> Response {
    ask_raw(sim, &format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
}
