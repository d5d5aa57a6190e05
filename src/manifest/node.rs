//! One document as it was written: values, each with the line it stands on.
//!
//! A node lives only while its document is read and checked; what remains of it is the
//! JSON text. How text becomes a node is the business of `yaml` and `json`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Number;

use super::scalar::Scalar;

/// A value and the line (counted from 1, in its source) where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    Mapping(BTreeMap<String, Entry>),
}

/// The value of one key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Line of the key.
    pub(super) line: usize,
    pub(super) origin: Origin,
    pub(super) value: Node,
}

/// Whether a key was written in its mapping or came in through `<<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Written,
    Merged,
}

/// How many values one document may have, keys not counted. A server takes requests of 3 MiB;
/// this is room for a List of some ten thousand objects, and bounds the memory that a document
/// takes while it is read to some hundred MiB.
pub(super) const MAX_VALUES: usize = 2_000_000;

impl Node {
    /// The value of a key; `None` also where this is no mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Mapping(entries) => entries.get(key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The text of a string; `None` for anything else.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Scalar::String(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        self.content == Content::Scalar(Scalar::Null)
    }

    /// What this is called in a message: `a number`, `a list`, …
    pub(super) fn description(&self) -> &'static str {
        match &self.content {
            Content::Scalar(scalar) => scalar.description(),
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }

    /// Roughly how many bytes of memory a copy of this node takes.
    pub(super) fn weight(&self) -> usize {
        let own = size_of::<Self>();
        match &self.content {
            Content::Scalar(Scalar::String(text)) => own + text.len(),
            Content::Scalar(_) => own,
            Content::Sequence(items) => own + items.iter().map(Self::weight).sum::<usize>(),
            Content::Mapping(entries) => {
                let weight =
                    |(key, entry): (&String, &Entry)| size_of::<Entry>() + key.len() + entry.value.weight();
                own + entries.iter().map(weight).sum::<usize>()
            }
        }
    }

    /// The fields of a mapping; none of anything else.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&String, &Self)> {
        let entries = match &self.content {
            Content::Mapping(entries) => Some(entries),
            _ => None,
        };
        let entries = entries.into_iter().flatten();
        entries.map(|(key, entry)| (key, &entry.value))
    }
}

/// The JSON value that kubectl would send.
impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            Content::Scalar(scalar) => scalar.serialize(serializer),
            Content::Sequence(items) => serializer.collect_seq(items),
            Content::Mapping(_) => serializer.collect_map(self.fields()),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            #[expect(clippy::cast_precision_loss, reason = "Kubernetes has no wider integers")]
            Self::Unsigned(value) => number(*value as f64).serialize(serializer),
            Self::Float(value) => number(*value).serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

/// A float as it arrives at the API server: Go writes it without a fraction where it has
/// none, and reads an integer back (encoding/json `floatEncoder`, `sigs.k8s.io/json`).
///
/// Rust's shortest decimal form of a float has the same digits as Go's.
fn number(value: f64) -> Number {
    match value.to_string().parse::<i64>() {
        Ok(integer) => integer.into(),
        // Infinities and NaN are refused where scalars are resolved.
        Err(_) => Number::from_f64(value).unwrap_or_else(|| 0.into()),
    }
}

impl Entry {
    /// A string that the manifest leaves out because its list implies it.
    pub(super) fn implied(line: usize, text: &str) -> Self {
        let content = Content::Scalar(Scalar::String(text.to_owned()));
        Self {
            line,
            origin: Origin::Written,
            value: Node { line, content },
        }
    }
}
