//! One object of the manifests as the text that is sent for it.
//!
//! A value tree takes many times the memory of its text, and most objects are only sent,
//! or compared once. What the text means is for those who read it.

use std::ops::Range;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

const METADATA: &str = "metadata";

/// A JSON object with `metadata`, as compact text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    text: Bytes,
    /// Where in the text the value of `metadata` is.
    metadata: Range<usize>,
}

impl Object {
    /// Writes an object; one without metadata gets empty ones.
    ///
    /// # Panics
    ///
    /// Where a value cannot be written as JSON, which no value that was read can.
    pub fn of<'f, V: Serialize + 'f>(fields: impl IntoIterator<Item = (&'f String, V)>) -> Self {
        let mut text = vec![b'{'];
        let mut metadata = None;
        for (name, value) in fields {
            separate(&mut text);
            write(&mut text, name);
            text.push(b':');
            let start = text.len();
            write(&mut text, &value);
            if name == METADATA {
                metadata = Some(start..text.len());
            }
        }
        let metadata = metadata.unwrap_or_else(|| {
            separate(&mut text);
            write(&mut text, METADATA);
            text.extend(b":{}");
            text.len() - 2..text.len()
        });
        text.push(b'}');
        text.shrink_to_fit();
        Self {
            text: text.into(),
            metadata,
        }
    }

    /// The text, as the body of a request.
    pub fn body(&self) -> Bytes {
        self.text.clone()
    }

    /// The text of `metadata`.
    pub fn metadata_text(&self) -> &[u8] {
        &self.text[self.metadata.clone()]
    }

    /// `metadata`; empty where it is no mapping.
    pub fn metadata(&self) -> Map<String, Value> {
        serde_json::from_slice(self.metadata_text()).unwrap_or_default()
    }

    /// The same object with other metadata.
    #[must_use]
    pub fn with_metadata(&self, metadata: &Map<String, Value>) -> Self {
        let Range { start, end } = self.metadata;
        let mut text = Vec::with_capacity(self.text.len() + 128);
        text.extend_from_slice(&self.text[..start]);
        write(&mut text, metadata);
        let metadata = start..text.len();
        text.extend_from_slice(&self.text[end..]);
        text.shrink_to_fit();
        Self {
            text: text.into(),
            metadata,
        }
    }

    /// Whether some mapping in it may have this key, whose letters JSON writes as they are.
    pub fn mentions(&self, key: &str) -> bool {
        let quoted = format!("\"{key}\":");
        self.text
            .windows(quoted.len())
            .any(|text| text == quoted.as_bytes())
    }

    /// The object as a value; null where it nests more deeply than is ever read.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }
}

impl From<&Value> for Object {
    /// Of a value that is no mapping nothing is kept.
    fn from(value: &Value) -> Self {
        Self::of(value.as_object().into_iter().flatten())
    }
}

fn separate(text: &mut Vec<u8>) {
    if text.len() > 1 {
        text.push(b',');
    }
}

fn write(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    if let Err(error) = serde_json::to_writer(text, value) {
        panic!("a value that is no JSON: {error}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_its_text_and_keeps_what_is_beside_its_metadata() {
        for value in [
            json!({"apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"metadata": [1, null, "\u{1}"]}}),
            json!({"metadata": {}}),
        ] {
            let object = Object::from(&value);
            assert_eq!(object.value(), value);
            assert_eq!(object.body(), value.to_string());
            assert_eq!(Value::Object(object.metadata()), value["metadata"]);
            let mut expected = value;
            expected["metadata"] = json!({"name": "b", "labels": {"x": "y"}});
            let metadata = expected["metadata"].as_object().expect("a mapping");
            assert_eq!(object.with_metadata(metadata), Object::from(&expected));
        }
    }

    #[test]
    fn an_object_without_metadata_gets_empty_ones() {
        for (value, expected) in [
            (json!({}), json!({"metadata": {}})),
            (json!({"a": 1}), json!({"a": 1, "metadata": {}})),
        ] {
            let object = Object::from(&value);
            assert_eq!(object.value(), expected);
            assert_eq!(object.metadata_text(), b"{}");
        }
    }
}
