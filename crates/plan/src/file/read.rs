//! From values that know where they were written to typed ones, so that an error can say where it is.

use std::collections::btree_map;
use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::{FileError, likely};
use super::node::{Node, Origin, Value};

/// Keys that a file may have and the plan that comes of it has not, by their table's path; `*` is any number.
const SHORTHANDS: [(&str, &[&str]); 2] =
    [("", &["endpoint", "order", "repeat"]), ("workloads.*", &["prompt_tokens", "dataset"])];

/// What is wrong, and where, while the way to it is walked back.
#[derive(Debug)]
pub(super) struct Fault {
    /// Keys from the innermost to the outermost.
    path: Vec<String>,
    origin: Option<Origin>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unknown { key: String, known: &'static [&'static str] },
    Other(String),
}

impl Fault {
    fn of(kind: Kind) -> Self {
        Self { path: Vec::new(), origin: None, kind }
    }

    /// The same fault, in the value of a key.
    fn under(mut self, key: &str, node: &Node) -> Self {
        self.path.push(key.to_owned());
        self.origin.get_or_insert_with(|| node.origin.clone());
        self
    }

    /// For people. `above` is the path of the value that was read, `file` the file's name.
    pub(super) fn told(self, above: &str, file: &str) -> FileError {
        let above = Some(above.to_owned()).filter(|above| !above.is_empty());
        let mut path: Vec<String> = above.into_iter().chain(self.path.into_iter().rev()).collect();
        let at = self.origin.as_ref().unwrap_or(&Origin::Implied).place(file);
        match self.kind {
            Kind::Unknown { key, known } => {
                // The key itself is the last of the way.
                path.pop();
                let table = path.join(".");
                let all = known.iter().chain(shorthands(&table)).copied();
                let nearest = likely(&key, all.clone()).map(str::to_owned);
                FileError::Unknown { at, key, table, nearest, known: all.map(str::to_owned).collect() }
            }
            Kind::Other(what) => FileError::Value { at, key: path.join("."), what },
        }
    }
}

/// The shorthands of a table.
fn shorthands(table: &str) -> &'static [&'static str] {
    let is_it = |pattern: &str| {
        let (pattern, path) = (pattern.split('.'), table.split('.'));
        pattern.clone().count() == path.clone().count() && pattern.zip(path).all(|(p, t)| p == "*" || p == t)
    };
    SHORTHANDS.iter().find(|(pattern, _)| is_it(pattern)).map_or(&[], |(_, keys)| keys)
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Unknown { key, .. } => write!(f, "unknown key `{key}`"),
            Kind::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: Display>(what: T) -> Self {
        Self::of(Kind::Other(what.to_string()))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::of(Kind::Unknown { key: field.to_owned(), known: expected })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let meant = likely(variant, expected.iter().copied());
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        // What stands there may be a key in the wrong place.
        Self::custom(format_args!("expected one of {}{meant}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("needs `{field}`"))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {}, found {}", in_words(&expected.to_string()), seen(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }
}

/// What was found, in words. A text may be secret, and is not repeated.
fn seen(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => truth.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        _ => "a text".to_owned(),
    }
}

/// What serde's visitors expect, as people call it.
fn in_words(expected: &str) -> String {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number such as 200 or \"4k\"".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list in brackets".to_owned(),
        _ if expected.starts_with("struct ") || expected.contains("map") => "a table".to_owned(),
        _ => expected.strip_prefix("enum ").map_or(expected.to_owned(), |_| "a name or a table".to_owned()),
    }
}

/// Reads a value into a type.
impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Whole(number) => match u64::try_from(*number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(*number),
            },
            Value::Real(number) => visitor.visit_f64(*number),
            Value::Truth(truth) => visitor.visit_bool(*truth),
            Value::List(list) => visitor.visit_seq(Items { rest: list.iter(), at: 0 }),
            Value::Table(table) => visitor.visit_map(Pairs { rest: table.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// On a command line nobody quotes a name that looks like a number.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match (&self.origin, &self.value) {
            (Origin::Flag(_), Value::Whole(_) | Value::Real(_)) => {
                visitor.visit_string(self.value.to_string())
            }
            _ => self.deserialize_any(visitor),
        }
    }

    /// A count may have a unit.
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Text(text) => visitor.visit_u64(ttft_model::parse_count(text).map_err(Fault::custom)?),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Table(table) => match table.iter().next() {
                Some((name, node)) if table.len() == 1 => visitor.visit_enum(Variant { name, node }),
                _ => Err(Fault::custom(format_args!("expected one key of {}", variants.join(", ")))),
            },
            _ => Err(Fault::custom(format_args!("expected one of {}", variants.join(", ")))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u128 f32 f64 char str bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    rest: std::slice::Iter<'de, Node>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.rest.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(node).map(Some).map_err(|fault| fault.under(&at.to_string(), node))
    }
}

struct Pairs<'de> {
    rest: btree_map::Iter<'de, String, Node>,
    value: Option<(&'de str, &'de Node)>,
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, node)) = self.rest.next() else { return Ok(None) };
        self.value = Some((key, node));
        let key_itself: StrDeserializer<'_, Fault> = key.as_str().into_deserializer();
        seed.deserialize(key_itself).map(Some).map_err(|fault| fault.under(key, node))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, node) = self.value.take().ok_or_else(|| Fault::custom("a value without its key"))?;
        seed.deserialize(node).map_err(|fault| fault.under(key, node))
    }
}

/// A variant with a content.
struct Variant<'de> {
    name: &'de str,
    node: &'de Node,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.into_deserializer();
        let variant = seed.deserialize(name).map_err(|fault| fault.under(self.name, self.node))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Err(Fault::custom("has no value of its own: write it as a text").under(self.name, self.node))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.node).map_err(|fault| fault.under(self.name, self.node))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.node.deserialize_any(visitor).map_err(|fault| fault.under(self.name, self.node))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.node.deserialize_any(visitor).map_err(|fault| fault.under(self.name, self.node))
    }
}

/// Reads a value. `path` is where it stands, `file` the file's name.
pub(super) fn read<'de, T: Deserialize<'de>>(
    node: &'de Node,
    path: &str,
    file: &str,
) -> Result<T, FileError> {
    T::deserialize(node).map_err(|mut fault| {
        fault.origin.get_or_insert_with(|| node.origin.clone());
        fault.told(path, file)
    })
}
