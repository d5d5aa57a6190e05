//! The ownership of the number of replicas, which autoscalers write through the subresource `scale`.
//!
//! If that field leaves a manifest and no other manager owns it, server-side apply removes it, and the
//! server fills in its default: one replica. A run hands such a field over to [`HANDOVER_FIELD_MANAGER`]
//! with its live value first. Once an autoscaler writes another value, the field belongs to that
//! autoscaler, and the entry of the hand-over disappears by itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::managed_fields::{entries, is_apply_of};
use super::migration::{Former, LastApplied, migrated};

/// The field manager that owns the number of replicas between its manifest and its autoscaler.
pub const HANDOVER_FIELD_MANAGER: &str = "applyset-handover";

/// The place of the number of replicas in an object: `spec.replicas`, or as a CRD says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicasPath(Vec<String>);

/// What a run does about the number of replicas.
#[derive(Debug, Clone, PartialEq)]
pub enum Replicas {
    /// The field has left the manifest, and only our manager owns it: an apply would remove this value.
    Dropped(Value),
    /// The same, but it has been handed over already: this value stays.
    HandedOver(Value),
    /// The field is in the manifest, and a hand-over still owns it.
    Returned,
}

impl Default for ReplicasPath {
    fn default() -> Self {
        Self(vec!["spec".to_owned(), "replicas".to_owned()])
    }
}

impl fmt::Display for ReplicasPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl ReplicasPath {
    /// Returns the path in a version of a CRD (`specReplicasPath`); the default without a CRD. The API
    /// server accepts only names of fields separated by dots.
    pub fn of(custom_resource_definition: Option<&Value>, version: &str) -> Self {
        let path = custom_resource_definition.and_then(|definition| {
            let mut versions = definition.pointer("/spec/versions")?.as_array()?.iter();
            let version = versions.find(|known| known["name"] == version)?;
            version.pointer("/subresources/scale/specReplicasPath")?.as_str()
        });
        let names = path.map(|path| path.split('.').filter(|name| !name.is_empty()));
        let names: Vec<String> = names.into_iter().flatten().map(str::to_owned).collect();
        if names.is_empty() {
            Self::default()
        } else {
            Self(names)
        }
    }

    /// Returns the name of the field itself.
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Returns the value at this path.
    pub fn value_in<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, name| value.get(name))
    }

    /// Sets the value at this path.
    pub fn set(&self, object: &mut Value, value: &Value) {
        let mut place = object;
        for name in &self.0 {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[name.as_str()];
        }
        *place = value.clone();
    }

    /// Returns whether an entry of managedFields owns the field, by itself or with what it is in.
    fn is_owned_by(&self, entry: &Value) -> bool {
        let mut node = &entry["fieldsV1"];
        for name in &self.0 {
            match node.get(format!("f:{name}")) {
                Some(child) => node = child,
                None => return false,
            }
            if node.as_object().is_some_and(Map::is_empty) {
                return true;
            }
        }
        true
    }
}

/// Returns what a run that applies `manifest` over `live` does about its number of replicas; `None` if
/// nothing. Fields of the `former` owners count as those of our manager, since the run takes them.
pub fn replicas(manifest: &Value, live: &Value, path: &ReplicasPath, former: &Former) -> Option<Replicas> {
    let metadata = &live["metadata"];
    let is_handover = |entry: &Value| is_apply_of(entry, HANDOVER_FIELD_MANAGER);
    if path.value_in(manifest).is_some() {
        let is_left = entries(metadata)
            .iter()
            .any(|entry| is_handover(entry) && path.is_owned_by(entry));
        return is_left.then_some(Replicas::Returned);
    }
    let value = path.value_in(live).filter(|value| !value.is_null())?.clone();
    let moved = migrated(metadata, former).map(|moved| json!({"managedFields": moved}));
    let owners = entries(moved.as_ref().unwrap_or(metadata)).iter();
    let owners: Vec<&Value> = owners.filter(|entry| path.is_owned_by(entry)).collect();
    let is_ours = |entry: &Value| is_apply_of(entry, former.manager);
    if !owners.iter().any(|entry| is_ours(entry)) {
        return None;
    }
    if owners.iter().all(|entry| is_ours(entry)) {
        return Some(Replicas::Dropped(value));
    }
    let is_between = owners.iter().all(|entry| is_ours(entry) || is_handover(entry));
    is_between.then_some(Replicas::HandedOver(value))
}

/// Returns a JSON patch that gives to `manager` what the hand-over owns; `None` if that is nothing. No
/// value changes. The patch is bound to the resourceVersion of `metadata`.
pub fn take_back(metadata: &Value, manager: &str) -> Option<Value> {
    let mut handed_over = metadata.clone();
    // Client-side apply has its own way, with its own precautions.
    let entries = handed_over["managedFields"].as_array_mut()?;
    let others: Vec<Value> = entries
        .extract_if(.., |entry| {
            !is_apply_of(entry, HANDOVER_FIELD_MANAGER) && !is_apply_of(entry, manager)
        })
        .collect();
    let former = Former {
        manager,
        tool: Some(HANDOVER_FIELD_MANAGER),
        writers: &[],
        last_applied: LastApplied::LeftToItsOwner,
    };
    let ours = migrated(&handed_over, &former)?;
    let entries: Vec<Value> = others
        .into_iter()
        .chain(ours.as_array().into_iter().flatten().cloned())
        .collect();
    Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ownership::CLIENT_SIDE_APPLY;

    const FORMER: Former = Former {
        manager: "applyset",
        tool: None,
        writers: &[],
        last_applied: LastApplied::Moved,
    };

    fn entry(manager: &str, operation: &str, subresource: &str) -> Value {
        json!({
            "manager": manager, "operation": operation, "subresource": subresource,
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        })
    }

    fn live(entries: &[Value]) -> Value {
        json!({"metadata": {"resourceVersion": "7", "managedFields": entries}, "spec": {"replicas": 5}})
    }

    #[test]
    fn a_field_is_handed_over_only_if_nothing_else_keeps_it() {
        let ours = || entry("applyset", "Apply", "");
        let dropped = || Some(Replicas::Dropped(json!(5)));
        let table = [
            (vec![ours()], dropped()),
            (vec![], None),
            (vec![entry("other", "Apply", "")], None),
            (vec![ours(), entry("other", "Apply", "")], None),
            (vec![ours(), entry("kubectl", "Update", "")], None),
            (vec![ours(), entry("kubectl", "Update", "scale")], None),
            (
                vec![ours(), entry("kube-controller-manager", "Update", "scale")],
                None,
            ),
            // The run takes what client-side apply owns.
            (vec![entry(CLIENT_SIDE_APPLY, "Update", "")], dropped()),
            (vec![ours(), entry(CLIENT_SIDE_APPLY, "Update", "")], dropped()),
            (
                vec![ours(), entry(HANDOVER_FIELD_MANAGER, "Apply", "")],
                Some(Replicas::HandedOver(json!(5))),
            ),
            (vec![entry(HANDOVER_FIELD_MANAGER, "Apply", "")], None),
            (vec![entry("applyset", "Update", "")], None),
        ];
        let path = ReplicasPath::default();
        for (entries, expected) in table {
            let live = live(&entries);
            assert_eq!(
                replicas(&json!({"spec": {}}), &live, &path, &FORMER),
                expected,
                "{live}"
            );
        }
    }

    #[test]
    fn a_field_that_returns_is_taken_back_from_the_hand_over_alone() {
        let path = ReplicasPath::default();
        let manifest = json!({"spec": {"replicas": 3}});
        let others = [
            entry("other", "Apply", ""),
            entry(CLIENT_SIDE_APPLY, "Update", ""),
        ];
        let without = live(&others);
        assert_eq!(replicas(&manifest, &without, &path, &FORMER), None);
        assert_eq!(take_back(&without["metadata"], "applyset"), None);
        let mut entries = others.to_vec();
        entries.push(entry(HANDOVER_FIELD_MANAGER, "Apply", ""));
        let with = live(&entries);
        assert_eq!(
            replicas(&manifest, &with, &path, &FORMER),
            Some(Replicas::Returned)
        );
        let patch = take_back(&with["metadata"], "applyset").expect("an entry");
        let left = patch[0]["value"].as_array().expect("entries");
        let names: Vec<&Value> = left.iter().map(|entry| &entry["manager"]).collect();
        assert_eq!(names, ["other", CLIENT_SIDE_APPLY, "applyset"]);
        assert!(path.is_owned_by(&left[2]));
        assert_eq!(patch[1]["value"], "7");
    }

    #[test]
    fn the_path_is_that_of_the_definition() {
        let scaled = |path: &str| {
            json!({"spec": {"versions": [
                {"name": "v1", "subresources": {"scale": {"specReplicasPath": path}}},
            ]}})
        };
        let table = [
            (None, "spec.replicas"),
            (Some(scaled(".spec.size.nodes")), "spec.size.nodes"),
            (Some(scaled("")), "spec.replicas"),
            (Some(json!({})), "spec.replicas"),
        ];
        for (definition, expected) in table {
            assert_eq!(ReplicasPath::of(definition.as_ref(), "v1").to_string(), expected);
        }
        let path = ReplicasPath::of(Some(&scaled(".spec.size.nodes")), "v1");
        let mut object = json!({"metadata": {}});
        path.set(&mut object, &json!(4));
        assert_eq!(object, json!({"metadata": {}, "spec": {"size": {"nodes": 4}}}));
        assert_eq!(path.value_in(&object), Some(&json!(4)));
    }
}
