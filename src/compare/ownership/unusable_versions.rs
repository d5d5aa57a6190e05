//! Entries of managedFields in a version of the kind to which the server cannot convert the object: the CRD has lost
//! the version, or the schema of the version lacks a field of the object.
//!
//! The server answers 500 to every apply of an object with such an entry, and drops all entries at any other write. It
//! can convert to all versions in `spec.versions` of the CRD, served or not (`apiextensions-apiserver`,
//! `pkg/apiserver/conversion/converter.go`, `validVersions`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::managed_fields::{entries, union};
use crate::model::resource::Resource;

/// Returns whether an entry names another version than the resource has. Such a version may be unusable. Only custom
/// resources have unusable versions. The dot in their groups tells them from most built-in kinds, but not from all.
pub fn may_have_unusable_version(metadata: &Value, resource: &Resource) -> bool {
    resource.group.contains('.')
        && entries(metadata)
            .iter()
            .any(|entry| is_of_other_version(entry, resource))
}

/// Returns `metadata.managedFields` with the version of the resource in place of unusable versions: those to which the
/// server cannot convert each of `objects_to_convert`. `None` if no entry has an unusable version.
///
/// If two entries of one writer then have the same version, they are united, because the server would keep only the
/// last one. The paths in the entries stay. Without a conversion webhook, all versions have the same paths. With a
/// webhook, nothing can translate the paths of a version that the CRD has lost.
pub fn managed_fields_with_usable_versions(
    metadata: &Value,
    resource: &Resource,
    definition: &Value,
    objects_to_convert: &[&Value],
) -> Option<Value> {
    let versions = definition["spec"]["versions"].as_array()?;
    if !versions
        .iter()
        .any(|version| version["name"] == *resource.version)
    {
        return None;
    }
    let usable: BTreeSet<&str> = versions
        .iter()
        .filter(|version| {
            objects_to_convert
                .iter()
                .all(|object| can_convert(object, definition, version))
        })
        .filter_map(|version| version["name"].as_str())
        .collect();
    let is_unusable = |entry: &Value| {
        is_of_other_version(entry, resource)
            && version_if_of_same_group(entry, resource).is_some_and(|name| !usable.contains(name))
    };
    let old = entries(metadata);
    if !old.iter().any(is_unusable) {
        return None;
    }
    let mut rewritten: Vec<Value> = Vec::new();
    for entry in old {
        let mut entry = entry.clone();
        if is_unusable(&entry) {
            entry["apiVersion"] = resource.api_version().into();
        }
        match rewritten.iter_mut().find(|other| is_same_writer(other, &entry)) {
            Some(other) => other["fieldsV1"] = union(&other["fieldsV1"], &entry["fieldsV1"]),
            None => rewritten.push(entry),
        }
    }
    Some(Value::Array(rewritten))
}

/// Returns whether the server can convert an object to a version. With a conversion webhook, every version counts as
/// usable: the webhook may rename fields, so the schema of the other version cannot be compared with the object.
fn can_convert(object: &Value, definition: &Value, version: &Value) -> bool {
    let unknown = if definition["spec"]["preserveUnknownFields"] == true {
        UnknownFields::Kept
    } else {
        UnknownFields::Refused
    };
    definition["spec"]["conversion"]["strategy"] == "Webhook"
        || schema_allows_object(&version["schema"]["openAPIV3Schema"], object, unknown)
}

/// Returns the version that an entry names, if it is one of the group of the resource.
fn version_if_of_same_group<'e>(entry: &'e Value, resource: &Resource) -> Option<&'e str> {
    let (group, version) = entry["apiVersion"].as_str()?.split_once('/')?;
    (group == resource.group).then_some(version)
}

fn is_of_other_version(entry: &Value, resource: &Resource) -> bool {
    version_if_of_same_group(entry, resource).is_some_and(|version| version != resource.version)
}

/// Returns whether two entries have the same key for the server, which keeps one entry for each key.
fn is_same_writer(one: &Value, other: &Value) -> bool {
    ["manager", "operation", "apiVersion", "subresource"]
        .into_iter()
        .all(|field| one[field] == other[field])
}

/// The fields of every object that no schema has to declare.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The treatment of fields that a schema does not declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnknownFields {
    Kept,
    Refused,
}

/// Returns whether a schema holds a whole object, whose identity and metadata need no declaration.
fn schema_allows_object(schema: &Value, object: &Value, unknown: UnknownFields) -> bool {
    let mut content = object.clone();
    if let Some(fields) = content.as_object_mut() {
        fields.retain(|name, _| !IDENTITY.contains(&name.as_str()));
    }
    schema_allows_value(schema, &content, unknown)
}

/// Returns whether a schema holds a value, by the rules of server-side apply (`kube-openapi`,
/// `pkg/schemaconv/openapi.go`): what is below a field that keeps unknown fields keeps them, too, and an object without
/// properties is free.
fn schema_allows_value(schema: &Value, value: &Value, inherited: UnknownFields) -> bool {
    let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let unknown = if keeps { UnknownFields::Kept } else { inherited };
    match (schema["type"].as_str(), value) {
        (_, Value::Null) => true,
        (None | Some("object"), Value::Object(fields)) => fields
            .iter()
            .all(|(name, value)| schema_allows_field(schema, name, value, unknown)),
        (None | Some("array"), Value::Array(items)) => items
            .iter()
            .all(|item| schema_allows_value(&schema["items"], item, unknown)),
        (Some("string"), value) => value.is_string(),
        (Some("boolean"), value) => value.is_boolean(),
        (Some("integer" | "number"), value) => value.is_number(),
        (declared, _) => declared.is_none(),
    }
}

fn schema_allows_field(schema: &Value, name: &str, value: &Value, unknown: UnknownFields) -> bool {
    let declared = &schema["properties"];
    if schema["x-kubernetes-embedded-resource"] == true && IDENTITY.contains(&name) {
        return true;
    }
    match (declared.get(name), &schema["additionalProperties"]) {
        (Some(schema), _) | (None, schema @ Value::Object(_)) => schema_allows_value(schema, value, unknown),
        (None, Value::Bool(is_allowed)) => *is_allowed,
        (None, _) => unknown == UnknownFields::Kept || declared.as_object().is_none_or(Map::is_empty),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::resource::Scope;

    fn entry(manager: &str, version: &str, field: &str) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": version, "fieldsV1": {field: {}}})
    }

    #[test]
    fn only_versions_that_the_definition_lost_are_rewritten() {
        let resource = Resource::with_regular_names("example.com", "v1", "Widget", Scope::Namespaced);
        let definition = json!({"spec": {"versions": [{"name": "v1"}, {"name": "v2", "served": false}]}});
        let unreadable = json!({"spec": {}});
        let without_ours = json!({"spec": {"versions": [{"name": "v2"}]}});
        let [v0, v1, v2] = ["example.com/v0", "example.com/v1", "example.com/v2"];
        let table = [
            (vec![entry("a", v1, "f:a")], &definition, None),
            (vec![entry("a", v2, "f:a")], &definition, None),
            (vec![entry("a", "example.org/v0", "f:a")], &definition, None),
            (vec![entry("a", v0, "f:a")], &unreadable, None),
            (vec![entry("a", v0, "f:a")], &without_ours, None),
            (
                vec![entry("a", v0, "f:a"), entry("b", v2, "f:b")],
                &definition,
                Some(vec![entry("a", v1, "f:a"), entry("b", v2, "f:b")]),
            ),
            (
                vec![
                    entry("a", v1, "f:a"),
                    entry("b", v1, "f:a"),
                    entry("a", v0, "f:b"),
                ],
                &definition,
                Some(vec![
                    json!({"manager": "a", "operation": "Update", "apiVersion": v1, "fieldsV1": {"f:a": {}, "f:b": {}}}),
                    entry("b", v1, "f:a"),
                ]),
            ),
        ];
        for (before, definition, after) in table {
            let metadata = json!({"managedFields": before});
            let rewritten = managed_fields_with_usable_versions(&metadata, &resource, definition, &[]);
            assert_eq!(rewritten, after.map(Value::Array), "{metadata}");
        }
    }

    #[test]
    fn only_custom_resources_lose_versions() {
        let other = |group: &str| {
            let metadata = json!({"managedFields": [entry("a", &format!("{group}/v0"), "f:a")]});
            let resource = Resource::with_regular_names(group, "v1", "Widget", Scope::Namespaced);
            may_have_unusable_version(&metadata, &resource)
        };
        assert!(other("example.com"));
        assert!(!other("autoscaling"));
    }

    #[test]
    fn versions_whose_schema_cannot_hold_the_object_are_rewritten() {
        let resource = Resource::with_regular_names("example.com", "v1", "Widget", Scope::Namespaced);
        let [v0, v1] = ["example.com/v0", "example.com/v1"];
        let metadata = json!({"managedFields": [entry("a", v0, "f:a")]});
        let spec = |properties: Value| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let with = |field: &str, value: Value| {
            let mut schema = spec(json!({"size": {"type": "integer"}}));
            schema["properties"]["spec"][field] = value;
            schema
        };
        let keep = "x-kubernetes-preserve-unknown-fields";
        let sized = json!({"kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}});
        let colored = json!({"spec": {"color": "red"}});
        let nested = json!({"spec": {"list": [{"a": {"b": 1}}]}});
        let below = |schema: Value| {
            spec(json!({"list": {"type": "array", "items": {"type": "object", "properties": {"a": schema}}}}))
        };
        let named = json!({"spec": {"list": [{"a": {"kind": "A", "metadata": {}}}]}});
        let status = json!({"spec": {}, "status": {"ready": true}});
        let cases = [
            (spec(json!({"size": {"type": "integer"}})), &sized, true),
            (spec(json!({"size": {"type": "string"}})), &sized, false),
            (
                spec(json!({"size": {"x-kubernetes-int-or-string": true}})),
                &sized,
                true,
            ),
            (spec(json!({"size": {"type": "integer"}})), &colored, false),
            (spec(json!({})), &colored, true),
            (json!({"type": "object", keep: true}), &colored, true),
            (with(keep, json!(true)), &colored, true),
            (with("additionalProperties", json!(true)), &colored, true),
            (
                with("additionalProperties", json!({"type": "string"})),
                &colored,
                true,
            ),
            (
                with("additionalProperties", json!({"type": "integer"})),
                &colored,
                false,
            ),
            (
                below(json!({"type": "object", "properties": {"b": {"type": "integer"}}})),
                &nested,
                true,
            ),
            (
                below(json!({"type": "object", "properties": {"c": {"type": "integer"}}})),
                &nested,
                false,
            ),
            (
                below(
                    json!({"type": "object", "properties": {"c": {}}, "x-kubernetes-embedded-resource": true}),
                ),
                &named,
                true,
            ),
            (spec(json!({})), &status, false),
        ];
        let rewritten = |schema: &Value, object: &Value, conversion: Value| {
            let version =
                |name: &str, schema: &Value| json!({"name": name, "schema": {"openAPIV3Schema": schema}});
            let definition = json!({"spec": {
                "conversion": conversion,
                "versions": [version("v0", schema), version("v1", &Value::Null)],
            }});
            managed_fields_with_usable_versions(&metadata, &resource, &definition, &[object])
        };
        for (schema, object, is_held) in cases {
            let expected = (!is_held).then(|| json!([entry("a", v1, "f:a")]));
            let none = json!({"strategy": "None"});
            assert_eq!(rewritten(&schema, object, none), expected, "{schema} {object}");
            assert_eq!(
                rewritten(&schema, object, json!({"strategy": "Webhook"})),
                None,
                "its schema has other names"
            );
        }
    }
}
