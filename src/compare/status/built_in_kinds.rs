//! The kinds of Kubernetes that kstatus has a rule for, each with the function that applies it, and the kinds
//! whose objects are Current as soon as they are written. Pods and workloads have files of their own.

use serde_json::Value;

use super::object::ObjectView;
use super::{BuiltInRules, Jobs, Readiness, RuleSet, StatusRules, pod, workloads};
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;

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
pub(super) fn readiness(object: ObjectView, group_kind: &GroupKind, jobs: Jobs) -> Option<Readiness> {
    let group = group_kind.group.as_str();
    Some(match (group, group_kind.kind.as_str()) {
        ("", "Pod") => pod::readiness(object),
        ("", "Service") => service(object),
        ("", "PersistentVolumeClaim") => persistent_volume_claim(object),
        _ if has_only_content(group_kind) => Readiness::current("it exists"),
        ("batch", "CronJob") => Readiness::current("it exists"),
        ("apps" | "extensions", "Deployment") => workloads::deployment(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workloads::daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") => workloads::replica_set(object),
        ("batch", "Job") => workloads::job(object, jobs),
        ("policy", "PodDisruptionBudget") => disruption_budget(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition(object),
        _ => return None,
    })
}

/// Requires only the address: kstatus does not wait for the load balancer.
fn service(object: ObjectView) -> Readiness {
    let is_balanced = object.text("/spec/type") == Some("LoadBalancer");
    if is_balanced && object.text("/spec/clusterIP").is_none() {
        return Readiness::in_progress("it has no address yet");
    }
    Readiness::current("it exists")
}

fn persistent_volume_claim(object: ObjectView) -> Readiness {
    match object.text("/status/phase") {
        Some("Bound") => Readiness::current("it is bound"),
        phase => Readiness::in_progress(format!("it is {}, not bound", phase.unwrap_or("unknown"))),
    }
}

/// Treats any budget as Current: `status.observedGeneration` is compared before, and its controller
/// reports no other progress.
fn disruption_budget(_: ObjectView) -> Readiness {
    Readiness::current("its allowed disruptions have been computed")
}

fn custom_resource_definition(object: ObjectView) -> Readiness {
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

/// What a write did with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It did not exist before.
    Created,
    /// It existed.
    Changed,
}

impl StatusRules {
    /// Returns whether objects of a kind are Current as soon as they are written, whatever else happens:
    /// no rule judges them, and they have no status. An object that is changed may carry signs that no
    /// subresource holds, so this is known of custom kinds only for new objects.
    pub fn are_current_once_written(
        &self,
        group_kind: &GroupKind,
        subresource: Subresource,
        written: Written,
    ) -> bool {
        if subresource == Subresource::Listed || self.own.as_ref().is_some_and(|own| own.covers(group_kind)) {
            return false;
        }
        if is_built_in_group(&group_kind.group) {
            return readiness(ObjectView(&Value::Null), group_kind, self.jobs)
                .is_none_or(|_| has_only_content(group_kind));
        }
        let is_ruled = self.built_in == BuiltInRules::Used && RuleSet::built_in().covers(group_kind);
        written == Written::Created && !is_ruled
    }
}

/// Returns whether objects of a kind of Kubernetes are read by others, and have no state of their own.
fn has_only_content(group_kind: &GroupKind) -> bool {
    let (group, kind) = (group_kind.group.as_str(), group_kind.kind.as_str());
    matches!((group, kind), ("", "ConfigMap" | "Secret"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nothing_reports_on_needs_no_look() {
        use Subresource::{Listed, Unlisted};
        use Written::{Changed, Created};
        let table = [
            ("", "ConfigMap", Unlisted, Changed, true),
            ("", "Secret", Unlisted, Created, true),
            ("", "ServiceAccount", Unlisted, Changed, true),
            ("rbac.authorization.k8s.io", "Role", Unlisted, Changed, true),
            ("apps", "Deployment", Listed, Created, false),
            // Discovery was not asked.
            ("apps", "Deployment", Unlisted, Created, false),
            ("batch", "Job", Unlisted, Created, false),
            ("networking.k8s.io", "Ingress", Listed, Changed, false),
            ("example.com", "Widget", Unlisted, Created, true),
            // What wrote it before may have left signs.
            ("example.com", "Widget", Unlisted, Changed, false),
            ("example.com", "Widget", Listed, Created, false),
        ];
        for (group, kind, subresource, written, expected) in table {
            let needs_none = StatusRules::default().are_current_once_written(
                &GroupKind::new(group, kind),
                subresource,
                written,
            );
            assert_eq!(needs_none, expected, "{kind} {subresource:?} {written:?}");
        }
        let own = "- apiVersion: example.com/v1\n  kind: Widget\n  current: object.spec.size > 1\n";
        let own = RuleSet::read(own, "rules.yaml").expect("rules");
        let rules = StatusRules {
            own: Some(std::sync::Arc::new(own)),
            built_in: BuiltInRules::Used,
            jobs: Jobs::Started,
        };
        assert!(!rules.are_current_once_written(&GroupKind::new("example.com", "Widget"), Unlisted, Created));
    }
}
