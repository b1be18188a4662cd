//! Ids of requests and traces.

use rand::Rng;
use ttft_model::{RequestId, TraceId};

/// A `UUIDv7` (RFC 9562): milliseconds since 1970, then random bits.
pub(crate) fn request_id(unix_ns: i64, random: &mut impl Rng) -> RequestId {
    let mut id = [0; 16];
    random.fill_bytes(&mut id[6..]);
    let millis = (unix_ns / 1_000_000) as u64;
    id[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    id[6] = 0x70 | id[6] & 0x0f;
    id[8] = 0x80 | id[8] & 0x3f;
    RequestId(id)
}

/// A trace id and a span id; neither may be all zeros.
pub(crate) fn trace_id(random: &mut impl Rng) -> TraceId {
    let mut ids = TraceId::default();
    random.fill_bytes(&mut ids.trace);
    random.fill_bytes(&mut ids.span);
    ids.trace[0] |= 1;
    ids.span[0] |= 1;
    ids
}

/// The value of `traceparent` (W3C Trace Context): version 00, sampled.
pub(crate) fn traceparent(ids: &TraceId) -> [u8; 55] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = *b"00-00000000000000000000000000000000-0000000000000000-01";
    let mut write = |at: usize, bytes: &[u8]| {
        for (i, byte) in bytes.iter().enumerate() {
            text[at + 2 * i] = DIGITS[usize::from(byte >> 4)];
            text[at + 2 * i + 1] = DIGITS[usize::from(byte & 15)];
        }
    };
    write(3, &ids.trace);
    write(36, &ids.span);
    text
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    #[test]
    fn ids_have_their_forms() {
        let mut random = SmallRng::seed_from_u64(1);
        let id = request_id(1_700_000_000_123_000_000, &mut random).to_string();
        assert!(id.starts_with("018bcfe5-687b-7") && id.len() == 36, "{id}");
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        let ids = TraceId { trace: [0xab; 16], span: [0x01; 8] };
        let text = String::from_utf8(traceparent(&ids).to_vec()).unwrap();
        assert_eq!(text, format!("00-{}-{}-01", "ab".repeat(16), "01".repeat(8)));
    }
}
