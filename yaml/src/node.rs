//! One document as it was written: values, each with its position.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::Position;
use crate::scalar::Scalar;

/// A value of a document, and the position where it begins.
///
/// Serializes as the JSON value that kubectl would send; [`Node::to_value`] returns that value.
///
/// ```
/// let text = "metadata:\n  name: web\nports: [0x50, yes]\n";
/// let node = kubernetes_yaml::documents(text).next().expect("a document")?;
/// assert_eq!(node.to_value().to_string(), r#"{"metadata":{"name":"web"},"ports":[80,true]}"#);
/// let name = node.get("metadata").and_then(|metadata| metadata.get("name")).expect("a name");
/// assert_eq!((name.as_str(), name.position().to_string()), (Some("web"), "2:9".to_owned()));
/// # Ok::<(), kubernetes_yaml::Errors>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub(crate) position: Position,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    Mapping(BTreeMap<String, Entry>),
}

/// The value of a key of a mapping, and the position of the key.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub(crate) position: Position,
    pub(crate) origin: Origin,
    pub(crate) value: Node,
}

/// The way by which a key came into its mapping: written there, or merged by `<<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Written,
    Merged,
}

impl Node {
    /// Returns the position where the value begins; of an alias, that of `*`.
    ///
    /// All values of a JSON text have the position of their document.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the value of a key; `None` also if this is not a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(Entry::value)
    }

    /// Returns the entry of a key; `None` also if this is not a mapping.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.content {
            Content::Mapping(entries) => entries.get(key),
            _ => None,
        }
    }

    /// Returns the entries of a mapping in the order of their keys; none of anything else.
    pub fn entries(&self) -> impl Iterator<Item = (&String, &Entry)> {
        let entries = match &self.content {
            Content::Mapping(entries) => Some(entries),
            _ => None,
        };
        entries.into_iter().flatten()
    }

    /// Returns the items of a list; `None` of anything else.
    pub fn items(&self) -> Option<&[Self]> {
        match &self.content {
            Content::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the text of a string; `None` of anything else.
    pub fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Scalar::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns whether this is null.
    pub fn is_null(&self) -> bool {
        self.content == Content::Scalar(Scalar::Null)
    }

    /// Returns whether this is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.content, Content::Mapping(_))
    }

    /// Returns the type of this value for a message: `null`, `a boolean`, `a number`,
    /// `a string`, `a list` or `a mapping`.
    pub fn description(&self) -> &'static str {
        match &self.content {
            Content::Scalar(scalar) => scalar.description(),
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }

    /// Returns the JSON value that kubectl would send.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns roughly how many bytes of memory a copy of this value takes.
    pub fn weight(&self) -> usize {
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

    /// Returns the number of values in this one, itself included.
    pub(crate) fn values(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::Sequence(items) => items.iter().map(Self::values).sum(),
            Content::Mapping(entries) => entries.values().map(|entry| entry.value.values()).sum(),
        }
    }

    /// Takes an entry out of a mapping; `None` also if this is not a mapping.
    pub fn take(&mut self, key: &str) -> Option<Entry> {
        match &mut self.content {
            Content::Mapping(entries) => entries.remove(key),
            _ => None,
        }
    }

    /// Sets a key of a mapping to a string that the text leaves out. Both get the position of
    /// the mapping. Anything but a mapping stays as it is.
    pub fn set_implied(&mut self, key: &str, text: &str) {
        let position = self.position;
        let content = Content::Scalar(Scalar::String(text.to_owned()));
        let value = Self { position, content };
        let origin = Origin::Written;
        if let Content::Mapping(entries) = &mut self.content {
            let entry = Entry {
                position,
                origin,
                value,
            };
            entries.insert(key.to_owned(), entry);
        }
    }

    /// Returns the items of a list.
    ///
    /// # Errors
    ///
    /// The value itself if it is not a list.
    pub fn into_items(self) -> Result<Vec<Self>, Self> {
        match self.content {
            Content::Sequence(items) => Ok(items),
            _ => Err(self),
        }
    }
}

impl Entry {
    /// Returns the position of the key.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the value.
    pub fn value(&self) -> &Node {
        &self.value
    }

    /// Returns the value.
    pub fn into_value(self) -> Node {
        self.value
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            Content::Scalar(scalar) => scalar.serialize(serializer),
            Content::Sequence(items) => serializer.collect_seq(items),
            Content::Mapping(entries) => serializer.collect_map(entries),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}
