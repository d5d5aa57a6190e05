//! The status of built-in kinds, by the rules of kstatus. Pods and workloads have files of their own.

use super::object::ObjectView;
use super::{JobGoal, Readiness, pod, workloads};
use crate::model::identity::GroupKind;

/// The groups that Kubernetes serves itself. Kinds of other groups that end with `k8s.io` are custom resources.
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

/// The rule of kstatus for a kind.
pub(super) enum KindRule {
    /// Objects of the kind only hold data, and are Current when they exist. So a wait need not read them.
    HoldsData,
    /// Objects of the kind are Current for this reason: `StatusRules` has compared `observedGeneration` and looked for
    /// signs of deletion before.
    Current(&'static str),
    /// The status of the object decides.
    Status(fn(ObjectView<'_>) -> Readiness),
    Job,
}

/// Applies the rule of kstatus for a kind; `None` if kstatus has no rule for it.
pub(super) fn judge(object: ObjectView, group_kind: &GroupKind, jobs: JobGoal) -> Option<Readiness> {
    Some(match rule_of_kind(group_kind)? {
        KindRule::HoldsData => Readiness::current("it exists"),
        KindRule::Current(reason) => Readiness::current(reason),
        KindRule::Status(judge) => judge(object),
        KindRule::Job => workloads::judge_job(object, jobs),
    })
}

pub(super) fn rule_of_kind(group_kind: &GroupKind) -> Option<KindRule> {
    Some(match (group_kind.group.as_str(), group_kind.kind.as_str()) {
        ("", "Pod") => KindRule::Status(pod::judge),
        ("", "Service") => KindRule::Status(judge_service),
        ("", "PersistentVolumeClaim") => KindRule::Status(judge_persistent_volume_claim),
        ("", "ConfigMap" | "Secret") => KindRule::HoldsData,
        ("batch", "CronJob") => KindRule::Current("it exists"),
        ("apps" | "extensions", "Deployment") => KindRule::Status(workloads::judge_deployment),
        ("apps", "StatefulSet") => KindRule::Status(workloads::judge_stateful_set),
        ("apps" | "extensions", "DaemonSet") => KindRule::Status(workloads::judge_daemon_set),
        ("apps" | "extensions", "ReplicaSet") => KindRule::Status(workloads::judge_replica_set),
        ("batch", "Job") => KindRule::Job,
        // `status.observedGeneration` was compared before, and the controller reports no other progress.
        ("policy", "PodDisruptionBudget") => KindRule::Current("its allowed disruptions have been computed"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => KindRule::Status(judge_crd),
        _ => return None,
    })
}

/// Judges a Service as kstatus does: one of type `LoadBalancer` is Current once it has a cluster IP,
/// even before it has a load balancer.
fn judge_service(object: ObjectView) -> Readiness {
    let is_of_load_balancer_type = object.text("/spec/type") == Some("LoadBalancer");
    if is_of_load_balancer_type && object.text("/spec/clusterIP").is_none() {
        return Readiness::in_progress("it has no address yet");
    }
    Readiness::current("it exists")
}

fn judge_persistent_volume_claim(object: ObjectView) -> Readiness {
    match object.text("/status/phase") {
        Some("Bound") => Readiness::current("it is bound"),
        phase => Readiness::in_progress(format!("it is {}, not bound", phase.unwrap_or("unknown"))),
    }
}

fn judge_crd(object: ObjectView) -> Readiness {
    if let Some(names) = object
        .condition("NamesAccepted")
        .filter(|names| names.status == "False")
    {
        return Readiness::failed(names.to_string());
    }
    match object.condition("Established") {
        Some(established) if established.status == "True" => Readiness::current("it is established"),
        Some(established) if established.status == "False" && established.reason != "Installing" => {
            Readiness::failed(established.to_string())
        }
        _ => Readiness::in_progress("it is not established yet"),
    }
}
