//! The KV cache as blocks: who holds which, which can be used again, and which are given away first.

use std::collections::HashMap;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Block {
    /// The prompt prefix whose keys and values it holds, if it can be used again.
    hash: Option<u64>,
    holders: u32,
    /// Neighbours in the list of free blocks.
    older: u32,
    newer: u32,
}

/// All blocks of a KV cache. Blocks that nobody holds keep their content until they are needed, the one freed
/// longest ago first.
#[derive(Debug)]
pub(super) struct Blocks {
    all: Vec<Block>,
    by_hash: HashMap<u64, u32>,
    oldest: u32,
    newest: u32,
    free: u32,
}

impl Blocks {
    pub(super) fn new(count: u32) -> Self {
        let block = Block { hash: None, holders: 0, older: NONE, newer: NONE };
        let mut blocks = Self {
            all: vec![block; count as usize],
            by_hash: HashMap::new(),
            oldest: NONE,
            newest: NONE,
            free: 0,
        };
        for id in 0..count {
            blocks.put_free(id);
        }
        blocks
    }

    /// Share of blocks that are held, 0 to 1.
    pub(super) fn usage(&self) -> f64 {
        1.0 - f64::from(self.free) / self.all.len().max(1) as f64
    }

    /// How many of these prefixes are there, from the first on without a gap.
    pub(super) fn known(&self, hashes: &[u64]) -> u32 {
        hashes.iter().take_while(|hash| self.by_hash.contains_key(hash)).count() as u32
    }

    /// Takes the known blocks and `more` new ones, the first of which hold the rest of `hashes`; nothing, if
    /// there is no room.
    pub(super) fn admit(&mut self, hashes: &[u64], known: u32, more: u32) -> Option<Vec<u32>> {
        let mut held = Vec::with_capacity((known + more) as usize);
        for hash in &hashes[..known as usize] {
            let id = self.by_hash[hash];
            self.hold(id);
            held.push(id);
        }
        if self.free < more {
            self.release(&mut held);
            return None;
        }
        self.grow(&mut held, more, hashes);
        Some(held)
    }

    /// Adds `more` blocks; `false` and no change, if there is no room.
    pub(super) fn grow(&mut self, held: &mut Vec<u32>, more: u32, hashes: &[u64]) -> bool {
        if self.free < more {
            return false;
        }
        for _ in 0..more {
            let id = self.oldest;
            self.hold(id);
            if let Some(old) = self.all[id as usize].hash.take() {
                self.by_hash.remove(&old);
            }
            // As in vLLM, a block counts as cached from its allocation on, and the first block of a prefix wins.
            if let Some(hash) = hashes.get(held.len())
                && !self.by_hash.contains_key(hash)
            {
                self.all[id as usize].hash = Some(*hash);
                self.by_hash.insert(*hash, id);
            }
            held.push(id);
        }
        true
    }

    /// Gives blocks back, the last first, so that the start of a prompt stays longest.
    pub(super) fn release(&mut self, held: &mut Vec<u32>) {
        while let Some(id) = held.pop() {
            let block = &mut self.all[id as usize];
            block.holders -= 1;
            if block.holders == 0 {
                self.put_free(id);
            }
        }
    }

    fn hold(&mut self, id: u32) {
        let block = &mut self.all[id as usize];
        block.holders += 1;
        if block.holders > 1 {
            return;
        }
        let (older, newer) = (block.older, block.newer);
        match self.all.get_mut(older as usize) {
            Some(neighbour) => neighbour.newer = newer,
            None => self.oldest = newer,
        }
        match self.all.get_mut(newer as usize) {
            Some(neighbour) => neighbour.older = older,
            None => self.newest = older,
        }
        self.free -= 1;
    }

    fn put_free(&mut self, id: u32) {
        let newest = self.newest;
        let block = &mut self.all[id as usize];
        (block.older, block.newer) = (newest, NONE);
        match self.all.get_mut(newest as usize) {
            Some(neighbour) => neighbour.newer = id,
            None => self.oldest = id,
        }
        self.newest = id;
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_shared_kept_and_evicted_oldest_first() {
        let mut blocks = Blocks::new(6);
        let mut one = blocks.admit(&[1, 2], 0, 3).unwrap();
        assert_eq!(blocks.known(&[1, 2, 3]), 2);
        let mut two = blocks.admit(&[1, 2], 2, 1).unwrap();
        assert_eq!(one[..2], two[..2]);
        assert!((blocks.usage() - 4.0 / 6.0).abs() < 1e-9);
        blocks.release(&mut one);
        assert_eq!(blocks.known(&[1, 2]), 2);
        blocks.release(&mut two);
        assert!(blocks.usage() < 1e-9);
        assert_eq!(blocks.known(&[1, 2]), 2, "free blocks keep their content");

        let mut three = blocks.admit(&[], 0, 5).unwrap();
        assert_eq!(blocks.known(&[1, 2]), 1, "the start of the prompt stays longest");
        assert!(blocks.admit(&[1], 1, 1).is_none());
        assert!(!blocks.grow(&mut three, 2, &[]));
        assert_eq!(blocks.known(&[1]), 1, "a failed admission holds nothing");
        blocks.release(&mut three);
        assert!(blocks.usage() < 1e-9);
    }
}
