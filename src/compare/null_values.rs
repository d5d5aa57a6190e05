//! Leaves out of custom resources what is null and must not be.
//!
//! Such a null is an empty field of a template (`cephfs:` with nothing but comments below). The server drops it when it
//! creates an object, but refuses it in a server-side apply, or writes the object again each time. kubectl apply leaves
//! it out as well. A null that the schema allows is a value, and stays; so does one of which the schema says nothing.

use serde_json::{Map, Value};

use super::changes::CrdVersion;
use crate::model::object::Object;

/// Returns the object without these nulls; `None` if it has none.
pub fn without_forbidden_nulls(object: &Object, definition: &CrdVersion<'_>) -> Option<Object> {
    let Value::Object(mut fields) = object.value() else {
        return None;
    };
    let before = fields.clone();
    leave_out_of_fields(&mut fields, definition.schema());
    (fields != before).then(|| Object::of(&fields))
}

fn leave_out_of_fields(fields: &mut Map<String, Value>, schema: &Map<String, Value>) {
    fields.retain(|name, value| match field_schema(schema, name) {
        None => true,
        Some(field) if value.is_null() => field.get("nullable") == Some(&Value::Bool(true)),
        Some(field) => {
            leave_out(value, field);
            true
        }
    });
}

fn leave_out(value: &mut Value, schema: &Map<String, Value>) {
    match value {
        Value::Object(fields) => leave_out_of_fields(fields, schema),
        Value::Array(items) => {
            if let Some(Value::Object(schema)) = schema.get("items") {
                for item in items {
                    leave_out(item, schema);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn field_schema<'s>(schema: &'s Map<String, Value>, name: &str) -> Option<&'s Map<String, Value>> {
    let declared = schema
        .get("properties")
        .and_then(|properties| properties.get(name));
    declared
        .or_else(|| schema.get("additionalProperties"))?
        .as_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_stays_where_the_schema_allows_it_or_says_nothing() {
        let definition = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {
                    "cephfs": {"type": "object"},
                    "nullable": {"type": "string", "nullable": true},
                    "anything": {"x-kubernetes-preserve-unknown-fields": true},
                    "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                }},
            },
        }}}]}});
        let version = CrdVersion::of(&definition, "v1").expect("a schema");
        let cleaned = |spec: Value| {
            let object = Object::from(&json!({"metadata": {}, "spec": spec}));
            without_forbidden_nulls(&object, &version).map(|object| object.value()["spec"].clone())
        };
        let table = [
            (
                json!({"cephfs": null, "list": [{"a": null}], "map": {"a": null}}),
                Some(json!({"list": [{}], "map": {}})),
            ),
            (json!({"anything": null}), Some(json!({}))),
            (
                json!({"anything": {"a": null}, "nullable": null, "unknown": null}),
                None,
            ),
            (Value::Null, Some(Value::Null)),
        ];
        for (spec, expected) in table {
            assert_eq!(cleaned(spec.clone()), expected, "{spec}");
        }
    }
}
