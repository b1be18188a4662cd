//! Just enough of HTTP/1 to find the body in a captured response: head, chunks, length. Not for live sockets.

/// The largest head that is read.
const MAX_HEAD: usize = 256 << 10;

/// What is needed of a response head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) content_encoding: Option<String>,
}

/// A response on its way; bytes in, body bytes out.
#[derive(Debug, Default)]
pub(super) struct Response {
    /// The head may speak of chunks that the body no longer has, as when `curl -i` wrote it.
    may_be_undone: bool,
    head: Option<Head>,
    /// A head or a chunk's size line that is not whole yet.
    kept: Vec<u8>,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// So many bytes are to come.
    Length(u64),
    ChunkSize,
    /// So many bytes of the chunk are to come.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    Trailer,
    ToTheEnd,
    Complete,
}

impl Response {
    /// A response as a tool may have written it to a file.
    pub(super) fn of_a_file() -> Self {
        Self { may_be_undone: true, ..Self::default() }
    }

    /// The head, once it is whole.
    pub(super) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Nothing has come.
    pub(super) fn is_untouched(&self) -> bool {
        self.head.is_none() && self.kept.is_empty()
    }

    /// HTTP's own end of the body was seen.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// The body has no end of its own.
    pub(super) fn ends_with_connection(&self) -> bool {
        self.state == State::ToTheEnd
    }

    /// Takes bytes, and appends what of them is body.
    pub(super) fn push(&mut self, mut bytes: &[u8], body: &mut Vec<u8>) -> Result<(), String> {
        while !bytes.is_empty() {
            match self.state {
                State::Head => bytes = self.take_head(bytes)?,
                State::ToTheEnd => {
                    body.extend_from_slice(bytes);
                    return Ok(());
                }
                State::Complete => return Ok(()),
                State::Length(left) | State::Chunk(left) => {
                    let some = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    body.extend_from_slice(&bytes[..some]);
                    bytes = &bytes[some..];
                    let left = left - some as u64;
                    self.state = match (self.state, left) {
                        (State::Length(_), 0) => State::Complete,
                        (State::Length(_), _) => State::Length(left),
                        (_, 0) => State::ChunkEnd,
                        _ => State::Chunk(left),
                    };
                }
                State::ChunkSize | State::ChunkEnd | State::Trailer => bytes = self.take_line(bytes, body)?,
            }
        }
        Ok(())
    }

    fn take_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], String> {
        let before = self.kept.len();
        self.kept.extend_from_slice(bytes);
        // A head ends with a line, so there is no need to look at it before one does.
        if !bytes.contains(&b'\n') && self.kept.len() <= MAX_HEAD {
            return Ok(&[]);
        }
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut response = httparse::Response::new(&mut headers);
        let length =
            match response.parse(&self.kept).map_err(|error| format!("not an HTTP response: {error}"))? {
                httparse::Status::Partial if self.kept.len() > MAX_HEAD => {
                    return Err("the response head is too long".to_owned());
                }
                httparse::Status::Partial => return Ok(&[]),
                httparse::Status::Complete(length) => length,
            };

        let status = response.code.unwrap_or(0);
        let header = |name: &str| {
            let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            Some(String::from_utf8_lossy(found.value).into_owned())
        };
        // 1xx is a note on the way to the response.
        if status >= 200 {
            let chunked = header("transfer-encoding")
                .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
            let length = header("content-length").and_then(|value| value.trim().parse().ok());
            self.state = match (chunked, length) {
                (true, _) => State::ChunkSize,
                (false, Some(0)) => State::Complete,
                (false, Some(length)) => State::Length(length),
                (false, None) if matches!(status, 204 | 304) => State::Complete,
                (false, None) => State::ToTheEnd,
            };
            self.head = Some(Head {
                status,
                content_type: header("content-type"),
                content_encoding: header("content-encoding"),
            });
        }
        self.kept.clear();
        Ok(&bytes[length - before..])
    }

    fn take_line<'a>(&mut self, bytes: &'a [u8], body: &mut Vec<u8>) -> Result<&'a [u8], String> {
        let end = memchr::memchr(b'\n', bytes);
        self.kept.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        if self.kept.len() > MAX_HEAD {
            return Err("a line of the chunked body is too long".to_owned());
        }
        if self.may_be_undone && self.state == State::ChunkSize {
            if !self.kept.first().is_some_and(u8::is_ascii_hexdigit) || self.kept.contains(&b':') {
                self.state = State::ToTheEnd;
                body.append(&mut self.kept);
                return Ok(&bytes[end.unwrap_or(bytes.len())..]);
            }
            self.may_be_undone = end.is_none();
        }
        let Some(end) = end else { return Ok(&[]) };
        let line = std::mem::take(&mut self.kept);
        let line = String::from_utf8_lossy(line.trim_ascii());
        self.state = match self.state {
            State::ChunkSize => {
                let digits = line.split(';').next().unwrap_or_default().trim();
                match u64::from_str_radix(digits, 16) {
                    Ok(0) => State::Trailer,
                    Ok(size) => State::Chunk(size),
                    Err(_) => return Err(format!("`{}` is not the size of a chunk", line.escape_debug())),
                }
            }
            State::Trailer if line.is_empty() => State::Complete,
            State::Trailer => State::Trailer,
            _ => State::ChunkSize,
        };
        Ok(&bytes[end + 1..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(response: &[u8], body: &str, complete: bool) {
        for cut in 0..=response.len() {
            let (mut parsed, mut out) = (Response::default(), Vec::new());
            parsed.push(&response[..cut], &mut out).unwrap();
            parsed.push(&response[cut..], &mut out).unwrap();
            assert_eq!(String::from_utf8_lossy(&out), body, "cut at {cut}");
            assert_eq!(parsed.is_complete(), complete, "cut at {cut}");
        }
    }

    #[test]
    fn bodies() {
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", true);
        check(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", "ab", false);
        check(b"HTTP/1.0 200 OK\r\n\r\nabc", "abc", false);
        check(b"HTTP/1.1 204 No Content\r\n\r\n", "", true);
        check(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", "a", true);
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
        check(chunked, "abc0123456789", true);
        check(&chunked[..chunked.len() - 13], "abc0123456789", false);
    }

    #[test]
    fn chunks_that_a_tool_has_undone() {
        for body in ["data: a\n\n", "{\"a\":1}\n", ": ping\n\ndata: a\n\n", ""] {
            let (mut parsed, mut out) = (Response::of_a_file(), Vec::new());
            let response = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            parsed.push(response.as_bytes(), &mut out).unwrap();
            assert_eq!(String::from_utf8_lossy(&out), body);
        }
        let (mut parsed, mut out) = (Response::of_a_file(), Vec::new());
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        parsed.push(chunked, &mut out).unwrap();
        assert_eq!((out.as_slice(), parsed.is_complete()), (&b"abc"[..], true));
    }

    #[test]
    fn what_is_not_http() {
        let mut out = Vec::new();
        assert!(Response::default().push(b"HTTP/1.1 2x0 OK\r\n\r\n", &mut out).is_err());
        let bad_size = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
        assert!(Response::default().push(bad_size, &mut out).unwrap_err().contains("`zz`"));
    }
}
