//! Bodies with open places for the prompt.

use serde_json::Value;

/// Stands for the prompt while a body is serialised; a prompt cannot hold it by accident.
pub(super) const OPEN_PLACE: &str = "\u{0}\u{1}prompt\u{0}";

/// A body with an open place for the prompt, to make many bodies cheaply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyTemplate {
    /// The JSON text before, between and after the places of the prompt.
    parts: Vec<Box<[u8]>>,
}

impl BodyTemplate {
    /// The text of a body, cut at its open places.
    pub(super) fn new(body: &Value) -> Self {
        let text = body.to_string();
        let mut open = Value::from(OPEN_PLACE).to_string();
        open.pop();
        let parts = text.split(&open[1..]).map(|part| part.as_bytes().into()).collect();
        Self { parts }
    }

    /// The body with that prompt: one allocation, unless the prompt is full of characters that JSON escapes.
    pub fn fill(&self, prompt: &str) -> Vec<u8> {
        let fixed: usize = self.parts.iter().map(|part| part.len()).sum();
        let places = self.parts.len().saturating_sub(1);
        // Most text grows by the escapes of its line ends and quotes alone.
        let mut body = Vec::with_capacity(fixed + places * (prompt.len() + prompt.len() / 8 + 16));
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                escape(&mut body, prompt);
            }
            body.extend_from_slice(part);
        }
        body
    }
}

/// Appends a text as the inside of a JSON string.
fn escape(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut from = 0;
    for (i, byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => *byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => 0,
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..i]);
        from = i + 1;
        if short == 0 {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        } else {
            out.extend([b'\\', short]);
        }
    }
    out.extend_from_slice(&bytes[from..]);
}
