//! The fields in which two states of an object differ.

use serde::Serialize;
use serde_json::Value;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Its path: a JSON pointer (RFC 6901), such as `/spec/replicas`.
    pub field: String,
    /// Its value before; absent if the field is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value after; absent if the field is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Returns the smallest fields that differ. Items of lists are compared by their positions.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(field: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                compare(
                    format!("{field}/{escaped}"),
                    before.get(key),
                    after.get(key),
                    found,
                );
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                compare(
                    format!("{field}/{index}"),
                    before.get(index),
                    after.get(index),
                    found,
                );
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push(Change {
            field,
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}
