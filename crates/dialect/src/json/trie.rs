//! JSON pointers compiled to a trie of keys, with `*` for every element of an array.

/// No node, or no slot.
pub(crate) const NONE: u16 = u16::MAX;

/// The most `*` that one pointer may have.
pub(crate) const WILDCARDS: usize = 4;

/// The pointers that a pass looks for. Each has a slot, numbered in the order of insertion.
#[derive(Debug, Default)]
pub(crate) struct Trie {
    nodes: Vec<Node>,
    slots: u16,
}

#[derive(Debug)]
struct Node {
    slot: u16,
    element: u16,
    /// The first child of each [`bucket`], and [`NONE`] where there is none.
    buckets: [u16; BUCKETS],
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    tag: u64,
    /// [`tail`] of the key.
    tail: u64,
    key: Box<[u8]>,
    node: u16,
    /// The next child of the same bucket, or [`NONE`].
    next: u16,
}

/// Most nodes have few children, the outermost some twenty.
const BUCKETS: usize = 32;

/// The bucket of a key: a product spreads what keys differ in over its highest bits.
fn bucket(tag: u64, length: usize) -> usize {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    ((tag ^ length as u64).wrapping_mul(SPREAD) >> 59) as usize
}

/// The last eight bytes of a key that is longer than that.
fn tail(text: &[u8], length: usize) -> u64 {
    let end = length.checked_sub(8).filter(|start| *start > 0).and_then(|start| text.get(start..length));
    end.and_then(|end| end.first_chunk().copied()).map_or(0, u64::from_le_bytes)
}

/// The first eight bytes of the key that begins a text, the rest zero.
fn tag(text: &[u8], length: usize) -> u64 {
    let word = text.first_chunk().copied().unwrap_or_else(|| {
        let mut word = [0; 8];
        word[..text.len()].copy_from_slice(text);
        word
    });
    let word = u64::from_le_bytes(word);
    if length < 8 { word & ((1 << (8 * length)) - 1) } else { word }
}

impl Node {
    const fn new() -> Self {
        Self { slot: NONE, element: NONE, buckets: [NONE; BUCKETS], children: Vec::new() }
    }
}

impl Trie {
    /// Adds a pointer and gives its slot; the same pointer has the same slot. `Err` says what is wrong with it.
    pub(crate) fn insert(&mut self, pointer: &str) -> Result<u16, &'static str> {
        if self.nodes.is_empty() {
            self.nodes.push(Node::new());
        }
        let mut node = 0;
        for segment in segments(pointer)? {
            node = match segment {
                Segment::Element => self.element_or_new(node),
                Segment::Key(key) => self.child_or_new(node, key.as_bytes()),
            };
            if node == NONE {
                return Err("there are too many pointers");
            }
        }
        let slot = &mut self.nodes[usize::from(node)].slot;
        if *slot == NONE {
            *slot = self.slots;
            self.slots += 1;
        }
        Ok(*slot)
    }

    fn element_or_new(&mut self, node: u16) -> u16 {
        if self.nodes[usize::from(node)].element == NONE {
            self.nodes[usize::from(node)].element = self.new_node();
        }
        self.nodes[usize::from(node)].element
    }

    fn child_or_new(&mut self, node: u16, key: &[u8]) -> u16 {
        let known = self.child(node, key, key.len());
        if known != NONE {
            return known;
        }
        let new = self.new_node();
        let node = &mut self.nodes[usize::from(node)];
        let tag = tag(key, key.len());
        let first = &mut node.buckets[bucket(tag, key.len())];
        node.children.push(Child {
            tag,
            tail: tail(key, key.len()),
            key: key.into(),
            node: new,
            next: *first,
        });
        // There are no more children than nodes.
        *first = (node.children.len() - 1) as u16;
        new
    }

    fn new_node(&mut self) -> u16 {
        let Ok(number) = u16::try_from(self.nodes.len()) else { return NONE };
        if number != NONE {
            self.nodes.push(Node::new());
        }
        number
    }

    /// Number of slots.
    pub(crate) fn slots(&self) -> usize {
        usize::from(self.slots)
    }

    /// The node of the whole text.
    pub(crate) fn root(&self) -> u16 {
        if self.nodes.is_empty() { NONE } else { 0 }
    }

    /// The slot of a node, or [`NONE`].
    pub(crate) fn slot(&self, node: u16) -> u16 {
        self.nodes[usize::from(node)].slot
    }

    /// The node of a node's elements, or [`NONE`].
    pub(crate) fn element(&self, node: u16) -> u16 {
        self.nodes[usize::from(node)].element
    }

    /// The node of the member whose key is the first `length` bytes of that text, or [`NONE`].
    #[inline]
    pub(crate) fn child(&self, node: u16, text: &[u8], length: usize) -> u16 {
        let node = &self.nodes[usize::from(node)];
        let wanted = tag(text, length);
        let mut at = node.buckets[bucket(wanted, length)];
        while let Some(child) = node.children.get(usize::from(at)) {
            // Both ends of a key are all of it up to sixteen bytes.
            let same = child.tag == wanted && child.key.len() == length && child.tail == tail(text, length);
            if same && (length <= 16 || child.key[8..length - 8] == text[8..length - 8]) {
                return child.node;
            }
            at = child.next;
        }
        NONE
    }
}

/// One step of a pointer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A member of an object.
    Key(String),
    /// Any element of an array.
    Element,
}

/// The steps of a pointer, RFC 6901 with `*` for every element. `Err` says what is wrong with it.
pub(crate) fn segments(pointer: &str) -> Result<Vec<Segment>, &'static str> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err("a pointer begins with `/`");
    };
    let mut segments = Vec::new();
    let mut stars = 0;
    for part in rest.split('/') {
        if part.is_empty() {
            return Err("a pointer has no empty step");
        }
        if part == "*" {
            stars += 1;
            segments.push(Segment::Element);
            continue;
        }
        if part.contains(['"', '\\']) {
            return Err("a step of a pointer has no quotes or backslashes");
        }
        if part.bytes().all(|b| b.is_ascii_digit()) {
            return Err("a pointer cannot ask for one element of an array; write `*` for all of them");
        }
        let key = part.replace("~1", "/");
        if key.replace("~0", "").contains('~') {
            return Err("`~` in a pointer is written `~0`, and `/` is written `~1`");
        }
        segments.push(Segment::Key(key.replace("~0", "~")));
    }
    if stars > WILDCARDS {
        return Err("a pointer may have four `*` at most");
    }
    Ok(segments)
}

/// How many `*` two pointers share before they part.
pub(crate) fn shared_stars(a: &str, b: &str) -> usize {
    a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b).filter(|(a, _)| *a == "*").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_that_cannot_be() {
        for pointer in ["", "a", "/", "/a//b", "/a/", "/a/0", "/a~2", "/*/*/*/*/*", "/a\"b"] {
            assert!(segments(pointer).is_err(), "{pointer:?} must be refused");
        }
        assert_eq!(segments("/a~1b/*").unwrap(), [Segment::Key("a/b".to_owned()), Segment::Element]);
    }

    #[test]
    fn the_same_pointer_has_the_same_slot() {
        let mut trie = Trie::default();
        assert_eq!(["/a", "/a/*/b", "/a"].map(|pointer| trie.insert(pointer).unwrap()), [0, 1, 0]);
        assert_eq!(trie.slots(), 2);
    }

    #[test]
    fn keys_are_told_apart() {
        let mut trie = Trie::default();
        let mut keys: Vec<String> = (0..40).map(|n| "k".repeat(n)).skip(1).collect();
        keys.extend((0..200).map(|n| format!("same_beginning_{n}_same_end")));
        keys.extend((0..200).map(|n| format!("{n}x")));
        let slots: Vec<u16> = keys.iter().map(|key| trie.insert(&format!("/{key}")).unwrap()).collect();
        for (key, slot) in keys.iter().zip(slots) {
            let text = format!("{key}\":1");
            assert_eq!(trie.slot(trie.child(trie.root(), text.as_bytes(), key.len())), slot, "{key}");
        }
        for text in ["\"", "same_beginning_7_same_enD\"", "same_beginning_7 same_end\"", "ke\":2"] {
            assert_eq!(trie.child(trie.root(), text.as_bytes(), text.find('"').unwrap()), NONE, "{text}");
        }
    }

    #[test]
    fn shared() {
        assert_eq!(shared_stars("/c/*/p/*/t", "/c/*/p/*/u"), 2);
        assert_eq!(shared_stars("/c/*/p/*/t", "/c/*/q/*/t"), 1);
        assert_eq!(shared_stars("/c/*/p", "/type"), 0);
    }
}
