//! Compares a value of a manifest with what the server writes for it. The two may look different: the server fills in
//! defaults inside atomic values, leaves out zero values, and writes quantities in canonical form and base64 without
//! line breaks.
//!
//! The `OpenAPI` document knows none of these defaults. They are typed from the defaulting
//! functions of every served version (`pkg/apis/*/v1/defaults.go`, Kubernetes 1.36), and applied
//! to nothing but built-in kinds. The defaults of a custom resource are in its schema.

use serde_json::{Map, Value};

use super::{quantity, zeros};
use crate::model::built_in_kinds::TypeMeta;

/// A field of an object: its name, the name of the field that it is in, and the object's kind.
#[derive(Debug, Clone, Copy)]
pub(in crate::compare) struct FieldOfKind<'a> {
    pub(in crate::compare) type_meta: TypeMeta<'a>,
    pub(in crate::compare) container: &'a str,
    pub(in crate::compare) name: &'a str,
}

impl<'a> FieldOfKind<'a> {
    fn below(self, name: &'a str) -> Self {
        Self {
            container: self.name,
            name,
            ..self
        }
    }

    fn object_kind(self) -> &'a str {
        self.type_meta.kind
    }
}

/// Returns whether the server writes `desired` as `live`.
pub(super) fn server_writes_as(desired: &Value, live: &Value, field: FieldOfKind<'_>) -> bool {
    match (desired, live) {
        // A schema is data here, and in data an absent value is not a zero.
        _ if field.object_kind() == "CustomResourceDefinition" => desired == live,
        (Value::Object(desired), Value::Object(live)) => {
            if field.object_kind() == "LimitRange" && field.name == "limits" {
                server_writes_fields_as(&complete_limit_range_item(desired), live, field)
            } else {
                server_writes_fields_as(desired, live, field)
            }
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len()
                && desired
                    .iter()
                    .zip(live)
                    .all(|(desired, live)| server_writes_as(desired, live, field))
        }
        _ if desired == live => true,
        // Where a type has no `omitempty`, an empty list is read as null.
        (Value::Array(_), Value::Null) => server_leaves_out(desired, field),
        // Go's `encoding/base64` ignores line breaks, and writes none.
        (Value::String(desired), Value::String(live))
            if field.type_meta.is_bytes_field(field.container, field.name) =>
        {
            desired.replace(['\r', '\n'], "") == *live
        }
        (_, Value::String(live)) if field.type_meta.is_quantity_field(field.container, field.name) => {
            canonical_quantity(desired).as_ref() == Some(live)
        }
        _ => false,
    }
}

fn server_writes_fields_as(
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
    field: FieldOfKind<'_>,
) -> bool {
    let all_desired = desired.iter().all(|(name, value)| match live.get(name) {
        Some(live) => server_writes_as(value, live, field.below(name)),
        None => server_leaves_out(value, field.below(name)),
    });
    all_desired
        && live
            .iter()
            .filter(|(name, _)| !desired.contains_key(*name))
            .all(|(name, value)| server_fills_in(value, field.below(name), desired, field.container))
}

/// Returns a value of a manifest as the server writes it, as far as the live value shows that. A part that differs from
/// its live part only in how it is written is taken from the live value.
pub(in crate::compare) fn value_as_server_writes_it(
    desired: &Value,
    live: &Value,
    field: FieldOfKind<'_>,
) -> Value {
    if server_writes_as(desired, live, field) {
        return live.clone();
    }
    match (desired, live) {
        _ if field.object_kind() == "CustomResourceDefinition" => desired.clone(),
        (Value::Object(desired), Value::Object(live)) => {
            let mut fields = Map::new();
            for (name, value) in desired {
                let field = field.below(name);
                match live.get(name) {
                    Some(live) => {
                        fields.insert(name.clone(), value_as_server_writes_it(value, live, field));
                    }
                    None if server_leaves_out(value, field) => {}
                    None => {
                        fields.insert(name.clone(), value.clone());
                    }
                }
            }
            for (name, value) in live {
                if !desired.contains_key(name)
                    && server_fills_in(value, field.below(name), desired, field.container)
                {
                    fields.insert(name.clone(), value.clone());
                }
            }
            Value::Object(fields)
        }
        (Value::Array(desired), Value::Array(live)) => desired
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let equal_item = live.iter().find(|live| server_writes_as(item, live, field));
                match equal_item.or_else(|| live.get(index)) {
                    Some(live) => value_as_server_writes_it(item, live, field),
                    None => item.clone(),
                }
            })
            .collect(),
        _ => desired.clone(),
    }
}

/// Returns whether the server fills in this value for a field that `desired` leaves out. Null counts as filled in: the
/// server returns it for an absent field whose type has no `omitempty`. `outer_container` is the name of the field that
/// holds the container of the field.
fn server_fills_in(
    value: &Value,
    field: FieldOfKind<'_>,
    desired: &Map<String, Value>,
    outer_container: &str,
) -> bool {
    if value.is_null() {
        return true;
    }
    let text = match (field.container, field.name) {
        ("fieldRef" | "volumeClaimTemplates", "apiVersion") => "v1",
        ("resourceFieldRef", "divisor") => "0",
        ("ports", "protocol") if matches!(field.object_kind(), "EndpointSlice" | "NetworkPolicy") => "TCP",
        ("ports", "name") if field.object_kind() == "EndpointSlice" => "",
        ("endpoints", "conditions") => return value.as_object().is_some_and(Map::is_empty),
        ("roleRef", "apiGroup") => "rbac.authorization.k8s.io",
        ("subjects", "apiGroup") => {
            let subject = desired.get("kind").and_then(Value::as_str);
            if !matches!(subject, Some("User" | "Group")) {
                return false;
            }
            "rbac.authorization.k8s.io"
        }
        ("rules", "scope") if field.object_kind().ends_with("WebhookConfiguration") => "*",
        ("resourceRules" | "excludeResourceRules", "scope") => "*",
        ("matchConstraints" | "matchResources", "matchPolicy") => "Equivalent",
        ("matchConstraints" | "matchResources", "namespaceSelector" | "objectSelector") => {
            return value.as_object().is_some_and(Map::is_empty);
        }
        ("serviceAccountToken", "expirationSeconds") => return *value == 3600,
        ("volumeClaimTemplates", "kind") => "PersistentVolumeClaim",
        ("volumeClaimTemplates", "status") => {
            return *value == serde_json::json!({"phase": "Pending"});
        }
        ("spec", "volumeMode") if outer_container == "volumeClaimTemplates" => "Filesystem",
        ("status", "phase") if outer_container == "volumeClaimTemplates" => "Pending",
        ("onPodConditions", "status") => "True",
        _ => return false,
    };
    value.as_str() == Some(text)
}

/// Returns whether the server leaves this value out.
pub(in crate::compare) fn server_leaves_out(desired: &Value, field: FieldOfKind<'_>) -> bool {
    // What an EndpointSlice holds are pointers, and a pointer to nothing is something.
    if field.object_kind() == "EndpointSlice" && !IN_METADATA.contains(&field.container) {
        return desired.is_null();
    }
    // A key that people chose stays, whatever it is called and whatever its value.
    if field.type_meta.has_user_chosen_keys(field.container) {
        return false;
    }
    match desired {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(_) | Value::Bool(_) | Value::String(_) | Value::Number(_) => {
            zeros::is_omitted_zero(desired, field)
        }
    }
}

/// The root of an object, and the fields of its metadata that hold others.
const IN_METADATA: &[&str] = &["", "metadata", "annotations", "labels", "ownerReferences"];

/// An item of a `LimitRange` with the limits that follow from its other ones
/// (`SetDefaults_LimitRangeItem`).
fn complete_limit_range_item(item: &Map<String, Value>) -> Map<String, Value> {
    let mut completed = item.clone();
    if item.get("type").and_then(Value::as_str) != Some("Container") {
        return completed;
    }
    for (from, into) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let Some(Value::Object(limits)) = completed.get(from).cloned() else {
            continue;
        };
        let target = completed.entry(into).or_insert(Value::Null);
        if target.is_null() && !limits.is_empty() {
            *target = Value::Object(Map::new());
        }
        if let Value::Object(target) = target {
            for (resource, quantity) in limits {
                target.entry(resource).or_insert(quantity);
            }
        }
    }
    completed
}

fn canonical_quantity(desired: &Value) -> Option<String> {
    match desired {
        Value::String(text) => quantity::canonical(text),
        Value::Number(number) => quantity::canonical(&number.to_string()),
        _ => None,
    }
}

/// Returns whether a status says nothing, as generators write it: `{}`, `loadBalancer: {}`, and
/// what controller-gen leaves in a `CustomResourceDefinition`.
pub(super) fn is_blank_status(status: &Value, type_meta: TypeMeta<'_>) -> bool {
    let Value::Object(fields) = status else {
        return false;
    };

    fields
        .iter()
        .all(|(name, value)| match (type_meta.kind, name.as_str(), value) {
            ("Service" | "Ingress", "loadBalancer", Value::Object(inner)) => inner.is_empty(),
            ("CustomResourceDefinition", "acceptedNames", Value::Object(names)) => names
                .iter()
                .all(|(name, value)| matches!(name.as_str(), "kind" | "plural") && *value == ""),
            ("CustomResourceDefinition", "conditions" | "storedVersions", Value::Array(items)) => {
                items.is_empty()
            }
            ("CustomResourceDefinition", "conditions" | "storedVersions", Value::Null) => true,
            _ => false,
        })
}

/// Returns whether the live value is `desired` with the defaults of the schema filled in. `desired` is an atomic value
/// of a custom resource: the server fills in defaults inside it, so it may differ from the manifest. A default outside
/// of an atomic value is a field of its own, which an apply does not own.
pub(super) fn equals_with_schema_defaults(
    desired: &Value,
    live: &Value,
    schema: &Map<String, Value>,
) -> bool {
    let mut completed = desired.clone();
    fill_in_schema_defaults(&mut completed, schema);
    completed == *live
}

pub(in crate::compare) fn fill_in_schema_defaults(value: &mut Value, schema: &Map<String, Value>) {
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
                    fill_in_schema_defaults(value, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(Value::Object(schema)) = schema.get("items") {
                for item in items {
                    fill_in_schema_defaults(item, schema);
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
            assert_eq!(
                equals_with_schema_defaults(&desired, &completed, &schema),
                is_same,
                "{desired}"
            );
        }
    }
}
