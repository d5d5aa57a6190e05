//! The status of built-in kinds, by the rules of kstatus, and the kinds whose objects are Current as soon as they are
//! written. Pods and workloads have files of their own.

use serde_json::Value;

use super::object::ObjectView;
use super::{BuiltInRules, JobGoal, Readiness, RuleSet, StatusRules, pod, workloads};
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;

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

/// Applies the rule of kstatus for a kind; `None` if kstatus has no rule for it.
pub(super) fn judge(object: ObjectView, group_kind: &GroupKind, jobs: JobGoal) -> Option<Readiness> {
    let group = group_kind.group.as_str();
    Some(match (group, group_kind.kind.as_str()) {
        ("", "Pod") => pod::judge(object),
        ("", "Service") => judge_service(object),
        ("", "PersistentVolumeClaim") => judge_persistent_volume_claim(object),
        _ if has_only_content(group_kind) => Readiness::current("it exists"),
        ("batch", "CronJob") => Readiness::current("it exists"),
        ("apps" | "extensions", "Deployment") => workloads::judge_deployment(object),
        ("apps", "StatefulSet") => workloads::judge_stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workloads::judge_daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") => workloads::judge_replica_set(object),
        ("batch", "Job") => workloads::judge_job(object, jobs),
        // `status.observedGeneration` was compared before, and the controller reports no other progress.
        ("policy", "PodDisruptionBudget") => Readiness::current("its allowed disruptions have been computed"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => judge_crd(object),
        _ => return None,
    })
}

/// Requires a cluster IP of a Service of type `LoadBalancer`, but not the load balancer, as kstatus does.
fn judge_service(object: ObjectView) -> Readiness {
    let has_load_balancer = object.text("/spec/type") == Some("LoadBalancer");
    if has_load_balancer && object.text("/spec/clusterIP").is_none() {
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

/// What a write did with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The object did not exist before.
    Created,
    /// The object existed.
    Changed,
}

impl StatusRules {
    /// Returns whether objects of a kind are Current as soon as they are written, so that a wait need not read them: no
    /// rule judges the kind, and its objects have no status.
    ///
    /// A custom kind without the subresource `status` may all the same have a status. A new object has none yet, but
    /// an object that is changed may, so it is read.
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
            // Only the kind matters here, so an empty object shows if there is a rule.
            let has_rule = judge(ObjectView(&Value::Null), group_kind, self.jobs).is_some();
            return !has_rule || has_only_content(group_kind);
        }
        let has_rule = self.built_in == BuiltInRules::Used && RuleSet::built_in().covers(group_kind);
        written == Written::Created && !has_rule
    }
}

/// Returns whether objects of a built-in kind only hold data, and have no state.
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
            jobs: JobGoal::Started,
        };
        assert!(!rules.are_current_once_written(&GroupKind::new("example.com", "Widget"), Unlisted, Created));
    }
}
