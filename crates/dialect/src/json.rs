//! A pull through one JSON text: a single pass that notes the values a [`Trie`] asks for and skips all others.
//!
//! Never recursive, so depth costs memory alone, and that is bounded. Structure is checked in full; inside strings
//! only what is needed to find their end. Values are noted as ranges of the text: nothing is copied.

mod text;
mod trie;

pub(crate) use text::{append, number, whole};
pub(crate) use trie::{NONE, Trie, WILDCARDS, segments, shared_stars};

/// Deeper nesting than this is refused.
const MAX_DEPTH: usize = 1 << 16;
/// More values than this are not noted: rules compare values with each other, so a hostile text could make them slow.
const MAX_HITS: usize = 1 << 10;

/// What a noted value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Number,
    True,
    False,
    Null,
    Object,
    Array,
}

/// A value that the trie asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Which pointer of the trie it stands at.
    pub(crate) slot: u16,
    pub(crate) kind: Kind,
    /// Its range; of a string, without the quotes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Its position in each array that a `*` of the pointer stands for; zero for the rest.
    pub(crate) at: [u16; WILDCARDS],
}

impl Hit {
    /// The value's bytes, escapes and all.
    pub(crate) fn raw<'a>(&self, json: &'a [u8]) -> &'a [u8] {
        &json[self.start..self.end]
    }

    /// A string with something in it.
    pub(crate) fn is_text(&self) -> bool {
        self.kind == Kind::String && self.end > self.start
    }
}

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Memory of the pass, used again for each text.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// What was found, in the order of the text; a container comes after its contents.
    pub(crate) hits: Vec<Hit>,
    levels: Vec<Level>,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    start: usize,
    node: u16,
    /// For an array, which of `at` counts its elements; [`WILDCARDS`] if none.
    star: u8,
    is_array: bool,
}

impl Scan {
    /// Reads one JSON value that begins at or after `start`; gives the position behind it.
    pub(crate) fn value(&mut self, json: &[u8], start: usize, trie: &Trie) -> Result<usize, Malformed> {
        self.hits.clear();
        self.levels.clear();
        let mut at = [0_u16; WILDCARDS];
        let mut stars = 0_usize;
        let mut node = trie.root();
        let mut i = skip_space(json, start);

        loop {
            // A value begins at `i`, and `node` is its place in the trie.
            let begin = i;
            let scalar = match *json.get(i).ok_or(Malformed)? {
                b'"' => {
                    i = string_end(json, i + 1)?;
                    Some(Kind::String)
                }
                b'{' | b'[' => {
                    if self.levels.len() == MAX_DEPTH {
                        return Err(Malformed);
                    }
                    let is_array = json[i] == b'[';
                    let mut star = WILDCARDS as u8;
                    let mut inner = NONE;
                    if is_array && node != NONE {
                        inner = trie.element(node);
                        if inner != NONE {
                            star = stars as u8;
                            at[stars] = 0;
                            stars += 1;
                        }
                    }
                    self.levels.push(Level { start: begin, node, star, is_array });
                    i = skip_space(json, i + 1);
                    match (is_array, *json.get(i).ok_or(Malformed)?) {
                        (true, b']') | (false, b'}') => {
                            i += 1;
                            self.close(trie, i, &mut at, &mut stars);
                            None
                        }
                        (true, _) => {
                            node = inner;
                            continue;
                        }
                        (false, _) => {
                            (node, i) = key(json, i, trie, node)?;
                            continue;
                        }
                    }
                }
                b't' => Some(literal(json, &mut i, b"true", Kind::True)?),
                b'f' => Some(literal(json, &mut i, b"false", Kind::False)?),
                b'n' => Some(literal(json, &mut i, b"null", Kind::Null)?),
                b'-' | b'0'..=b'9' => {
                    i = number_end(json, i);
                    Some(Kind::Number)
                }
                _ => return Err(Malformed),
            };
            if let (Some(kind), true) = (scalar, node != NONE) {
                let slot = trie.slot(node);
                if slot != NONE && self.hits.len() < MAX_HITS {
                    let quote = usize::from(kind == Kind::String);
                    let (start, end) = (begin + quote, i - quote);
                    self.hits.push(Hit { slot, kind, start, end, at });
                }
            }
            match self.after(json, i, trie, &mut at, &mut stars)? {
                Next::Value(next, position) => (node, i) = (next, position),
                Next::End(position) => return Ok(position),
            }
        }
    }

    /// What follows a value that ended at `i`: closes, and then a comma with the next value, or the end.
    #[inline]
    fn after(
        &mut self,
        json: &[u8],
        mut i: usize,
        trie: &Trie,
        at: &mut [u16; WILDCARDS],
        stars: &mut usize,
    ) -> Result<Next, Malformed> {
        loop {
            let Some(level) = self.levels.last().copied() else { return Ok(Next::End(i)) };
            i = skip_space(json, i);
            match *json.get(i).ok_or(Malformed)? {
                b',' => {
                    i = skip_space(json, i + 1);
                    if !level.is_array {
                        let (node, position) = key(json, i, trie, level.node)?;
                        return Ok(Next::Value(node, position));
                    }
                    let star = usize::from(level.star);
                    if star == WILDCARDS {
                        return Ok(Next::Value(NONE, i));
                    }
                    at[star] = at[star].saturating_add(1);
                    return Ok(Next::Value(trie.element(level.node), i));
                }
                b']' if level.is_array => {}
                b'}' if !level.is_array => {}
                _ => return Err(Malformed),
            }
            i += 1;
            self.close(trie, i, at, stars);
        }
    }

    /// Ends the innermost container at `end`.
    fn close(&mut self, trie: &Trie, end: usize, at: &mut [u16; WILDCARDS], stars: &mut usize) {
        let Some(level) = self.levels.pop() else { return };
        if usize::from(level.star) < WILDCARDS {
            *stars = usize::from(level.star);
            at[*stars] = 0;
        }
        if level.node == NONE {
            return;
        }
        let slot = trie.slot(level.node);
        if slot != NONE && self.hits.len() < MAX_HITS {
            let kind = if level.is_array { Kind::Array } else { Kind::Object };
            self.hits.push(Hit { slot, kind, start: level.start, end, at: *at });
        }
    }
}

enum Next {
    /// The next value's node and position.
    Value(u16, usize),
    /// Nothing is open any more.
    End(usize),
}

/// Reads a key and its colon; gives the node of the value and where it begins.
#[inline]
fn key(json: &[u8], i: usize, trie: &Trie, node: u16) -> Result<(u16, usize), Malformed> {
    if json.get(i) != Some(&b'"') {
        return Err(Malformed);
    }
    let end = string_end(json, i + 1)?;
    let child = if node == NONE { NONE } else { trie.child(node, &json[i + 1..], end - i - 2) };
    let colon = skip_space(json, end);
    if json.get(colon) != Some(&b':') {
        return Err(Malformed);
    }
    Ok((child, skip_space(json, colon + 1)))
}

#[inline]
fn skip_space(json: &[u8], mut i: usize) -> usize {
    // Most JSON on the wire has no blanks at all.
    if json.get(i).is_none_or(|byte| *byte > b' ') {
        return i;
    }
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = json.get(i) {
        i += 1;
    }
    i
}

/// The position behind the closing quote of a string whose contents begin at `i`.
#[inline]
pub(crate) fn string_end(json: &[u8], mut i: usize) -> Result<usize, Malformed> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Keys and most values are short: eight bytes at a time beat a call for these.
    for _ in 0..4 {
        let Some(word) = json.get(i..).and_then(<[u8]>::first_chunk) else { break };
        let word = u64::from_le_bytes(*word);
        let (quote, slash) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5C));
        let found = ((quote.wrapping_sub(ONES) & !quote) | (slash.wrapping_sub(ONES) & !slash)) & HIGH;
        if found == 0 {
            i += 8;
            continue;
        }
        i += (found.trailing_zeros() / 8) as usize;
        if json[i] == b'"' {
            return Ok(i + 1);
        }
        i += 2;
    }
    loop {
        let rest = json.get(i..).ok_or(Malformed)?;
        let stop = i + memchr::memchr2(b'"', b'\\', rest).ok_or(Malformed)?;
        if json[stop] == b'"' {
            return Ok(stop + 1);
        }
        i = stop + 2;
    }
}

fn literal(json: &[u8], i: &mut usize, word: &[u8], kind: Kind) -> Result<Kind, Malformed> {
    if json[*i..].starts_with(word) {
        *i += word.len();
        Ok(kind)
    } else {
        Err(Malformed)
    }
}

fn number_end(json: &[u8], mut i: usize) -> usize {
    while let Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') = json.get(i) {
        i += 1;
    }
    i
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Kind, Malformed, Scan, Trie};

    fn trie(pointers: &[&str]) -> Trie {
        let mut trie = Trie::default();
        for pointer in pointers {
            trie.insert(pointer).unwrap();
        }
        trie
    }

    fn found(json: &str, pointers: &[&str]) -> Result<Vec<String>, Malformed> {
        let mut scan = Scan::default();
        scan.value(json.as_bytes(), 0, &trie(pointers))?;
        let show = |hit: &super::Hit| {
            format!("{}{:?} {}", hit.slot, &hit.at[..2], String::from_utf8_lossy(hit.raw(json.as_bytes())))
        };
        Ok(scan.hits.iter().map(show).collect())
    }

    #[test]
    fn only_what_is_asked_for() {
        let json = r#" {"a":{"b":[{"c":"x","d":1},{"c":"y\"z"}, 3]},"c":"no","e":[1,[2]],"a2":null} "#;
        assert_eq!(
            found(json, &["/a/b/*/c", "/a2", "/e", "/a/b/*/d"]).unwrap(),
            ["0[0, 0] x", "3[0, 0] 1", "0[1, 0] y\\\"z", "2[0, 0] [1,[2]]", "1[0, 0] null"]
        );
    }

    #[test]
    fn string_or_array_of_parts() {
        let pointers = ["/c", "/c/*/t", "/c/*/k/*/t"];
        assert_eq!(found(r#"{"c":"s"}"#, &pointers).unwrap(), ["0[0, 0] s"]);
        assert_eq!(
            found(r#"{"c":[{"t":"a"},{"k":[{"t":"b"},{"t":"c"}]}]}"#, &pointers).unwrap()[..3],
            ["1[0, 0] a", "2[1, 0] b", "2[1, 1] c"]
        );
    }

    #[test]
    fn malformed_texts() {
        for json in [
            "",
            " ",
            "{",
            "[",
            "\"",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{1:2}",
            "[1,]",
            "[1 2]",
            "}",
            "tru",
            "nul",
            "{\"a\":}",
            "{\"a\" 1}",
            "[}",
            "{]",
            "\"\\\"",
            "{\"role\":\"adata: {\"id\":1}",
            "x",
        ] {
            assert_eq!(found(json, &["/a"]), Err(Malformed), "{json:?}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        for open in ["[", "{\"a\":"] {
            let close = if open == "[" { "]" } else { "}" };
            let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
            assert!(found(&deep, &["/x"]).is_ok());
            assert_eq!(found(&open.repeat(1 << 20), &["/a/*/a"]), Err(Malformed));
        }
    }

    #[test]
    fn a_flood_of_values_is_bounded() {
        let flood = format!("{{\"a\":[{}1]}}", "1,".repeat(1 << 20));
        assert_eq!(found(&flood, &["/a/*"]).unwrap().len(), super::MAX_HITS);
    }

    #[test]
    fn a_value_ends_where_the_next_begins() {
        let (mut scan, trie) = (Scan::default(), trie(&["/a"]));
        let json = br#"{"a":1}{"a":2}"#;
        let middle = scan.value(json, 0, &trie).unwrap();
        assert_eq!((middle, scan.hits[0].kind), (7, Kind::Number));
        assert_eq!(scan.value(json, middle, &trie), Ok(14));
        assert_eq!(scan.hits[0].raw(json), b"2");
    }

    proptest! {
        #[test]
        fn never_panics(json in "[\\[\\]{}\",:\\\\a0-9tfn \\-]{0,60}") {
            let _ = found(&json, &["/a", "/a/*/a", "/*"]);
        }

        #[test]
        fn agrees_with_a_full_parser(value in json_value()) {
            let text = value.to_string();
            prop_assert!(found(&text, &["/a/b", "/*/a"]).is_ok());
            let found = found(&text, &["/a/b"]).unwrap();
            prop_assert_eq!(found.len(), usize::from(value.pointer("/a/b").is_some() && value["a"].is_object()));
        }
    }

    fn json_value() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::{Value, json};
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[ab\"\\\\]{1,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
