//! Stream framing and dialects: bytes in, meaning out.
