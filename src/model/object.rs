//! One object of the manifests, kept as the JSON text of its request.
//!
//! A parsed `serde_json::Value` takes many times the memory of the text, and most objects are only sent, or parsed
//! once for a comparison.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use serde_json::{Map, Value};

const METADATA: &str = "metadata";

/// A JSON object with `metadata`, as compact text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    text: Bytes,
    /// The position of the value of `metadata` in the text.
    metadata: Range<usize>,
}

impl Object {
    /// Writes an object from its top-level fields. If `metadata` is not among them, the object gets an empty mapping.
    ///
    /// # Panics
    ///
    /// Panics if a value cannot be written as JSON, which does not happen to parsed values.
    pub fn from_fields<'f, V: Serialize + 'f>(fields: impl IntoIterator<Item = (&'f String, V)>) -> Self {
        let mut text = vec![b'{'];
        let mut metadata_range = None;
        for (name, value) in fields {
            push_comma_unless_first(&mut text);
            write_yaml_safe_json(&mut text, name);
            text.push(b':');
            let start = text.len();
            write_yaml_safe_json(&mut text, &value);
            if name == METADATA {
                metadata_range = Some(start..text.len());
            }
        }
        let metadata_range = metadata_range.unwrap_or_else(|| {
            push_comma_unless_first(&mut text);
            write_yaml_safe_json(&mut text, METADATA);
            text.push(b':');
            let start = text.len();
            text.extend(b"{}");
            start..text.len()
        });
        text.push(b'}');
        text.shrink_to_fit();
        Self {
            text: text.into(),
            metadata: metadata_range,
        }
    }

    /// Returns the text of the object, as the body of a request.
    pub fn body(&self) -> Bytes {
        self.text.clone()
    }

    /// Returns the JSON text of `metadata`.
    pub fn metadata_json(&self) -> &[u8] {
        &self.text[self.metadata.clone()]
    }

    /// Parses `metadata`; returns an empty mapping if `metadata` is not a mapping, for example null.
    pub fn metadata(&self) -> Map<String, Value> {
        serde_json::from_slice(self.metadata_json()).unwrap_or_default()
    }

    /// Returns a copy of the object in which `metadata` is replaced.
    #[must_use]
    pub fn with_metadata(&self, new_metadata: &Map<String, Value>) -> Self {
        let Range { start, end } = self.metadata;
        let mut text = Vec::with_capacity(self.text.len() + 128);
        text.extend_from_slice(&self.text[..start]);
        write_yaml_safe_json(&mut text, new_metadata);
        let metadata_range = start..text.len();
        text.extend_from_slice(&self.text[end..]);
        text.shrink_to_fit();
        Self {
            text: text.into(),
            metadata: metadata_range,
        }
    }

    /// Returns whether a mapping in the object may have this key. Only the text is searched, so the result may be
    /// `true` for an object without the key. It is `false` for an object with the key only if JSON escapes a character
    /// of the key.
    pub fn may_mention_key(&self, key: &str) -> bool {
        may_have_key(&self.text, key)
    }

    /// Returns whether a mapping in `metadata` may have this key; errs as [`Self::may_mention_key`] does.
    pub fn may_mention_metadata_key(&self, key: &str) -> bool {
        may_have_key(self.metadata_json(), key)
    }

    /// Returns whether a value in the object may be empty: null, or a string, a list or a mapping without content.
    pub fn may_have_empty_values(&self) -> bool {
        may_contain_any(&self.text, &[":null", ":\"\"", ":[]", ":{}"])
    }

    /// Returns whether the object may embed another object with metadata, such as a Pod template. `metadata` of the
    /// object itself is the first match.
    pub fn may_embed_metadata(&self) -> bool {
        String::from_utf8_lossy(&self.text)
            .matches("\"metadata\":")
            .nth(1)
            .is_some()
    }

    /// Returns whether a value in the object may be null.
    pub fn may_hold_null(&self) -> bool {
        may_contain_any(&self.text, &[":null"])
    }

    /// Parses the object; returns null if it is nested too deeply to be parsed.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }
}

impl From<&Value> for Object {
    /// Creates an object; a value that is not a mapping gives an object with nothing but empty metadata.
    fn from(value: &Value) -> Self {
        Self::from_fields(value.as_object().into_iter().flatten())
    }
}

/// Returns whether a mapping in this JSON text may have this key.
fn may_have_key(text: &[u8], key: &str) -> bool {
    may_contain_any(text, &[&format!("\"{key}\":")])
}

/// Returns whether a text may contain one of these parts; `true` if the text is not UTF-8. `str::contains` is many
/// times faster than a comparison at each byte, which is what a search in bytes would be.
fn may_contain_any(text: &[u8], parts: &[&str]) -> bool {
    str::from_utf8(text).map_or(true, |text| parts.iter().any(|part| text.contains(part)))
}

/// Writes a comma before each field but the first, which follows the opening brace.
fn push_comma_unless_first(text: &mut Vec<u8>) {
    if text.len() > 1 {
        text.push(b',');
    }
}

/// Writes the body of a server-side apply of this value.
pub fn to_yaml_safe_json(value: &Value) -> Bytes {
    let mut text = Vec::with_capacity(256);
    write_yaml_safe_json(&mut text, value);
    text.into()
}

fn write_yaml_safe_json(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let mut serializer = Serializer::with_formatter(text, YamlSafeJson);
    if let Err(error) = value.serialize(&mut serializer) {
        panic!("a value that is not JSON: {error}");
    }
}

/// Formats compact JSON that means the same when it is parsed as YAML.
///
/// The API server parses the body of server-side apply as YAML 1.1 (go-yaml v2). In YAML, U+0085, U+2028 and U+2029
/// break a line, and a line break in a quoted string is folded into a blank; control characters are refused. JSON
/// allows all of these characters. As escapes, they mean the same in JSON and in YAML.
struct YamlSafeJson;

impl Formatter for YamlSafeJson {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // Most text is ASCII, which has none of the characters below.
        if fragment.bytes().all(|byte| byte < 0x7f) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut remainder = fragment;
        while let Some(position) = remainder.find(is_special_in_yaml) {
            let (plain, special) = remainder.split_at(position);
            CompactFormatter.write_string_fragment(writer, plain)?;
            let mut characters = special.chars();
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            remainder = characters.as_str();
        }
        CompactFormatter.write_string_fragment(writer, remainder)
    }
}

/// Returns whether go-yaml breaks a line at the character, or refuses it (`is_break` in `yamlprivateh.go`, the ranges
/// in `readerc.go`). Control characters below U+0020 are missing here: `serde_json` has escaped them before.
fn is_special_in_yaml(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
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
    fn a_key_is_found_wherever_it_is() {
        let object = Object::from(&json!({"metadata": {"name": "ü"}, "spec": [{"a/b": 1}, "c"]}));
        for (key, in_object, in_metadata) in [
            ("a/b", true, false),
            ("name", true, true),
            ("b", false, false),
            ("c", false, false),
        ] {
            assert_eq!(object.may_mention_key(key), in_object, "{key}");
            assert_eq!(object.may_mention_metadata_key(key), in_metadata, "{key}");
        }
    }

    #[test]
    fn what_yaml_reads_in_another_way_is_escaped() {
        let table = [
            ("plain", "plain"),
            ("ü€🦀", "ü€🦀"),
            (
                "\u{7e}\u{a0}\u{2027}\u{202a}\u{feef}\u{fffd}\u{1fffe}",
                "\u{7e}\u{a0}\u{2027}\u{202a}\u{feef}\u{fffd}\u{1fffe}",
            ),
            ("a\u{85}b", r"a\u0085b"),
            ("\u{2028}\u{2029}", r"\u2028\u2029"),
            (
                "ü\u{7f}\u{80}\u{9f}\u{feff}\u{fffe}\u{ffff}",
                r"ü\u007f\u0080\u009f\ufeff\ufffe\uffff",
            ),
            ("\n\"\u{85}\\\u{1}", r#"\n\"\u0085\\\u0001"#),
        ];
        for (text, written) in table {
            let key = format!("a{text}");
            let value = json!({(&*key): text, "metadata": {(&*key): text}});
            let expected = format!(r#"{{"a{written}":"{written}","metadata":{{"a{written}":"{written}"}}}}"#);
            let object = Object::from(&value);
            assert_eq!(object.body(), expected);
            assert_eq!(object.value(), value);
            assert_eq!(to_yaml_safe_json(&value), expected);
            let metadata = value["metadata"].as_object().expect("a mapping");
            assert_eq!(object.with_metadata(metadata).body(), expected);
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
            assert_eq!(object.metadata_json(), b"{}");
        }
    }
}
