//! The kinds of Kubernetes that kstatus has a rule for, each with the function that applies it.

use super::object::Object;
use super::once_written::has_only_content;
use super::{Jobs, Readiness, other_built_in_kinds, pod, workloads};
use crate::model::identity::GroupKind;

/// The groups that Kubernetes serves itself. Others below `k8s.io` are custom resources.
const BUILT_IN_GROUPS: [&str; 23] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Returns whether Kubernetes serves this group itself.
pub(super) fn is_built_in_group(group: &str) -> bool {
    BUILT_IN_GROUPS.contains(&group)
}

/// Applies the rule of kstatus for a kind; `None` if there is none.
pub(super) fn readiness(object: Object, group_kind: &GroupKind, jobs: Jobs) -> Option<Readiness> {
    let group = group_kind.group.as_str();
    Some(match (group, group_kind.kind.as_str()) {
        ("", "Pod") => pod::readiness(object),
        ("", "Service") => other_built_in_kinds::service(object),
        ("", "PersistentVolumeClaim") => other_built_in_kinds::persistent_volume_claim(object),
        _ if has_only_content(group_kind) => Readiness::current("it exists"),
        ("batch", "CronJob") => Readiness::current("it exists"),
        ("apps" | "extensions", "Deployment") => workloads::deployment(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workloads::daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") => workloads::replica_set(object),
        ("batch", "Job") => workloads::job(object, jobs),
        ("policy", "PodDisruptionBudget") => other_built_in_kinds::disruption_budget(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            other_built_in_kinds::custom_resource_definition(object)
        }
        _ => return None,
    })
}
