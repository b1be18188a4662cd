//! Cuts an Arrow IPC stream into its messages, as far as they are whole.
//!
//! Arrow's own reader takes a file that ends within a batch for an error. Here that is how a killed run looks.

use std::io::{self, Read, Seek, SeekFrom};

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::MessageBuffer;

/// Stands before the length of every message.
const MARKER: [u8; 4] = [0xff; 4];
/// Metadata of a batch is some kilobytes; more than this is no metadata.
const MOST_METADATA: u64 = 16 << 20;

/// The messages of one file.
pub(crate) struct Messages<F> {
    file: F,
    /// Length of the file when it was opened.
    len: u64,
    /// Where the next message begins.
    at: u64,
}

/// What comes next in a stream.
pub(crate) enum Step {
    /// A message that is there as a whole.
    Message(Frame),
    /// The marker that ends a stream.
    End,
    /// The file ends within a message.
    Cut,
    /// No message can begin like this.
    Bad(String),
}

/// A whole message, its body still unread.
pub(crate) struct Frame {
    /// The message without its body.
    pub(crate) message: MessageBuffer,
    /// Bytes of the body.
    pub(crate) body_len: u64,
    /// Where the body begins.
    body_at: u64,
}

impl<F: Read + Seek> Messages<F> {
    pub(crate) fn new(mut file: F) -> io::Result<Self> {
        let len = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, len, at: 0 })
    }

    /// Where the next message begins.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes from there to the end of the file.
    pub(crate) fn left(&self) -> u64 {
        self.len - self.at
    }

    /// Takes the next message. Anything else leaves the place as it is.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        if self.left() < 8 {
            return Ok(Step::Cut);
        }
        let head = self.read(self.at, 8)?;
        if head.iter().all(|byte| *byte == 0) {
            // A file system that lost power may keep a file's length and not its last bytes.
            return Ok(Step::Cut);
        }
        let (marker, length) = head.split_at(4);
        if marker != MARKER {
            return Ok(Step::Bad("no message begins here".to_owned()));
        }
        let length = length.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        if length == 0 {
            return Ok(Step::End);
        }
        if length > MOST_METADATA {
            return Ok(Step::Bad(format!("a message head of {length} bytes")));
        }
        if self.left() < 8 + length {
            return Ok(Step::Cut);
        }
        let body_at = self.at + 8 + length;
        let metadata = self.read(self.at + 8, length as usize)?;
        let message = match MessageBuffer::try_new(metadata) {
            Ok(message) => message,
            Err(e) => return Ok(Step::Bad(e.to_string())),
        };
        let Ok(body_len) = u64::try_from(message.as_ref().bodyLength()) else {
            return Ok(Step::Bad("a body of negative length".to_owned()));
        };
        if body_len > self.len - body_at {
            return Ok(Step::Cut);
        }
        self.at = body_at + body_len;
        Ok(Step::Message(Frame { message, body_len, body_at }))
    }

    /// Reads the first bytes of a message's body.
    pub(crate) fn body(&mut self, frame: &Frame, bytes: u64) -> io::Result<Buffer> {
        self.read(frame.body_at, bytes.min(frame.body_len) as usize)
    }

    fn read(&mut self, at: u64, bytes: usize) -> io::Result<Buffer> {
        let mut buffer = MutableBuffer::from_len_zeroed(bytes);
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut buffer)?;
        Ok(buffer.into())
    }
}
