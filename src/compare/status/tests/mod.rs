//! A table for each kind: parts of an object, its state and the reason.

mod workloads;

use serde_json::{Value, json};

use k8s_openapi::jiff::Timestamp;

use super::State::{Current, Failed, InProgress, Terminating, Unknown};
use super::{OthersOfKind, Readiness, State, StatusRules, Surroundings};
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;

/// An object alone, of a kind whose subresource `status` is not known.
fn readiness(object: &Value, group_kind: &GroupKind) -> Readiness {
    let around = Surroundings {
        others: OthersOfKind::Silent,
        subresource: Subresource::Unlisted,
        now: Timestamp::UNIX_EPOCH,
    };
    StatusRules::default().judge(object, group_kind, around)
}

#[track_caller]
fn check(kind: &str, table: impl IntoIterator<Item = (Value, State, &'static str)>) {
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    for (object, state, reason) in table {
        let found = readiness(&object, &GroupKind::new(group, kind));
        assert_eq!(found.state, state, "{object}: {}", found.reason);
        assert!(found.reason.contains(reason), "{object}: {}", found.reason);
    }
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": format!("about {kind}")})
}

/// Conditions alone.
fn conditions(conditions: &[Value]) -> Value {
    json!({"status": {"conditions": conditions}})
}

#[test]
fn deletion_generations_and_conditions_hold_of_all_kinds() {
    let reconciling = condition("Reconciling", "True", "Working");
    let stalled = condition("Stalled", "True", "Broken");
    for kind in ["ConfigMap", "Deployment.apps", "Widget.example.com"] {
        check(
            kind,
            [
                (
                    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                    Terminating,
                    "deleted",
                ),
                (
                    json!({"metadata": {"deletionTimestamp": "x", "finalizers": ["a/b"]}}),
                    Terminating,
                    "finalizer a/b",
                ),
                (
                    json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2}}),
                    InProgress,
                    "generation 2 of 3",
                ),
                (
                    conditions(std::slice::from_ref(&reconciling)),
                    InProgress,
                    "Working: about",
                ),
                (
                    conditions(std::slice::from_ref(&stalled)),
                    Failed,
                    "Broken: about",
                ),
            ],
        );
    }
}

#[test]
fn custom_resources_are_judged_by_their_ready_condition() {
    check(
        "Widget.example.com",
        [
            (json!({}), Current, ""),
            (json!({"status": {}}), Current, ""),
            (
                json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}),
                Current,
                "",
            ),
            (conditions(&[condition("Ready", "True", "")]), Current, "Ready"),
            (
                conditions(&[condition("Ready", "False", "Sick")]),
                InProgress,
                "Sick: about Ready",
            ),
            (
                conditions(&[condition("Ready", "Unknown", "")]),
                InProgress,
                "about Ready",
            ),
            (
                conditions(&[json!({"type": "Ready", "status": "False"})]),
                InProgress,
                "Ready is False",
            ),
            (conditions(&[condition("Other", "False", "")]), Current, ""),
            (conditions(&[condition("Stalled", "False", "")]), Current, ""),
        ],
    );
}

#[test]
fn the_conventions_decide_where_a_rule_lacks_a_field() {
    let available = |status: &str| conditions(&[condition("Available", status, "")]);
    check(
        "Rollout.argoproj.io",
        [
            (json!({"status": {"phase": "Degraded"}}), Failed, "Degraded"),
            (available("True"), Current, "Available is True"),
            (available("False"), InProgress, "about Available"),
            (json!({"status": {"replicas": 1}}), InProgress, "phase is missing"),
        ],
    );
}

#[test]
fn pods() {
    let waiting = |reason: &str| json!([{"name": "app", "state": {"waiting": {"reason": reason}}}]);
    let pod = |phase: &str, containers: Value, conditions: &[Value]| json!({"status": {"phase": phase, "containerStatuses": containers, "conditions": conditions}});
    let ready = condition("Ready", "True", "");
    let unschedulable = condition("PodScheduled", "False", "Unschedulable");
    check(
        "Pod",
        [
            (json!({}), InProgress, "no phase"),
            (pod("Succeeded", json!([]), &[]), Current, "completed"),
            (
                json!({"status": {"phase": "Failed", "reason": "Evicted"}}),
                Failed,
                "Evicted",
            ),
            (pod("Failed", json!([]), &[]), Failed, "failed"),
            (pod("Running", json!([]), &[ready]), Current, "ready"),
            (pod("Running", json!([]), &[]), InProgress, "not ready"),
            (
                pod("Running", waiting("CrashLoopBackOff"), &[]),
                Failed,
                "app: CrashLoopBackOff",
            ),
            (
                pod("Running", waiting("ErrImagePull"), &[]),
                InProgress,
                "app: ErrImagePull",
            ),
            (pod("Pending", json!([]), &[]), InProgress, "pending"),
            (
                pod("Pending", waiting("ContainerCreating"), &[]),
                InProgress,
                "pending",
            ),
            (
                pod("Pending", waiting("ImagePullBackOff"), &[]),
                InProgress,
                "ImagePullBackOff",
            ),
            (
                pod("Pending", json!([]), &[unschedulable]),
                InProgress,
                "Unschedulable: about",
            ),
            (pod("Unknown", json!([]), &[]), Unknown, "Unknown"),
        ],
    );
}

#[test]
fn jobs() {
    let status = |status: Value| json!({"spec": {"completions": 2}, "status": status});
    check(
        "Job.batch",
        [
            (json!({}), InProgress, "not started"),
            (
                status(json!({"startTime": "x", "active": 1})),
                Current,
                "1 active, 0 of 2",
            ),
            (
                conditions(&[condition("Complete", "True", "")]),
                Current,
                "0 of 1",
            ),
            (
                conditions(&[condition("Suspended", "True", "")]),
                Current,
                "suspended",
            ),
            (
                conditions(&[condition("Failed", "True", "BackoffLimitExceeded")]),
                Failed,
                "BackoffLimitExceeded",
            ),
            (
                conditions(&[
                    condition("Suspended", "True", ""),
                    condition("Failed", "True", "x"),
                ]),
                Failed,
                "about Failed",
            ),
        ],
    );
}

#[test]
fn other_built_in_kinds() {
    check(
        "Service",
        [
            (json!({}), Current, ""),
            (
                json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}}),
                Current,
                "",
            ),
            (json!({"spec": {"type": "LoadBalancer"}}), InProgress, "address"),
        ],
    );
    check(
        "PersistentVolumeClaim",
        [
            (json!({}), InProgress, "unknown"),
            (json!({"status": {"phase": "Pending"}}), InProgress, "Pending"),
            (json!({"status": {"phase": "Bound"}}), Current, "bound"),
        ],
    );
    check("PodDisruptionBudget.policy", [(json!({}), Current, "")]);
    check("CronJob.batch", [(json!({}), Current, "")]);
    check("Secret", [(json!({}), Current, "")]);
    check(
        "CustomResourceDefinition.apiextensions.k8s.io",
        [
            (json!({}), InProgress, "not established"),
            (
                conditions(&[condition("Established", "True", "")]),
                Current,
                "established",
            ),
            (
                conditions(&[condition("Established", "False", "Installing")]),
                InProgress,
                "",
            ),
            (
                conditions(&[condition("Established", "False", "Broken")]),
                Failed,
                "Broken",
            ),
            (
                conditions(&[
                    condition("Established", "True", ""),
                    condition("NamesAccepted", "False", "Taken"),
                ]),
                Failed,
                "Taken",
            ),
        ],
    );
}
