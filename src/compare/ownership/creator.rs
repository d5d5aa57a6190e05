//! The creator of an object according to its field ownership: a person or a controller.

use std::collections::BTreeSet;

use serde_json::Value;

use super::managed_fields::{entries, is_whole_object, was_applied};

/// Field managers of kubectl's commands that only create. A person created an object with such an
/// entry, even if controllers have written to it since (`AddFieldManagerFlagVar` in kubectl 1.36).
const CREATING: [&str; 5] = [
    "kubectl-autoscale",
    "kubectl-create",
    "kubectl-debug",
    "kubectl-expose",
    "kubectl-run",
];

/// Field managers of kubectl's commands that change existing objects. They do not show who created an
/// object; a command without a manager of its own writes as `kubectl`.
const CHANGING: [&str; 12] = [
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
    /// One of these field managers, which are neither of these. Empty if no manager is known.
    Others(Vec<String>),
}

/// Returns the creator of an object. `appliers` are field managers under which part-of labels are
/// written: they do not show the creator either.
///
/// A controller's object stays a controller's if a person labels it. An object that both have changed
/// counts as the controller's, unless it has an entry of a creating command.
pub fn creator(metadata: &Value, appliers: &BTreeSet<String>) -> Creator {
    if was_applied(metadata) {
        return Creator::Person;
    }
    let managers: BTreeSet<&str> = entries(metadata)
        .iter()
        .filter(|entry| is_whole_object(entry))
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    if managers.iter().any(|manager| CREATING.contains(manager)) {
        return Creator::Person;
    }

    let others = managers
        .iter()
        .filter(|manager| !CHANGING.contains(manager) && !appliers.contains(**manager))
        .map(|manager| (*manager).to_owned())
        .collect::<Vec<_>>();
    if others.is_empty() && managers.iter().any(|manager| CHANGING.contains(manager)) {
        Creator::Person
    } else {
        Creator::Others(others)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare::ownership::APPLIERS;

    #[test]
    fn people_use_kubectl_and_controllers_do_not() {
        let person = || Creator::Person;
        let others = |names: &[&str]| Creator::Others(names.iter().map(|&name| name.to_owned()).collect());
        let table: [(&[&str], Creator); 16] = [
            (&["kubectl-create"], person()),
            (&["kubectl-run", "kube-scheduler"], person()),
            (&["kubectl-create", "kube-controller-manager"], person()),
            (&["kubectl-expose", "kubectl-label"], person()),
            (&["kubectl-label"], person()),
            (&["kubectl-edit", "kubectl-annotate", "kubectl-set"], person()),
            (&["kubectl"], person()),
            (&["kubectl-replace", "applyset"], person()),
            (&["applyset"], others(&[])),
            (&[], others(&[])),
            (&["kube-controller-manager"], others(&["kube-controller-manager"])),
            (
                &["kubectl-label", "kube-controller-manager"],
                others(&["kube-controller-manager"]),
            ),
            (&["kubectl-edit", "my-operator"], others(&["my-operator"])),
            (&["helm", "kubectl-label"], others(&["helm"])),
            (&["kubectl-made-up"], others(&["kubectl-made-up"])),
            (&["b", "a"], others(&["a", "b"])),
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
