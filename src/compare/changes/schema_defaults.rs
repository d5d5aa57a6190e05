//! Defaults that the schema of a custom resource fills in inside atomic values.
//!
//! A default of a granular field is a field of its own, which an apply need not own. Inside an atomic value it makes the live
//! value differ from the manifest's.

use serde_json::{Map, Value};

/// Returns whether the server writes `desired`, a value with this schema, as `live`.
pub(super) fn same(desired: &Value, live: &Value, schema: &Map<String, Value>) -> bool {
    let mut completed = desired.clone();
    fill_in(&mut completed, schema);
    completed == *live
}

fn fill_in(value: &mut Value, schema: &Map<String, Value>) {
    match value {
        Value::Object(fields) => {
            let declared = schema.get("properties").and_then(Value::as_object);
            for (name, field) in declared.into_iter().flatten() {
                if let Some(default) = field.get("default") {
                    fields.entry(name).or_insert_with(|| default.clone());
                }
            }
            for (name, value) in fields {
                let field = declared.and_then(|declared| declared.get(name));
                if let Some(Value::Object(field)) = field.or_else(|| schema.get("additionalProperties")) {
                    fill_in(value, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(Value::Object(schema)) = schema.get("items") {
                for item in items {
                    fill_in(item, schema);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_filled_in_at_every_level() {
        let schema = json!({"items": {"properties": {
            "a": {"type": "integer"},
            "d": {"type": "integer", "default": 5},
            "inner": {"default": {}, "properties": {"mode": {"default": "on"}}},
            "map": {"additionalProperties": {"properties": {"x": {"default": true}}}},
        }}});
        let Value::Object(schema) = schema else {
            panic!("a schema is a mapping");
        };
        let completed = json!([{"a": 1, "d": 5, "inner": {"mode": "on"}, "map": {"k": {"x": true}}}]);
        for (desired, is_same) in [
            (json!([{"a": 1, "map": {"k": {}}}]), true),
            (
                json!([{"a": 1, "d": 5, "inner": {}, "map": {"k": {"x": true}}}]),
                true,
            ),
            (json!([{"a": 1, "d": 6, "map": {"k": {}}}]), false),
            (json!([{"a": 1}]), false),
            (json!([]), false),
        ] {
            assert_eq!(same(&desired, &completed, &schema), is_same, "{desired}");
        }
    }
}
