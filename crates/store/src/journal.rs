//! Blocks of bytes appended to one file, each whole or not at all, however the disk fails.

use std::collections::VecDeque;
use std::io;

/// Where blocks go.
pub(crate) trait Sink {
    /// Writes all bytes at the end; after an error any part of them may have been written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts off everything after that length, and goes on writing there.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Frees room that was kept for this moment; false when none is left.
    fn make_room(&mut self) -> bool;
}

/// What became of appended rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Appended {
    /// All is well.
    Fine,
    /// All rows are kept, but the disk is full and the reserve is used up: stop the run in order.
    LowSpace,
    /// The disk takes nothing: the rows are held in memory and tried again at every flush. Stop the run.
    Held {
        /// Rows in memory.
        rows: u64,
        /// What the operating system said.
        cause: String,
    },
}

impl Appended {
    /// Whether the run should be stopped, and why.
    pub fn stop_reason(&self) -> Option<String> {
        match self {
            Self::Fine => None,
            Self::LowSpace => Some("the disk is full; all results so far are kept".to_owned()),
            Self::Held { rows, cause } => Some(format!("{rows} results could not be written yet: {cause}")),
        }
    }
}

/// A file that always ends at the end of a block.
pub(crate) struct Journal<S> {
    sink: S,
    /// Length of the file up to the last whole block.
    good: u64,
    /// Part of a block may lie behind `good`.
    torn: bool,
    /// The reserve has been used.
    low: bool,
    held: VecDeque<Block>,
}

struct Block {
    bytes: Vec<u8>,
    rows: u64,
}

impl<S: Sink> Journal<S> {
    pub(crate) fn new(sink: S) -> Self {
        Self { sink, good: 0, torn: false, low: false, held: VecDeque::new() }
    }

    /// Queues one block; [`Journal::settle`] writes it.
    pub(crate) fn push(&mut self, bytes: Vec<u8>, rows: u64) {
        self.held.push_back(Block { bytes, rows });
    }

    /// Writes the queued blocks in order, as far as the disk takes them.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        while let Some(block) = self.held.pop_front() {
            if let Err(e) = self.write_or_make_room(&block.bytes) {
                self.held.push_front(block);
                return Err(e);
            }
            self.good += block.bytes.len() as u64;
        }
        Ok(())
    }

    /// Frees the reserve now. True if there was one.
    pub(crate) fn make_room(&mut self) -> bool {
        self.sink.make_room()
    }

    /// Marks the disk as full, for room was made elsewhere.
    pub(crate) fn set_low(&mut self) {
        self.low = true;
    }

    /// Whether the reserve has been used.
    pub(crate) fn is_low(&self) -> bool {
        self.low
    }

    /// Rows queued and not written.
    pub(crate) fn held_rows(&self) -> u64 {
        self.held.iter().map(|block| block.rows).sum()
    }

    /// Bytes written, all in whole blocks.
    pub(crate) fn len(&self) -> u64 {
        self.good
    }

    pub(crate) fn sink(&self) -> &S {
        &self.sink
    }

    fn write_or_make_room(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.write_whole(bytes) {
            Err(_) if self.sink.make_room() => {
                self.low = true;
                self.write_whole(bytes)
            }
            result => result,
        }
    }

    /// Writes a block, or leaves the file as it was. When even that fails, nothing is written behind the torn
    /// block until it could be cut off.
    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.mend()?;
        self.torn = true;
        let written = self.sink.write(bytes);
        match &written {
            Ok(()) => self.torn = false,
            Err(_) => drop(self.mend()),
        }
        written
    }

    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.sink.cut(self.good)?;
            self.torn = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with that much room, of which some comes free once.
    #[derive(Default)]
    struct Disk {
        file: Vec<u8>,
        room: usize,
        reserve: Option<usize>,
        cut_fails: bool,
    }

    impl Sink for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
            let fits = bytes.len().min(self.room - self.file.len());
            self.file.extend(&bytes[..fits]);
            if fits == bytes.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        }

        fn cut(&mut self, len: u64) -> io::Result<()> {
            if self.cut_fails {
                return Err(io::Error::other("cannot cut"));
            }
            self.file.truncate(len as usize);
            Ok(())
        }

        fn make_room(&mut self) -> bool {
            self.room += self.reserve.unwrap_or(0);
            self.reserve.take().is_some()
        }
    }

    fn journal(room: usize, reserve: Option<usize>) -> Journal<Disk> {
        Journal::new(Disk { room, reserve, ..Disk::default() })
    }

    fn append(journal: &mut Journal<Disk>, block: &str) -> bool {
        journal.push(block.as_bytes().to_vec(), 1);
        journal.settle().is_ok()
    }

    #[test]
    fn the_reserve_takes_the_block_that_did_not_fit() {
        let mut journal = journal(6, Some(4));
        assert!(append(&mut journal, "aaaa"));
        assert!(!journal.is_low());
        assert!(append(&mut journal, "bbbb"));
        assert!(journal.is_low());
        assert_eq!(journal.sink.file, b"aaaabbbb");
    }

    #[test]
    fn without_room_blocks_are_held_and_the_file_stays_whole() {
        let mut journal = journal(6, Some(1));
        assert!(append(&mut journal, "aaaa"));
        assert!(!append(&mut journal, "bbbb"));
        assert!(!append(&mut journal, "cc"), "a later block never overtakes");
        assert_eq!((journal.sink.file.as_slice(), journal.held_rows()), (b"aaaa".as_slice(), 2));

        journal.sink.room = 20;
        assert!(append(&mut journal, "d"));
        assert_eq!((journal.sink.file.as_slice(), journal.held_rows()), (b"aaaabbbbccd".as_slice(), 0));
        assert_eq!(journal.len(), 11);
    }

    #[test]
    fn nothing_is_written_behind_a_torn_block() {
        let mut journal = journal(6, None);
        assert!(append(&mut journal, "aaaa"));
        journal.sink.cut_fails = true;
        assert!(!append(&mut journal, "bbbb"));
        journal.sink.room = 20;
        assert!(!append(&mut journal, "cc"));
        assert_eq!(journal.sink.file, b"aaaabb");

        journal.sink.cut_fails = false;
        assert!(append(&mut journal, "dd"));
        assert_eq!(journal.sink.file, b"aaaabbbbccdd");
    }
}
