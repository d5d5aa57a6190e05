//! The entries of managedFields, each with a field set (`FieldsV1`), and the writers of an object
//! that they show.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{CLIENT_SIDE_APPLY, LAST_APPLIED};
use crate::compare::field_paths::has_other_fields;

/// The key of `stringData` in a field set. The server records an apply of `stringData` under this key, and not under
/// `data`, into which it writes the values.
pub(super) const STRING_DATA: &str = "f:stringData";

/// Returns the entries that metadata has.
pub(in crate::compare) fn entries(metadata: &Value) -> &[Value] {
    metadata["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the entry of `manager` for server-side apply of the object, not of a subresource.
pub(in crate::compare) fn apply_entry<'m>(metadata: &'m Value, manager: &str) -> Option<&'m Value> {
    entries(metadata).iter().find(|entry| is_apply_of(entry, manager))
}

/// Returns whether `manager` has written an entry by server-side apply of the object, not of a subresource.
pub(in crate::compare) fn is_apply_of(entry: &Value, manager: &str) -> bool {
    entry["manager"] == manager && is_apply(entry)
}

/// Returns whether an entry was written by server-side apply of the object, not of a subresource.
pub(super) fn is_apply(entry: &Value) -> bool {
    entry["operation"] == "Apply" && is_not_of_subresource(entry)
}

/// Returns whether an entry was written by client-side apply.
pub(super) fn is_client_side_apply(entry: &Value) -> bool {
    entry["manager"] == CLIENT_SIDE_APPLY && entry["operation"] == "Update" && is_not_of_subresource(entry)
}

/// Returns whether an entry was written through the object itself, not a subresource.
pub(super) fn is_not_of_subresource(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}

/// Returns the field managers that own a field of the object outside of its metadata and its status; each once, sorted.
pub fn content_writers(metadata: &Value) -> Vec<String> {
    managers(entries(metadata).iter().filter(|entry| {
        is_not_of_subresource(entry) && has_other_fields(&entry["fieldsV1"], &["f:metadata"])
    }))
}

/// Returns the field managers that own one of these annotations; each once, sorted.
pub fn annotation_writers(metadata: &Value, annotations: &[&str]) -> Vec<String> {
    managers(entries(metadata).iter().filter(|entry| {
        let owned = &entry["fieldsV1"]["f:metadata"]["f:annotations"];
        annotations
            .iter()
            .any(|annotation| owned.get(format!("f:{annotation}")).is_some())
    }))
}

/// Returns the field managers of these entries; each once, sorted.
fn managers<'e>(entries: impl Iterator<Item = &'e Value>) -> Vec<String> {
    entries
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
        .collect::<BTreeSet<String>>()
        .into_iter()
        .collect()
}

/// Returns whether this field manager has created the object by server-side apply and not changed it since. Times count
/// seconds, so a change in the second of the creation is not noticed. The run that created the object cannot be seen.
pub fn was_created_and_not_changed_by(metadata: &Value, manager: &str) -> bool {
    let created = &metadata["creationTimestamp"];
    created.is_string()
        && entries(metadata)
            .iter()
            .any(|entry| is_apply_of(entry, manager) && entry["time"] == *created)
}

/// Returns whether any manager has applied the object, client-side or server-side. Only the annotation and the entries
/// show that: a controller may have copied the labels of another object.
pub(super) fn was_applied(metadata: &Value) -> bool {
    metadata["annotations"].get(LAST_APPLIED).is_some() || entries(metadata).iter().any(is_apply)
}

/// Field managers of kubectl's commands that only create objects (`AddFieldManagerFlagVar` in kubectl 1.36). A person
/// created an object with such an entry, even if controllers have changed it since.
const CREATING_COMMANDS: [&str; 5] = [
    "kubectl-autoscale",
    "kubectl-create",
    "kubectl-debug",
    "kubectl-expose",
    "kubectl-run",
];

/// Field managers of kubectl's commands that change existing objects. They do not show who created an object. A command
/// without a manager of its own writes as `kubectl`.
const CHANGING_COMMANDS: [&str; 12] = [
    "kubectl",
    "kubectl.exe",
    "kubectl-annotate",
    "kubectl-client-side-apply",
    "kubectl-edit",
    "kubectl-label",
    "kubectl-last-applied",
    "kubectl-patch",
    "kubectl-replace",
    "kubectl-rollout",
    "kubectl-set",
    "kubectl-taint",
];

/// The creator of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Creator {
    /// A person, with one of kubectl's commands or by applying it.
    Person,
    /// One of these field managers, none of which is an applier or a command of kubectl. Empty if no manager is known.
    Others(Vec<String>),
}

/// Returns the creator of an object. `appliers_to_ignore` are field managers under which part-of labels are
/// written: they do not show the creator either.
///
/// A controller's object stays a controller's if a person labels it. An object that both have changed
/// counts as the controller's, unless it has an entry of a creating command.
pub fn creator(metadata: &Value, appliers_to_ignore: &BTreeSet<String>) -> Creator {
    if was_applied(metadata) {
        return Creator::Person;
    }
    let managers: BTreeSet<&str> = entries(metadata)
        .iter()
        .filter(|entry| is_not_of_subresource(entry))
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    if managers.iter().any(|manager| CREATING_COMMANDS.contains(manager)) {
        return Creator::Person;
    }
    let controllers = managers
        .iter()
        .filter(|manager| !CHANGING_COMMANDS.contains(manager) && !appliers_to_ignore.contains(**manager))
        .map(|manager| (*manager).to_owned())
        .collect::<Vec<_>>();
    if controllers.is_empty() && managers.iter().any(|manager| CHANGING_COMMANDS.contains(manager)) {
        Creator::Person
    } else {
        Creator::Others(controllers)
    }
}

/// Returns the union of these field sets; `None` if there is none.
pub(super) fn unite_all(fields: impl Iterator<Item = Value>) -> Option<Value> {
    fields.reduce(|one, other| union(&one, &other))
}

/// Returns the union of two field sets. An empty node owns its path; a node with children
/// owns its path only if it has the child `.`.
pub(super) fn union(one: &Value, other: &Value) -> Value {
    let empty = Map::new();
    let one = one.as_object().unwrap_or(&empty);
    let other = other.as_object().unwrap_or(&empty);
    let mut merged = one.clone();
    if one.is_empty() != other.is_empty() {
        merged.insert(".".to_owned(), json!({}));
    }
    for (key, child) in other {
        let merged_child = match one.get(key) {
            Some(first_child) if key != "." => union(first_child, child),
            _ => child.clone(),
        };
        merged.insert(key.clone(), merged_child);
    }
    Value::Object(merged)
}

/// Moves the keys of `stringData` in a field set below `data`, where the server stores the values. Returns whether the
/// field set had `stringData`.
pub(super) fn move_string_data_keys(fields: &mut Value) -> bool {
    let Some(fields) = fields.as_object_mut() else {
        return false;
    };
    let Some(string_data) = fields.remove(STRING_DATA) else {
        return false;
    };
    if string_data.as_object().is_some_and(|keys| !keys.is_empty()) {
        let data = match fields.get("f:data") {
            Some(data) => union(data, &string_data),
            None => string_data,
        };
        fields.insert("f:data".to_owned(), data);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ownership::APPLIERS;

    #[test]
    fn an_object_is_made_by_who_applied_it_when_it_was_created() {
        let made = |created: &str, manager: &str, operation: &str, time: &str| {
            let entry = json!({"manager": manager, "operation": operation, "time": time});
            was_created_and_not_changed_by(
                &json!({"creationTimestamp": created, "managedFields": [entry]}),
                "us",
            )
        };
        let then = "2026-01-01T00:00:00Z";
        let later = "2026-01-01T00:00:01Z";
        assert!(made(then, "us", "Apply", then));
        assert!(!made(then, "us", "Apply", later));
        assert!(!made(then, "us", "Update", then));
        assert!(!made(then, "them", "Apply", then));
        assert!(!was_created_and_not_changed_by(&json!({}), "us"));
    }

    #[test]
    fn fields_are_united_by_path() {
        let table = [
            (
                json!({"f:a": {}}),
                json!({"f:b": {}}),
                json!({"f:a": {}, "f:b": {}}),
            ),
            (json!({"f:a": {}}), json!({"f:a": {}}), json!({"f:a": {}})),
            (
                json!({"f:a": {}}),
                json!({"f:a": {"f:b": {}}}),
                json!({"f:a": {".": {}, "f:b": {}}}),
            ),
            (
                json!({"f:a": {".": {}, "f:b": {}}}),
                json!({"f:a": {"f:c": {}}}),
                json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}}),
            ),
        ];
        for (one, other, united) in table {
            assert_eq!(union(&one, &other), united);
            assert_eq!(union(&other, &one), united);
        }
    }

    #[test]
    fn who_applies_leaves_a_trace() {
        let table = [
            (json!({}), false),
            (json!({"annotations": {(LAST_APPLIED): "{}"}}), true),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Apply", "fieldsV1": {}}]}),
                true,
            ),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Update", "fieldsV1": {}}]}),
                false,
            ),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Apply", "subresource": "status"}]}),
                false,
            ),
        ];
        for (metadata, expected) in table {
            assert_eq!(was_applied(&metadata), expected, "{metadata}");
        }
    }

    #[test]
    fn people_use_kubectl_and_controllers_do_not() {
        let person = || Creator::Person;
        let controllers =
            |names: &[&str]| Creator::Others(names.iter().map(|&name| name.to_owned()).collect());
        let table: [(&[&str], Creator); 16] = [
            (&["kubectl-create"], person()),
            (&["kubectl-run", "kube-scheduler"], person()),
            (&["kubectl-create", "kube-controller-manager"], person()),
            (&["kubectl-expose", "kubectl-label"], person()),
            (&["kubectl-label"], person()),
            (&["kubectl-edit", "kubectl-annotate", "kubectl-set"], person()),
            (&["kubectl"], person()),
            (&["kubectl-replace", "applyset"], person()),
            (&["applyset"], controllers(&[])),
            (&[], controllers(&[])),
            (
                &["kube-controller-manager"],
                controllers(&["kube-controller-manager"]),
            ),
            (
                &["kubectl-label", "kube-controller-manager"],
                controllers(&["kube-controller-manager"]),
            ),
            (&["kubectl-edit", "my-operator"], controllers(&["my-operator"])),
            (&["helm", "kubectl-label"], controllers(&["helm"])),
            (&["kubectl-made-up"], controllers(&["kubectl-made-up"])),
            (&["b", "a"], controllers(&["a", "b"])),
        ];
        let appliers = APPLIERS.map(str::to_owned).into();
        for (managers, expected) in table {
            let entry = |manager: &&str| json!({"manager": manager, "operation": "Update", "fieldsV1": {}});
            let metadata = json!({"managedFields": managers.iter().map(entry).collect::<Vec<_>>()});
            assert_eq!(creator(&metadata, &appliers), expected, "{managers:?}");
        }
    }

    #[test]
    fn an_applied_object_is_a_persons_and_a_status_shows_nothing() {
        let no_appliers = BTreeSet::new();
        let entry = |manager: &str, operation: &str, subresource: &str| json!({"manager": manager, "operation": operation, "subresource": subresource});
        let table = [
            (entry("helm", "Apply", ""), Creator::Person),
            (
                entry("helm", "Update", ""),
                Creator::Others(vec!["helm".to_owned()]),
            ),
            (entry("kubelet", "Update", "status"), Creator::Others(Vec::new())),
            (entry("kubectl", "Update", "scale"), Creator::Others(Vec::new())),
        ];
        for (entry, expected) in table {
            let metadata = json!({"managedFields": [entry]});
            assert_eq!(creator(&metadata, &no_appliers), expected, "{metadata}");
        }
    }
}
