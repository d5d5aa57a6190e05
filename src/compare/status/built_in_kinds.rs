//! The status of built-in kinds, by the rules of kstatus. Pods and workloads have files of their own. Also the kinds
//! whose objects are Current as soon as they are written, which are mostly built-in ones.

use super::object::ObjectView;
use super::{BuiltInRules, JobGoal, Readiness, RuleSet, StatusRules, pod, workloads};
use crate::model::built_in_kinds::is_served_by_kubernetes_itself;
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;

/// The rule of kstatus for a kind.
enum KstatusRule {
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
pub(super) fn judge(object: ObjectView, group_kind: &GroupKind, goal: JobGoal) -> Option<Readiness> {
    Some(match rule_of_kind(group_kind)? {
        KstatusRule::HoldsData => Readiness::current("it exists"),
        KstatusRule::Current(reason) => Readiness::current(reason),
        KstatusRule::Status(judge) => judge(object),
        KstatusRule::Job => workloads::judge_job(object, goal),
    })
}

fn rule_of_kind(group_kind: &GroupKind) -> Option<KstatusRule> {
    Some(match (group_kind.group.as_str(), group_kind.kind.as_str()) {
        ("", "Pod") => KstatusRule::Status(pod::judge),
        ("", "Service") => KstatusRule::Status(judge_service),
        ("", "PersistentVolumeClaim") => KstatusRule::Status(judge_persistent_volume_claim),
        ("", "ConfigMap" | "Secret") => KstatusRule::HoldsData,
        ("batch", "CronJob") => KstatusRule::Current("it exists"),
        ("apps" | "extensions", "Deployment") => KstatusRule::Status(workloads::judge_deployment),
        ("apps", "StatefulSet") => KstatusRule::Status(workloads::judge_stateful_set),
        ("apps" | "extensions", "DaemonSet") => KstatusRule::Status(workloads::judge_daemon_set),
        ("apps" | "extensions", "ReplicaSet") => KstatusRule::Status(workloads::judge_replica_set),
        ("batch", "Job") => KstatusRule::Job,
        // `status.observedGeneration` was compared before, and the controller reports no other progress.
        ("policy", "PodDisruptionBudget") => {
            KstatusRule::Current("its allowed disruptions have been computed")
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => KstatusRule::Status(judge_crd),
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

/// The effect of a write on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The object did not exist before.
    Created,
    /// The object existed.
    Changed,
}

impl StatusRules {
    /// Returns whether objects of a kind are Current as soon as they are written, so that a wait need not read them: no
    /// rule judges the kind, and its objects have no status.
    ///
    /// A custom kind without the subresource `status` may have a status nevertheless. A new object has none yet, but an
    /// object that is changed may, so it is read.
    pub fn are_current_once_written(
        &self,
        group_kind: &GroupKind,
        status_subresource: Subresource,
        outcome: WriteOutcome,
    ) -> bool {
        let has_rule_of_user = self.own.as_ref().is_some_and(|own| own.covers(group_kind));
        if status_subresource == Subresource::Listed || has_rule_of_user {
            return false;
        }
        if is_served_by_kubernetes_itself(&group_kind.group) {
            return matches!(rule_of_kind(group_kind), None | Some(KstatusRule::HoldsData));
        }
        // The rules that come with the program are about custom kinds.
        let has_built_in_rule = self.built_in == BuiltInRules::Used && RuleSet::built_in().covers(group_kind);
        outcome == WriteOutcome::Created && !has_built_in_rule
    }
}

#[cfg(test)]
mod tests {
    use super::super::JobGoal;
    use super::*;

    #[test]
    fn objects_are_current_once_written_if_nothing_can_report_on_them() {
        use Subresource::{Listed, Unlisted};
        use WriteOutcome::{Changed, Created};
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
            // A controller may have reported on the object before this write.
            ("example.com", "Widget", Unlisted, Changed, false),
            ("example.com", "Widget", Listed, Created, false),
        ];
        for (group, kind, subresource, outcome, expected) in table {
            let is_current = StatusRules::default().are_current_once_written(
                &GroupKind::new(group, kind),
                subresource,
                outcome,
            );
            assert_eq!(is_current, expected, "{kind} {subresource:?} {outcome:?}");
        }
        let own = "- apiVersion: example.com/v1\n  kind: Widget\n  current: object.spec.size > 1\n";
        let own = RuleSet::read(own, "rules.yaml").expect("rules");
        let rules = StatusRules {
            own: Some(std::sync::Arc::new(own)),
            built_in: BuiltInRules::Used,
            job_goal: JobGoal::Started,
        };
        assert!(!rules.are_current_once_written(&GroupKind::new("example.com", "Widget"), Unlisted, Created));
    }
}
