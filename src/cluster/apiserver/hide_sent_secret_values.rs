//! Hides the values of a Secret in the server's message about a request that sent the Secret: servers and webhooks
//! quote the values that they were sent.
//!
//! A message may also quote values that the server has stored. Those stay visible unless this request sent them, too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::model::secret_value::{list_encodings, secret_fields};
use crate::model::text::HIDDEN;

/// The number of bytes from which a value is hidden everywhere. Shorter values occur in ordinary words, so they are
/// hidden only in quotation marks.
const MIN_BYTES_UNQUOTED: usize = 4;

/// The values of a Secret that was sent, each as it was written, and also decoded if it is valid Base64.
pub(super) struct SecretValues(Vec<Vec<u8>>);

impl SecretValues {
    /// Collects the values in the body of a request; none if the body is not a Secret.
    pub(super) fn from_request_body(body: &[u8]) -> Self {
        let object: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut values = Vec::new();
        if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
            for field in secret_fields(&object) {
                collect_with_decoded(&object[field], &mut values);
            }
        }
        Self(values)
    }

    /// Returns the text with each of these values replaced by [`HIDDEN`].
    pub(super) fn hide(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        // If a field has the wrong type, the server prints its value in Go's syntax, as `got
        // &value.valueUnstructured{…}`. The value may not be recognizable in it, so the rest of the text is hidden.
        let mut text_with_hidden = match text.split_once(", got &value") {
            Some((start, _)) => format!("{start}, got {HIDDEN}"),
            None => text.to_owned(),
        };
        let (short, long): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|value| value.len() < MIN_BYTES_UNQUOTED);
        let short_texts = short.iter().filter_map(|value| std::str::from_utf8(value).ok());
        let quoted_short_texts = short_texts.map(|value| format!("\"{value}\""));
        let mut texts_to_hide: Vec<String> = long
            .into_iter()
            .filter(|value| value.len() <= text.len())
            .flat_map(|value| list_encodings(value))
            .chain(quoted_short_texts)
            .collect();
        // Longest first: if a value is part of another one, the rest of the longer value would stay visible.
        texts_to_hide.sort_by_key(|text_to_hide| std::cmp::Reverse(text_to_hide.len()));
        for text_to_hide in texts_to_hide {
            text_with_hidden = text_with_hidden.replace(&text_to_hide, HIDDEN);
        }
        text_with_hidden
    }
}

/// Adds the texts and numbers inside a value to `values`; each text also decoded if it is valid Base64.
fn collect_with_decoded(value: &Value, values: &mut Vec<Vec<u8>>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect_with_decoded(value, values)),
        Value::Array(items) => items.iter().for_each(|value| collect_with_decoded(value, values)),
        Value::String(text) if !text.is_empty() => {
            values.push(text.clone().into_bytes());
            values.extend(STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty()));
        }
        Value::Number(number) => values.push(number.to_string().into_bytes()),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hide(secret: &Value, text: &str) -> String {
        SecretValues::from_request_body(secret.to_string().as_bytes()).hide(text)
    }

    #[test]
    fn what_a_secret_holds_is_hidden_in_every_form() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "type": "Opaque",
            "data": {"a": "aHVudGVyMg==", "pin": "MTI="},
            "stringData": {"b": "two\nlines", "e": "a&b<c>", "c": ["nested", {"d": 123_456}]},
        });
        for (text, expected) in [
            ("data[a]: \"aHVudGVyMg==\" is wrong", "data[a]: \"***\" is wrong"),
            ("webhook: hunter2 is weak", "webhook: *** is weak"),
            ("webhook: \"two\\nlines\"", "webhook: \"***\""),
            ("webhook: two\nlines", "webhook: ***"),
            (
                "webhook: {\"e\":\"a\\u0026b\\u003cc\\u003e\"}",
                "webhook: {\"e\":\"***\"}",
            ),
            ("webhook: a&b<c>", "webhook: ***"),
            ("got nested and 123456", "got *** and ***"),
            ("pin \"12\" of 12 places", "pin *** of 12 places"),
            ("secret token is Opaque", "secret token is Opaque"),
            (
                ".data.a: expected string, got &value{x}",
                ".data.a: expected string, got ***",
            ),
        ] {
            assert_eq!(hide(&secret, text), expected);
        }
    }

    #[test]
    fn other_objects_hide_nothing() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "hunter2"}});
        assert_eq!(hide(&map, "hunter2, got &value"), "hunter2, got &value");
        assert_eq!(SecretValues::from_request_body(b"").hide("text"), "text");
        assert_eq!(SecretValues::from_request_body(b"[{").hide("text"), "text");
    }
}
