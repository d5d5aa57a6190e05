//! The number of replicas that an apply would drop, which autoscalers write through the subresource `scale`. Which kinds
//! are autoscalers, and what they target, is in `plan/autoscalers`; `read_autoscalers` looks for them.
//!
//! If the field leaves a manifest and no other manager owns it, server-side apply removes the field, and the server
//! fills in the default: one replica.

use std::fmt;

use serde_json::{Value, json};

use super::managed_fields::{entries, is_apply_of};
use super::migration::{OwnershipMigration, migrated_managed_fields};
use crate::compare::field_paths::contains_or_owns_whole;
use crate::model::pointer::Pointer;

/// The place of the number of replicas in an object: `spec.replicas`, or as a CRD says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicasPath(Vec<String>);

impl fmt::Display for ReplicasPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl ReplicasPath {
    /// Returns `spec.replicas`, the path in built-in kinds.
    pub fn spec_replicas() -> Self {
        Self(vec!["spec".to_owned(), "replicas".to_owned()])
    }

    /// Returns the path in a version of a CRD (`specReplicasPath`); `spec.replicas` without a CRD. The API server accepts
    /// only names of fields separated by dots.
    pub fn from_definition(custom_resource_definition: Option<&Value>, version: &str) -> Self {
        let path = custom_resource_definition.and_then(|definition| {
            definition
                .pointer("/spec/versions")?
                .as_array()?
                .iter()
                .find(|crd_version| crd_version["name"] == version)?
                .pointer("/subresources/scale/specReplicasPath")?
                .as_str()
        });
        let names: Vec<String> = path
            .unwrap_or_default()
            .split('.')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            Self::spec_replicas()
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

    /// Returns the same place as a JSON pointer.
    pub fn pointer(&self) -> Pointer {
        Pointer::from_segments(self.0.iter().cloned())
    }

    /// Returns whether an entry of managedFields owns the field, or as a whole a value that the field is in.
    fn is_owned_by(&self, entry: &Value) -> bool {
        let keys: Vec<String> = self.0.iter().map(|name| format!("f:{name}")).collect();
        entry["fieldsV1"]
            .as_object()
            .is_some_and(|fields| contains_or_owns_whole(fields, keys.iter().map(String::as_str)))
    }
}

/// Returns the number of replicas that an apply of `manifest` over `live` would remove, because the manifest lacks the
/// field and only our manager owns it; `None` otherwise. Fields of the `former` owners count as ours, because the run
/// moves them to our manager before.
pub fn dropped_replicas(
    manifest: &Value,
    live: &Value,
    path: &ReplicasPath,
    former: &OwnershipMigration,
) -> Option<Value> {
    if path.value_in(manifest).is_some() {
        return None;
    }
    let value = path.value_in(live).filter(|value| !value.is_null())?;
    let metadata = &live["metadata"];
    let migrated_metadata =
        migrated_managed_fields(metadata, former).map(|entries| json!({"managedFields": entries}));
    let owners: Vec<&Value> = entries(migrated_metadata.as_ref().unwrap_or(metadata))
        .iter()
        .filter(|entry| path.is_owned_by(entry))
        .collect();
    let is_ours = !owners.is_empty() && owners.iter().all(|entry| is_apply_of(entry, former.manager));
    is_ours.then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ownership::{CLIENT_SIDE_APPLY, LastAppliedTreatment};

    const FORMER: OwnershipMigration = OwnershipMigration {
        manager: "applyset",
        tool: None,
        writers: &[],
        last_applied: LastAppliedTreatment::Moved,
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
    fn a_field_is_dropped_only_if_nothing_else_keeps_it() {
        let ours = || entry("applyset", "Apply", "");
        let dropped = || Some(json!(5));
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
            (vec![entry("applyset", "Update", "")], None),
        ];
        let path = ReplicasPath::spec_replicas();
        for (entries, expected) in table {
            let live = live(&entries);
            let without = dropped_replicas(&json!({"spec": {}}), &live, &path, &FORMER);
            assert_eq!(without, expected, "{live}");
            let with = json!({"spec": {"replicas": 3}});
            assert_eq!(dropped_replicas(&with, &live, &path, &FORMER), None, "{live}");
        }
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
            assert_eq!(
                ReplicasPath::from_definition(definition.as_ref(), "v1").to_string(),
                expected
            );
        }
        let path = ReplicasPath::from_definition(Some(&scaled(".spec.size.nodes")), "v1");
        let object = json!({"spec": {"size": {"nodes": 4}}});
        assert_eq!(path.value_in(&object), Some(&json!(4)));
        assert_eq!(path.pointer().to_string(), "/spec/size/nodes");
    }
}
