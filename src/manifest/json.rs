//! JSON values to nodes.
//!
//! All nodes of a value carry the line where the value begins: `serde_json` does not tell
//! lines while it reads.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::node::{Content, Entry, Node, Origin};
use super::scalar::Scalar;

impl Node {
    /// Moves a value, with everything in it, to the line where it stands.
    pub(super) fn at_line(mut self, line: usize) -> Self {
        self.set_line(line);
        self
    }

    fn set_line(&mut self, line: usize) {
        self.line = line;
        match &mut self.content {
            Content::Scalar(_) => {}
            Content::Sequence(items) => items.iter_mut().for_each(|item| item.set_line(line)),
            Content::Mapping(entries) => entries.values_mut().for_each(|entry| {
                entry.line = line;
                entry.value.set_line(line);
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

fn node(content: Content) -> Node {
    Node { line: 0, content }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(node(Content::Scalar(Scalar::Null)))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(node(Content::Scalar(Scalar::Bool(value))))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(node(Content::Scalar(Scalar::Integer(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(node(Content::Scalar(
            i64::try_from(value).map_or(Scalar::Unsigned(value), Scalar::Integer),
        )))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(node(Content::Scalar(Scalar::Float(value))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(node(Content::Scalar(Scalar::String(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(node(Content::Sequence(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            match entries.entry(key) {
                btree_map::Entry::Occupied(entry) => {
                    let key = entry.key();
                    return Err(A::Error::custom(format_args!("key {key:?} is set twice")));
                }
                btree_map::Entry::Vacant(entry) => {
                    entry.insert(Entry {
                        line: 0,
                        origin: Origin::Written,
                        value: access.next_value()?,
                    });
                }
            }
        }
        Ok(node(Content::Mapping(entries)))
    }
}
