//! Entries of managedFields that name a version which the kind's definition no longer has.
//!
//! The server answers 500 to every apply of an object with such an entry, and drops all entries at any other
//! write. The versions that it can still convert to are those of `spec.versions`, served or not
//! (`apiextensions-apiserver`, `pkg/apiserver/conversion/converter.go`, `validVersions`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::managed_fields::{entries, union};
use crate::model::resource::Resource;

/// Returns whether entries name another version of the kind than that of the resource, which its definition
/// may have lost. Only custom resources have one, and their groups have a dot.
pub fn names_other_version(metadata: &Value, resource: &Resource) -> bool {
    resource.group.contains('.') && entries(metadata).iter().any(|entry| is_other(entry, resource))
}

/// Returns `metadata.managedFields` with the version of the resource in place of those that the definition does
/// not have; `None` if it has them all.
///
/// Entries of one writer that become equal are united: of equal ones, the server would keep the last. The paths
/// stay as they are: nothing can translate them any more.
pub fn without_dropped_versions(metadata: &Value, resource: &Resource, definition: &Value) -> Option<Value> {
    let versions = definition["spec"]["versions"].as_array()?.iter();
    let defined: BTreeSet<&str> = versions.filter_map(|version| version["name"].as_str()).collect();
    if !defined.contains(&*resource.version) {
        return None;
    }
    let is_dropped = |entry: &Value| {
        is_other(entry, resource) && version_of(entry, resource).is_some_and(|name| !defined.contains(name))
    };
    let old = entries(metadata);
    if !old.iter().any(is_dropped) {
        return None;
    }
    let mut rewritten: Vec<Value> = Vec::new();
    for entry in old {
        let mut entry = entry.clone();
        if is_dropped(&entry) {
            entry["apiVersion"] = resource.api_version().into();
        }
        match rewritten.iter_mut().find(|other| is_same_writer(other, &entry)) {
            Some(other) => other["fieldsV1"] = union(&other["fieldsV1"], &entry["fieldsV1"]),
            None => rewritten.push(entry),
        }
    }
    Some(Value::Array(rewritten))
}

/// Returns the version that an entry names, if it is one of the group of the resource.
fn version_of<'e>(entry: &'e Value, resource: &Resource) -> Option<&'e str> {
    let (group, version) = entry["apiVersion"].as_str()?.split_once('/')?;
    (group == resource.group).then_some(version)
}

fn is_other(entry: &Value, resource: &Resource) -> bool {
    version_of(entry, resource).is_some_and(|version| version != resource.version)
}

/// Returns whether the server takes two entries for one.
fn is_same_writer(one: &Value, other: &Value) -> bool {
    ["manager", "operation", "apiVersion", "subresource"]
        .into_iter()
        .all(|field| one[field] == other[field])
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
        let resource = Resource::regular("example.com", "v1", "Widget", Scope::Namespaced);
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
            let rewritten = without_dropped_versions(&metadata, &resource, definition);
            assert_eq!(rewritten, after.map(Value::Array), "{metadata}");
        }
    }

    #[test]
    fn only_custom_resources_lose_versions() {
        let other = |group: &str| {
            let metadata = json!({"managedFields": [entry("a", &format!("{group}/v0"), "f:a")]});
            let resource = Resource::regular(group, "v1", "Widget", Scope::Namespaced);
            names_other_version(&metadata, &resource)
        };
        assert!(other("example.com"));
        assert!(!other("autoscaling"));
    }
}
