//! Removes the values of a Secret from messages about it: servers and webhooks quote what they
//! were sent.
//!
//! Only values that were sent are known here, so stored values that a server quotes are not
//! recognized.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::model::secret_value::list_encodings;
use crate::model::text::HIDDEN;

/// Values of fewer bytes occur in ordinary words, and are hidden only in quotation marks.
const SHORT: usize = 4;

/// The values of a Secret that was sent, as they were written, and decoded.
pub(super) struct SecretValues(Vec<Vec<u8>>);

impl SecretValues {
    /// The values in the body of a request; none if it is not a Secret.
    pub(super) fn from_body(body: &[u8]) -> Self {
        let object: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut values = Vec::new();
        if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
            let fields = object.as_object().into_iter().flatten();
            let public = ["apiVersion", "kind", "metadata", "type"];
            for (_, value) in fields.filter(|(name, _)| !public.contains(&name.as_str())) {
                collect(value, &mut values);
            }
        }
        Self(values)
    }

    /// The text without any of them.
    pub(super) fn hide(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        // The server prints a value of the wrong type in Go's syntax.
        let mut hidden = match text.split_once(", got &value") {
            Some((start, _)) => format!("{start}, got {HIDDEN}"),
            None => text.to_owned(),
        };
        let (short, long): (Vec<_>, Vec<_>) = self.0.iter().partition(|value| value.len() < SHORT);
        let texts = short.iter().filter_map(|value| std::str::from_utf8(value).ok());
        let quoted = texts.map(|value| format!("\"{value}\""));
        let mut forms: Vec<String> = long
            .into_iter()
            .filter(|value| value.len() <= text.len())
            .flat_map(|value| list_encodings(value))
            .chain(quoted)
            .collect();
        // A value may begin with another one.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        for form in forms {
            hidden = hidden.replace(&form, HIDDEN);
        }
        hidden
    }
}

fn collect(value: &Value, values: &mut Vec<Vec<u8>>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|value| collect(value, values)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, values)),
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

    fn hidden(secret: &Value, text: &str) -> String {
        SecretValues::from_body(secret.to_string().as_bytes()).hide(text)
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
            ("webhook: Basic dXNlcjpodW50ZXIy", "webhook: Basic dXNlcjp***"),
            ("webhook: 68756e74657232", "webhook: ***"),
            ("webhook: ?e=a%26b%3Cc%3E", "webhook: ?e=***"),
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
            assert_eq!(hidden(&secret, text), expected);
        }
    }

    #[test]
    fn other_objects_hide_nothing() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "hunter2"}});
        assert_eq!(hidden(&map, "hunter2, got &value"), "hunter2, got &value");
        assert_eq!(SecretValues::from_body(b"").hide("text"), "text");
        assert_eq!(SecretValues::from_body(b"[{").hide("text"), "text");
    }
}
