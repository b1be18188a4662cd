//! What the fuzz targets share: a body is read whole and in pieces, and the same must come of it.

#![forbid(unsafe_code)]

use std::sync::Arc;

use ttft_dialect::{Dialect, End, Options, Texts, Transcript};
use ttft_model::{Answer, Nanos, Stamp};

/// Reads a body in pieces that all count as one read, so that nothing but the cuts differs.
pub fn read<'a>(
    dialect: &Arc<Dialect>,
    content_type: &str,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Answer, Texts) {
    let mut transcript = Transcript::new(dialect.clone(), Options { keep_text: true });
    transcript.on_head(200, Some(content_type), None);
    for piece in pieces {
        transcript.on_body(piece, 1, Stamp::user(Nanos(1)));
    }
    transcript.finish_with_texts(End::Clean, Stamp::user(Nanos(2)))
}

/// Checks one body as a stream of that dialect, whole, byte by byte and in pieces of a size.
pub fn check(dialect: &str, content_type: &str, body: &[u8]) {
    let Some(dialect) = Dialect::builtin(dialect) else { return };
    let whole = read(&dialect, content_type, [body]);
    let size = 2 + body.len() % 13;
    assert_eq!(read(&dialect, content_type, body.chunks(1)), whole, "byte by byte");
    assert_eq!(read(&dialect, content_type, body.chunks(size)), whole, "in pieces of {size}");
}
