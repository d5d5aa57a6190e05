//! Leaves out of custom resources the nulls that their schema does not allow, and the fields that the server prunes.
//!
//! Such a null comes from an empty field of a template (`cephfs:` with only comments below it). The server drops the
//! null when it creates an object, but in a server-side apply it refuses the null, or writes the object again each
//! time. kubectl apply leaves such nulls out as well. A null that the schema allows is a value and stays, and so does a
//! null below a field with `x-kubernetes-preserve-unknown-fields`.
//!
//! Empty values in the metadata of an embedded object are left out as in the object itself. The server prunes
//! all fields of a map for which the schema declares no field (`metadata: {type: object}` of a template). These fields
//! are left out; otherwise each apply would write the object again. If the schema declares at least one field, an
//! unknown field is sent, so that the server refuses it.

use serde_json::{Map, Value};

use super::changes::CrdVersion;
use crate::manifest::desired::remove_empty_metadata;
use crate::model::object::Object;

/// Returns the object without forbidden nulls and pruned fields; `None` if it has none of them.
pub fn remove_nulls_and_pruned_fields(object: &Object, definition: &CrdVersion<'_>) -> Option<Object> {
    let Value::Object(mut fields) = object.value() else {
        return None;
    };
    let original_fields = fields.clone();
    leave_out_of_object(&mut fields, definition.schema());
    (fields != original_fields).then(|| Object::from_fields(&fields))
}

fn leave_out_of_object(fields: &mut Map<String, Value>, schema: &Map<String, Value>) {
    let mut metadata = fields.remove("metadata").filter(|metadata| !metadata.is_null());
    if let Some(Value::Object(metadata)) = &mut metadata {
        remove_empty_metadata(metadata);
    }
    leave_out_of_fields(fields, schema);
    fields.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
}

fn leave_out_of_fields(fields: &mut Map<String, Value>, schema: &Map<String, Value>) {
    let keeps_unknown =
        is_true(schema, "x-kubernetes-preserve-unknown-fields") || is_true(schema, "additionalProperties");
    let declares_none = schema.get("properties").is_none();
    fields.retain(|name, value| match field_schema(schema, name) {
        Some(field) if value.is_null() => is_true(field, "nullable"),
        Some(field) => {
            leave_out_of_value(value, field);
            true
        }
        None => {
            keeps_unknown || (!value.is_null() && (!declares_none || TYPE_FIELDS.contains(&name.as_str())))
        }
    });
}

/// The fields that the server keeps in an object and in an embedded object even if the schema does not declare them.
const TYPE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

fn is_true(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn leave_out_of_value(value: &mut Value, schema: &Map<String, Value>) {
    match value {
        Value::Object(fields) if is_true(schema, "x-kubernetes-embedded-resource") => {
            leave_out_of_object(fields, schema);
        }
        Value::Object(fields) => leave_out_of_fields(fields, schema),
        Value::Array(items) => {
            if let Some(Value::Object(schema)) = schema.get("items") {
                for item in items {
                    leave_out_of_value(item, schema);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn field_schema<'s>(schema: &'s Map<String, Value>, name: &str) -> Option<&'s Map<String, Value>> {
    let declared = schema.get("properties").and_then(|known| known.get(name));
    declared
        .or_else(|| schema.get("additionalProperties"))?
        .as_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_stays_where_the_schema_allows_it_or_keeps_the_unknown() {
        let definition = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {
                    "cephfs": {"type": "object"},
                    "nullable": {"type": "string", "nullable": true},
                    "anything": {"x-kubernetes-preserve-unknown-fields": true},
                    "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "template": {"type": "object", "properties": {
                        "metadata": {"type": "object"},
                        "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
                    }},
                    "embedded": {"type": "object", "x-kubernetes-embedded-resource": true},
                }},
            },
        }}}]}});
        let version = CrdVersion::from_definition(&definition, "v1").expect("a schema");
        let cleaned = |spec: Value| {
            let object = Object::from(&json!({"metadata": {"labels": {"a": ""}}, "spec": spec}));
            let cleaned = remove_nulls_and_pruned_fields(&object, &version)?;
            assert_eq!(cleaned.metadata(), object.metadata());
            Some(cleaned.value()["spec"].clone())
        };
        let table = [
            (
                json!({"cephfs": null, "list": [{"a": null}], "map": {"a": null}}),
                Some(json!({"list": [{}], "map": {}})),
            ),
            (json!({"anything": null}), Some(json!({}))),
            (
                json!({"anything": {"a": null}, "nullable": null, "map": {}}),
                None,
            ),
            (json!({"unknown": null}), Some(json!({}))),
            (
                json!({"template": {"metadata": {"creationTimestamp": null, "labels": {}}, "spec": {"b": null, "c": []}}}),
                Some(json!({"template": {"metadata": {}, "spec": {"c": []}}})),
            ),
            (
                json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"b": {"c": null}}}}),
                Some(json!({"template": {"metadata": {}, "spec": {"b": {"c": null}}}})),
            ),
            (
                json!({"embedded": {"kind": "A", "apiVersion": "v1", "spec": {"a": 1}}}),
                Some(json!({"embedded": {"kind": "A", "apiVersion": "v1"}})),
            ),
            (
                json!({"embedded": {"metadata": {"labels": {"a": "", "b": null}, "finalizers": []}}}),
                Some(json!({"embedded": {"metadata": {"labels": {"a": ""}}}})),
            ),
            (Value::Null, Some(Value::Null)),
        ];
        for (spec, expected) in table {
            assert_eq!(cleaned(spec.clone()), expected, "{spec}");
        }
    }
}
