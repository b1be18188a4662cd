//! HTTP/1.1 as the server needs it: request heads and bodies out of a buffer, response heads into one.

use std::io::Write;

use memchr::memmem;

/// Longest head and longest body that are taken.
const MAX_HEAD: usize = 64 << 10;
const MAX_BODY: usize = 64 << 20;

/// How the body's end is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// What of a request's head matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) post: bool,
    pub(crate) path: String,
    pub(crate) keep_alive: bool,
    /// HTTP/1.1, so that chunks are understood.
    pub(crate) chunks: bool,
    pub(crate) framing: Framing,
    pub(crate) expects_continue: bool,
    pub(crate) request_id: Option<String>,
    pub(crate) authorization: Option<String>,
    pub(crate) fault: Option<String>,
    /// Bytes of the head.
    pub(crate) len: usize,
}

/// Why a request cannot be served: an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad(pub(crate) u16);

/// The head at the start of `input`; `None` while it is incomplete.
pub(crate) fn read_head(input: &[u8]) -> Result<Option<Head>, Bad> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let len = match request.parse(input) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Err(Bad(431)),
        Err(_) => return Err(Bad(400)),
    };
    let target = request.path.unwrap_or("/");
    let chunks = request.version == Some(1);
    let mut head = Head {
        post: request.method == Some("POST"),
        path: target.split('?').next().unwrap_or(target).to_owned(),
        keep_alive: chunks,
        chunks,
        framing: Framing::Length(0),
        expects_continue: false,
        request_id: None,
        authorization: None,
        fault: None,
        len,
    };
    for header in request.headers.iter() {
        let name = |known: &str| header.name.eq_ignore_ascii_case(known);
        let text = || std::str::from_utf8(header.value).ok().map(|text| text.trim().to_owned());
        if name("content-length") {
            let length = text().and_then(|text| text.parse().ok()).ok_or(Bad(400))?;
            if length > MAX_BODY {
                return Err(Bad(413));
            }
            if head.framing != Framing::Chunked {
                head.framing = Framing::Length(length);
            }
        } else if name("transfer-encoding") {
            if !header.value.eq_ignore_ascii_case(b"chunked") {
                return Err(Bad(501));
            }
            head.framing = Framing::Chunked;
        } else if name("connection") {
            for option in header.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                if option.eq_ignore_ascii_case(b"close") {
                    head.keep_alive = false;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    head.keep_alive = true;
                }
            }
        } else if name("expect") {
            head.expects_continue = header.value.eq_ignore_ascii_case(b"100-continue");
        } else if name("x-request-id") {
            head.request_id = text().filter(|id| is_plain(id));
        } else if name("authorization") {
            head.authorization = text();
        } else if name("x-sim-fault") {
            head.fault = text();
        }
    }
    Ok(Some(head))
}

/// Whether an id can be put into a header and into JSON as it is.
fn is_plain(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&b))
}

/// A complete body: its bytes, where they had to be put together, and how much of the input it took.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// The decoded chunks; `None` when the body is the input's first `taken` bytes as they are.
    pub(crate) decoded: Option<Vec<u8>>,
    pub(crate) taken: usize,
}

/// The body at the start of `input`; `None` while it is incomplete.
pub(crate) fn read_body(input: &[u8], framing: Framing) -> Result<Option<Body>, Bad> {
    match framing {
        Framing::Length(length) => {
            Ok((input.len() >= length).then_some(Body { decoded: None, taken: length }))
        }
        Framing::Chunked => read_chunks(input),
    }
}

fn read_chunks(input: &[u8]) -> Result<Option<Body>, Bad> {
    let mut decoded = Vec::new();
    let mut at = 0;
    loop {
        let (start, size) = match httparse::parse_chunk_size(&input[at..]) {
            Ok(httparse::Status::Complete((digits, size))) => (at + digits, size as usize),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Bad(400)),
        };
        if size == 0 {
            // Trailers, if any, end with an empty line.
            if input[start..].starts_with(b"\r\n") {
                return Ok(Some(Body { decoded: Some(decoded), taken: start + 2 }));
            }
            return match memmem::find(&input[start..], b"\r\n\r\n") {
                Some(end) => Ok(Some(Body { decoded: Some(decoded), taken: start + end + 4 })),
                None if input.len() - start > MAX_HEAD => Err(Bad(431)),
                None => Ok(None),
            };
        }
        if size > MAX_BODY || decoded.len() + size > MAX_BODY {
            return Err(Bad(413));
        }
        let end = start + size;
        if input.len() < end + 2 {
            return Ok(None);
        }
        if &input[end..end + 2] != b"\r\n" {
            return Err(Bad(400));
        }
        decoded.extend_from_slice(&input[start..end]);
        at = end + 2;
    }
}

/// The reason phrase of a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}

/// What every response head says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: &'a str,
    pub(crate) request_id: Option<&'a str>,
    /// The client is told that the connection ends.
    pub(crate) close: bool,
    /// More header lines, each with its line end.
    pub(crate) extra: &'a str,
}

impl Reply<'_> {
    /// The head of a response whose length is not known yet: in chunks, or until the connection ends.
    pub(crate) fn open(&self, out: &mut Vec<u8>, chunked: bool) {
        self.lines(out);
        out.extend_from_slice(if chunked { b"transfer-encoding: chunked\r\n\r\n" } else { b"\r\n" });
    }

    /// A whole response.
    pub(crate) fn whole(&self, out: &mut Vec<u8>, body: &[u8]) {
        self.lines(out);
        // Writing to a Vec cannot fail.
        let _ = write!(out, "content-length: {}\r\n\r\n", body.len());
        out.extend_from_slice(body);
    }

    fn lines(&self, out: &mut Vec<u8>) {
        if self.status == 200 {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\nserver: ttft-sim\r\ncontent-type: ");
        } else {
            let _ = write!(
                out,
                "HTTP/1.1 {} {}\r\nserver: ttft-sim\r\ncontent-type: ",
                self.status,
                reason(self.status)
            );
        }
        out.extend_from_slice(self.content_type.as_bytes());
        out.extend_from_slice(b"\r\n");
        if let Some(id) = self.request_id {
            out.extend_from_slice(b"x-request-id: ");
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(self.extra.as_bytes());
        if self.close {
            out.extend_from_slice(b"connection: close\r\n");
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// One chunk of a chunked body.
pub(crate) fn put_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let digits = (usize::BITS - data.len().leading_zeros()).div_ceil(4);
    out.extend((0..digits).rev().map(|i| DIGITS[data.len() >> (4 * i) & 15]));
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_when_they_are_whole() {
        let text = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-Request-ID: abc-1\r\n\
            Connection: foo, Close\r\nExpect: 100-continue\r\n\r\nhello";
        for cut in 0..text.len() - 5 {
            assert_eq!(read_head(&text[..cut]), Ok(None), "{cut}");
        }
        let head = read_head(text).unwrap().unwrap();
        assert_eq!((head.path.as_str(), head.framing), ("/v1/x", Framing::Length(5)));
        assert!(head.post && !head.keep_alive && head.expects_continue && head.chunks);
        assert_eq!(head.request_id.as_deref(), Some("abc-1"));
        assert_eq!(&text[head.len..], b"hello");
    }

    #[test]
    fn odd_heads_are_refused() {
        for (text, status) in [
            ("nonsense\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n", 413),
            ("GET / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 501),
        ] {
            assert_eq!(read_head(text.as_bytes()), Err(Bad(status)), "{text}");
        }
        let unsafe_id = b"GET / HTTP/1.1\r\nx-request-id: a\"b\r\n\r\n";
        assert_eq!(read_head(unsafe_id).unwrap().unwrap().request_id, None);
        assert!(!read_head(b"GET / HTTP/1.0\r\n\r\n").unwrap().unwrap().keep_alive);
    }

    #[test]
    fn chunked_bodies_are_put_together() {
        let text = b"5;x=y\r\nhello\r\nA\r\n, 123\r\n789\r\n0\r\nTrailer: x\r\n\r\nNEXT";
        let whole = text.len() - 4;
        for cut in 0..whole {
            assert_eq!(read_body(&text[..cut], Framing::Chunked), Ok(None), "{cut}");
        }
        let body = read_body(text, Framing::Chunked).unwrap().unwrap();
        assert_eq!(body, Body { decoded: Some(b"hello, 123\r\n789".to_vec()), taken: whole });
        assert_eq!(read_body(b"0\r\n\r\n", Framing::Chunked).unwrap().unwrap().taken, 5);
        assert_eq!(read_body(b"zz\r\n", Framing::Chunked), Err(Bad(400)));
        assert_eq!(read_body(b"1\r\nabc", Framing::Chunked), Err(Bad(400)));
    }

    #[test]
    fn chunks_carry_their_length_in_hex() {
        let mut out = Vec::new();
        put_chunk(&mut out, b"");
        put_chunk(&mut out, &[b'x'; 1]);
        put_chunk(&mut out, &[b'x'; 256]);
        assert!(out.starts_with(b"1\r\nx\r\n100\r\nxxx"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_comes_is_too_odd(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = read_head(&bytes);
            let _ = read_body(&bytes, Framing::Chunked);
        }

        #[test]
        fn what_is_cut_into_chunks_comes_back(
            parts in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 1..300), 0..8),
        ) {
            let mut text = Vec::new();
            for part in &parts {
                put_chunk(&mut text, part);
            }
            text.extend_from_slice(b"0\r\n\r\n");
            let body = read_body(&text, Framing::Chunked).unwrap().unwrap();
            proptest::prop_assert_eq!(body.decoded, Some(parts.concat()));
            proptest::prop_assert_eq!(body.taken, text.len());
        }
    }
}
