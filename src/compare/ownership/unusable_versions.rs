//! Entries of managedFields in a version of the kind to which the server may be unable to convert the object: the CRD
//! has lost the version, or the schema of the version lacks a field of the object.
//!
//! The server answers 500 to every apply of an object with such an entry, and drops all entries at any other write. It
//! can convert to all versions in `spec.versions` of the CRD, served or not (`apiextensions-apiserver`,
//! `pkg/apiserver/conversion/converter.go`, `validVersions`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::managed_fields::{entries, union};
use crate::model::resource::Resource;

/// Returns whether an entry names another version than the resource has. Such a version may be unusable. Only custom
/// resources have unusable versions. The dot in their groups tells them from most built-in kinds, but not from all.
pub fn may_have_unusable_version(metadata: &Value, resource: &Resource) -> bool {
    resource.group.contains('.')
        && entries(metadata)
            .iter()
            .any(|entry| has_other_version(entry, resource))
}

/// Returns `metadata.managedFields` with the version of the resource in place of each version in which the server may
/// be unable to read the object. `None` if no entry has such a version.
///
/// Without a conversion webhook, all other versions count as unusable: the paths of the fields are the same in all
/// versions, so it does no harm to rewrite an entry whose version would do. With a webhook, which may rename fields,
/// only the versions that the CRD has lost count. Nothing can translate their paths, so the paths in the entries stay.
///
/// If two entries of one writer then have the same version, they are united, because the server would keep only the
/// last one.
pub fn managed_fields_with_usable_versions(
    metadata: &Value,
    resource: &Resource,
    definition: &Value,
) -> Option<Value> {
    let versions = definition["spec"]["versions"].as_array()?;
    let names: BTreeSet<&str> = versions
        .iter()
        .filter_map(|version| version["name"].as_str())
        .collect();
    if !names.contains(&*resource.version) {
        return None;
    }
    let is_converted_by_webhook = definition["spec"]["conversion"]["strategy"] == "Webhook";
    let is_unusable = |entry: &Value| {
        version_in_same_group(entry, resource).is_some_and(|version| {
            version != resource.version && !(is_converted_by_webhook && names.contains(version))
        })
    };
    let old_entries = entries(metadata);
    if !old_entries.iter().any(is_unusable) {
        return None;
    }
    let mut new_entries: Vec<Value> = Vec::new();
    for entry in old_entries {
        let mut entry = entry.clone();
        if is_unusable(&entry) {
            entry["apiVersion"] = resource.api_version().into();
        }
        match new_entries.iter_mut().find(|other| is_same_writer(other, &entry)) {
            Some(other) => other["fieldsV1"] = union(&other["fieldsV1"], &entry["fieldsV1"]),
            None => new_entries.push(entry),
        }
    }
    Some(Value::Array(new_entries))
}

/// Returns the version that an entry names, if it is one of the group of the resource.
fn version_in_same_group<'e>(entry: &'e Value, resource: &Resource) -> Option<&'e str> {
    let (group, version) = entry["apiVersion"].as_str()?.split_once('/')?;
    (group == resource.group).then_some(version)
}

fn has_other_version(entry: &Value, resource: &Resource) -> bool {
    version_in_same_group(entry, resource).is_some_and(|version| version != resource.version)
}

/// Returns whether two entries have the same key for the server, which keeps one entry for each key.
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
    fn other_versions_are_rewritten_unless_a_webhook_converts_to_them() {
        let resource = Resource::with_regular_names("example.com", "v1", "Widget", Scope::Namespaced);
        let plain = json!({"spec": {"versions": [{"name": "v1"}, {"name": "v2", "served": false}]}});
        let mut webhook_definition = plain.clone();
        webhook_definition["spec"]["conversion"] = json!({"strategy": "Webhook"});
        let unreadable = json!({"spec": {}});
        let other_version = json!({"spec": {"versions": [{"name": "v2"}]}});
        let [v0, v1, v2] = ["example.com/v0", "example.com/v1", "example.com/v2"];
        let two_entries = || vec![entry("a", v0, "f:a"), entry("b", v2, "f:b")];
        let table = [
            (vec![entry("a", v1, "f:a")], &plain, None),
            (vec![entry("a", v2, "f:a")], &webhook_definition, None),
            (vec![entry("a", "example.org/v0", "f:a")], &plain, None),
            (vec![entry("a", v0, "f:a")], &unreadable, None),
            (vec![entry("a", v0, "f:a")], &other_version, None),
            (
                two_entries(),
                &webhook_definition,
                Some(vec![entry("a", v1, "f:a"), entry("b", v2, "f:b")]),
            ),
            (
                two_entries(),
                &plain,
                Some(vec![entry("a", v1, "f:a"), entry("b", v1, "f:b")]),
            ),
            (
                vec![
                    entry("a", v1, "f:a"),
                    entry("b", v1, "f:a"),
                    entry("a", v0, "f:b"),
                ],
                &plain,
                Some(vec![
                    json!({"manager": "a", "operation": "Update", "apiVersion": v1, "fieldsV1": {"f:a": {}, "f:b": {}}}),
                    entry("b", v1, "f:a"),
                ]),
            ),
        ];
        for (before, definition, after) in table {
            let metadata = json!({"managedFields": before});
            let rewritten = managed_fields_with_usable_versions(&metadata, &resource, definition);
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
}
