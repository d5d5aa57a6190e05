//! A stream of JSON values to nodes.
//!
//! All nodes of a value carry the position where the value begins: `serde_json` does not report
//! positions while it reads.

use std::collections::{BTreeMap, btree_map};
use std::fmt;

use serde::de::{Deserialize, MapAccess, SeqAccess, Visitor};
use serde_json::de::{StrRead, StreamDeserializer};
use serde_json::error::Category;

use crate::limits::MAX_VALUES;
use crate::node::{Content, Entry, Node, Origin};
use crate::scalar::Scalar;
use crate::{Error, Position, Problem};

/// The values of a text that begins with `{`.
pub(crate) struct JsonValues<'text> {
    text: &'text str,
    stream: StreamDeserializer<'text, StrRead<'text>, JsonNode>,
    count: usize,
    /// A byte that was passed, and its position.
    passed: (usize, Position),
}

/// Why a stream of JSON values ends before its text does.
pub(crate) enum Stop<'text> {
    /// It is JSON with an error in it.
    Invalid(Error),
    /// From here on, it may be YAML. The error is why it is not JSON.
    Other {
        rest: &'text str,
        start: Position,
        error: Error,
    },
}

impl<'text> JsonValues<'text> {
    pub(crate) fn new(text: &'text str) -> Self {
        Self {
            text,
            stream: serde_json::Deserializer::from_str(text).into_iter(),
            count: 0,
            passed: (0, Position::START),
        }
    }

    /// Returns the next value, `None` at the end of the text.
    pub(crate) fn next(&mut self) -> Option<Result<Node, Stop<'text>>> {
        if self.count == 0
            && let Some(error) = too_many_values(self.text)
        {
            return Some(Err(Stop::Invalid(error)));
        }
        let before = self.stream.byte_offset();
        let value = self.stream.next()?;
        Some(match value {
            Ok(JsonNode(mut node)) => {
                self.count += 1;
                let rest = &self.text[before..];
                let position = self.position(before + rest.len() - rest.trim_start().len());
                set_position(&mut node, position);
                Ok(node)
            }
            Err(error) => Err(self.stop(&error)),
        })
    }

    fn stop(&mut self, error: &serde_json::Error) -> Stop<'text> {
        let is_data = error.classify() == Category::Data;
        let error = json_error(self.text, error);
        // After two values kubectl knows the stream to be JSON. A number out of range is JSON,
        // too, and would be a string in YAML.
        if self.count > 1 || is_data || error.problem == Problem::NumberTooLarge {
            return Stop::Invalid(error);
        }
        // The line break behind a JSON value belongs to it.
        let rest = &self.text[self.stream.byte_offset()..];
        let blank = rest.len() - rest.trim_start().len();
        let skipped = rest[..blank].find('\n').map_or(blank, |newline| newline + 1);
        let rest = &rest[skipped..];
        let start = self.position(self.text.len() - rest.len());
        Stop::Other { rest, start, error }
    }

    /// Returns the position of a byte that is not before the last one asked for.
    fn position(&mut self, offset: usize) -> Position {
        let (passed, position) = self.passed;
        let position = position.after(&self.text[passed..offset]);
        self.passed = (offset, position);
        position
    }
}

fn set_position(node: &mut Node, position: Position) {
    node.position = position;
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::Sequence(items) => {
            for item in items {
                set_position(item, position);
            }
        }
        Content::Mapping(entries) => {
            for entry in entries.values_mut() {
                entry.position = position;
                set_position(&mut entry.value, position);
            }
        }
    }
}

/// Reports the line at which one of these JSON values has come to hold too many others. It
/// counts commas and opening brackets outside of strings: each value follows one of them.
fn too_many_values(text: &str) -> Option<Error> {
    // Two bytes are the least that a value takes.
    if text.len() < 2 * MAX_VALUES {
        return None;
    }
    let (mut depth, mut values) = (0_usize, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b',' | b'[' | b'{' => {
                values = if depth == 0 { 1 } else { values + 1 };
                depth += usize::from(byte != b',');
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if values > MAX_VALUES {
            let position = Position::START.after(&text[..offset]);
            return Some(Error::new(position, Problem::TooManyValues));
        }
    }
    None
}

fn json_error(text: &str, error: &serde_json::Error) -> Error {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    let problem = match message {
        "number out of range" => Problem::NumberTooLarge,
        "recursion limit exceeded" => Problem::TooDeep,
        _ => Problem::Syntax {
            format: "JSON",
            message: message.to_owned(),
        },
    };
    // serde_json counts bytes.
    let line = text.split('\n').nth(error.line().saturating_sub(1));
    let bytes = line.unwrap_or_default().bytes().take(error.column());
    let column = bytes.filter(|byte| byte & 0xc0 != 0x80).count();
    Error::new(Position::new(error.line(), column.max(1)), problem)
}

/// A node that is read from JSON, without a position.
struct JsonNode(Node);

impl JsonNode {
    fn of(content: Content) -> Self {
        let position = Position::START;
        Self(Node { position, content })
    }

    fn scalar(scalar: Scalar) -> Self {
        Self::of(Content::Scalar(scalar))
    }
}

impl<'de> Deserialize<'de> for JsonNode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = JsonNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<JsonNode, E> {
        Ok(JsonNode::scalar(Scalar::Null))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<JsonNode, E> {
        Ok(JsonNode::scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<JsonNode, E> {
        Ok(JsonNode::scalar(Scalar::Integer(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<JsonNode, E> {
        let scalar = i64::try_from(value).map_or(Scalar::Unsigned(value), Scalar::Integer);
        Ok(JsonNode::scalar(scalar))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<JsonNode, E> {
        Ok(JsonNode::scalar(Scalar::Float(value)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<JsonNode, E> {
        Ok(JsonNode::scalar(Scalar::String(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<JsonNode, A::Error> {
        let mut items = Vec::new();
        while let Some(JsonNode(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(JsonNode::of(Content::Sequence(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<JsonNode, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            match entries.entry(key) {
                btree_map::Entry::Occupied(entry) => {
                    let message = format_args!("key {:?} is set twice", entry.key()).to_string();
                    return Err(serde::de::Error::custom(message));
                }
                btree_map::Entry::Vacant(entry) => {
                    let JsonNode(value) = access.next_value()?;
                    entry.insert(Entry {
                        position: value.position,
                        origin: Origin::Written,
                        value,
                    });
                }
            }
        }
        Ok(JsonNode::of(Content::Mapping(entries)))
    }
}
