//! Undoes gzip and deflate as the bytes come, in small pieces so that a bomb cannot fill the memory.

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Compressed bytes taken at once: at most a thousand times as many come out.
const PIECE: usize = 512;

/// The decoder of one body.
#[derive(Debug)]
pub(super) enum Inflate {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// `deflate` before its first byte, which tells whether it has zlib's header.
    Deflate,
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
}

impl Inflate {
    pub(super) fn gzip() -> Self {
        Self::Gzip(MultiGzDecoder::new(Vec::new()))
    }

    pub(super) fn deflate() -> Self {
        Self::Deflate
    }

    /// Takes compressed bytes and hands on all that they give, until `out` wants no more. False when it does not, and
    /// when the bytes are broken.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8]) -> bool) -> bool {
        if let (Self::Deflate, Some(first)) = (&*self, bytes.first()) {
            // RFC 1950: the low half of the first byte names the method, 8.
            *self = if first & 15 == 8 {
                Self::Zlib(ZlibDecoder::new(Vec::new()))
            } else {
                Self::Raw(DeflateDecoder::new(Vec::new()))
            };
        }
        bytes.chunks(PIECE).all(|piece| match self {
            Self::Gzip(decoder) => {
                let whole = step(decoder, piece);
                drain(decoder.get_mut(), out) && whole
            }
            Self::Zlib(decoder) => {
                let whole = step(decoder, piece);
                drain(decoder.get_mut(), out) && whole
            }
            Self::Raw(decoder) => {
                let whole = step(decoder, piece);
                drain(decoder.get_mut(), out) && whole
            }
            Self::Deflate => true,
        })
    }
}

fn step(decoder: &mut impl Write, piece: &[u8]) -> bool {
    decoder.write_all(piece).and_then(|()| decoder.flush()).is_ok()
}

fn drain(plain: &mut Vec<u8>, out: &mut impl FnMut(&[u8]) -> bool) -> bool {
    let goes_on = plain.is_empty() || out(plain);
    plain.clear();
    goes_on
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn check(compressed: &[u8], mut inflate: Inflate, plain: &[u8], size: usize) {
        let mut out = Vec::new();
        for read in compressed.chunks(size) {
            assert!(inflate.push(read, &mut |bytes| {
                out.extend_from_slice(bytes);
                true
            }));
        }
        assert!(out == plain, "in reads of {size}");
    }

    #[test]
    fn all_kinds_in_reads_of_any_size() {
        let plain: Vec<u8> = (0..5000_u32).flat_map(|i| format!("data: {i}\n\n").into_bytes()).collect();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&plain).unwrap();
        zlib.write_all(&plain).unwrap();
        raw.write_all(&plain).unwrap();
        let (gzip, zlib, raw) = (gzip.finish().unwrap(), zlib.finish().unwrap(), raw.finish().unwrap());
        for size in [1, 7, 4096, 1 << 20] {
            check(&gzip, Inflate::gzip(), &plain, size);
            check(&zlib, Inflate::deflate(), &plain, size);
            check(&raw, Inflate::deflate(), &plain, size);
        }
    }

    #[test]
    fn what_was_flushed_comes_at_once() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"data: a\n\n").unwrap();
        gzip.flush().unwrap();
        let mut out = Vec::new();
        assert!(Inflate::gzip().push(gzip.get_ref(), &mut |bytes| {
            out.extend_from_slice(bytes);
            true
        }));
        assert_eq!(out, b"data: a\n\n");
    }

    #[test]
    fn a_bomb_comes_in_small_pieces() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&vec![0; 32 << 20]).unwrap();
        let (mut total, mut largest) = (0, 0);
        assert!(Inflate::gzip().push(&gzip.finish().unwrap(), &mut |bytes| {
            total += bytes.len();
            largest = largest.max(bytes.len());
            true
        }));
        assert_eq!(total, 32 << 20);
        assert!(largest <= 1 << 20, "{largest} bytes at once");
    }

    #[test]
    fn broken_bytes_are_told() {
        assert!(!Inflate::gzip().push(b"data: not gzip at all", &mut |_| true));
    }
}
