//! The owners of fields that the server finds invalid.
//!
//! The server writes a path like `spec.ports[0].port` or `data[a.b]`. Field sets do not have the positions of list
//! items, so for a path into a list, the owners of the list count.

use std::collections::BTreeSet;

use serde_json::Value;

use super::managed_fields::entries;

/// Returns the managers that own the field at `path`, if the field is only theirs. `None` if the manifest has the
/// field, if no manager or one of `ours` owns it, or if the path names no field.
pub fn owners_if_only_others(
    path: &str,
    manifest: &Value,
    live: &Value,
    ours: &BTreeSet<&str>,
) -> Option<Vec<String>> {
    if path.is_empty() || path.starts_with('<') || has_path_or_value_around_it(manifest, "", path) {
        return None;
    }
    let managers: BTreeSet<&str> = entries(&live["metadata"])
        .iter()
        // A field that was written through the subresource `scale` is part of the spec, so its entry counts.
        .filter(|entry| entry["subresource"] != "status")
        .filter(|entry| has_path_or_value_around_it(&entry["fieldsV1"], "f:", path))
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    (!managers.is_empty() && managers.is_disjoint(ours))
        .then(|| managers.into_iter().map(str::to_owned).collect())
}

/// Returns whether a manifest or a field set has this path, or a value without parts that the path leads into. `key_prefix`
/// is the prefix of the keys: `f:` in a field set, empty in a manifest.
fn has_path_or_value_around_it(tree: &Value, key_prefix: &str, path: &str) -> bool {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() || begins_with_index(path) {
        return true;
    }
    let Some(fields) = tree.as_object() else {
        return true;
    };
    if fields.is_empty() && !key_prefix.is_empty() {
        return true;
    }
    // A name may have dots in it, so the names that exist decide where a name in the path ends.
    fields.iter().any(|(key, field)| {
        key.strip_prefix(key_prefix)
            .and_then(|name| strip_name(path, name))
            .is_some_and(|path_below| has_path_or_value_around_it(field, key_prefix, path_below))
    })
}

/// Returns the rest of a path after a name; `None` if the path does not begin with the name.
fn strip_name<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    path.strip_prefix('[')
        .and_then(|rest| rest.strip_prefix(name)?.strip_prefix(']'))
        .or_else(|| {
            path.strip_prefix(name)
                .filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
}

fn begins_with_index(path: &str) -> bool {
    path.strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .is_some_and(|(index, _)| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_others_is_neither_in_the_manifest_nor_owned_by_us() {
        let manifest = json!({"spec": {"size": 2, "ports": [{"port": 80}]}, "data": {"a.b": "1"}});
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
        let live = json!({"metadata": {"managedFields": [
            entry("applyset", json!({"f:spec": {"f:size": {}, "f:left": {}}})),
            entry("others", json!({"f:spec": {"f:extra": {}, "f:whole": {}, "f:size": {}}, "f:data": {"f:c.d": {}}})),
            {"manager": "autoscaler", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "kubelet", "subresource": "status", "fieldsV1": {"f:spec": {"f:free": {}}}},
        ]}});
        let ours = BTreeSet::from(["applyset"]);
        let other_owners = Some(vec!["others".to_owned()]);
        for (path, expected) in [
            ("spec.extra", &other_owners),
            ("spec.whole.part[0]", &other_owners),
            ("data[c.d]", &other_owners),
            ("spec.replicas", &Some(vec!["autoscaler".to_owned()])),
            // In the manifest.
            ("spec", &None),
            ("spec.size", &None),
            ("spec.ports[0].port", &None),
            ("spec.ports[7].name", &None),
            ("data[a.b]", &None),
            // It left the manifest.
            ("spec.left", &None),
            // A default, or a status.
            ("spec.clusterIPs[0]", &None),
            ("spec.free", &None),
            ("<nil>", &None),
            ("", &None),
        ] {
            assert_eq!(
                owners_if_only_others(path, &manifest, &live, &ours),
                *expected,
                "{path}"
            );
        }
    }
}
