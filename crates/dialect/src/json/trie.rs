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
    /// [`tag`] of each child's key, apart from the keys so that a search is one look at one cache line.
    tags: Vec<u64>,
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    key: Box<[u8]>,
    node: u16,
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
        Self { slot: NONE, element: NONE, tags: Vec::new(), children: Vec::new() }
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
        node.tags.push(tag(key, key.len()));
        node.children.push(Child { key: key.into(), node: new });
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
    pub(crate) fn child(&self, node: u16, text: &[u8], length: usize) -> u16 {
        let node = &self.nodes[usize::from(node)];
        let wanted = tag(text, length);
        for (i, tag) in node.tags.iter().enumerate() {
            if *tag != wanted {
                continue;
            }
            let child = &node.children[i];
            if child.key.len() == length && (length <= 8 || child.key[8..] == text[8..length]) {
                return child.node;
            }
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
    fn shared() {
        assert_eq!(shared_stars("/c/*/p/*/t", "/c/*/p/*/u"), 2);
        assert_eq!(shared_stars("/c/*/p/*/t", "/c/*/q/*/t"), 1);
        assert_eq!(shared_stars("/c/*/p", "/type"), 0);
    }
}
