//! JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// Returns a merge patch that turns `before` into `after`.
pub fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            Some(old) if old == value => {}
            Some(old) => {
                patch.insert(key.clone(), merge_patch(old, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_has_what_is_new_changed_and_gone() {
        let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2], "f": 1});
        let after = json!({"a": 1, "b": {"c": 2}, "e": [1], "g": {"h": 1}});
        assert_eq!(
            merge_patch(&before, &after),
            json!({"b": {"c": 2, "d": null}, "e": [1], "f": null, "g": {"h": 1}})
        );
    }
}
