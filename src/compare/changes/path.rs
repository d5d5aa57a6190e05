//! Paths of a field set, written as in a manifest.

use serde_json::{Map, Value};

/// Writes a path as in a manifest: `spec.ports[port=80,protocol=TCP].name`.
pub(in crate::compare) fn readable<'k>(path: impl Iterator<Item = &'k str>) -> String {
    let mut text = String::new();
    for key in path {
        if let Some(name) = key.strip_prefix("f:") {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name);
            continue;
        }
        let inner = key.get(2..).unwrap_or(key);
        text.push('[');
        match serde_json::from_str::<Map<String, Value>>(inner) {
            Ok(keys) => {
                for (position, (name, value)) in keys.iter().enumerate() {
                    if position > 0 {
                        text.push(',');
                    }
                    text.push_str(name);
                    text.push('=');
                    match value {
                        Value::String(value) => text.push_str(value),
                        other => text.push_str(&other.to_string()),
                    }
                }
            }
            Err(_) => text.push_str(inner),
        }
        text.push(']');
    }
    text
}
