//! A table for each kind: parts of an object, and what is said of it.

use serde_json::{Value, json};

use super::State::{Current, Failed, InProgress, Terminating, Unknown};
use super::{State, readiness};
use crate::model::identity::GroupKind;

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
fn custom_resources_tell_by_their_ready_condition_if_at_all() {
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

/// A Deployment of three replicas with these numbers: there, updated, available, ready.
fn deployment(numbers: [i64; 4], conditions: &[Value]) -> Value {
    let [replicas, updated, available, ready] = numbers;
    json!({
        "spec": {"replicas": 3, "progressDeadlineSeconds": 600},
        "status": {
            "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available,
            "readyReplicas": ready, "conditions": conditions,
        },
    })
}

#[test]
fn deployments() {
    let rolled_out = condition("Progressing", "True", "NewReplicaSetAvailable");
    let available = condition("Available", "True", "MinimumReplicasAvailable");
    let good = [rolled_out.clone(), available.clone()];
    let late = condition("Progressing", "False", "ProgressDeadlineExceeded");
    check(
        "Deployment.apps",
        [
            (json!({}), InProgress, "0 of 1 replicas are there"),
            (json!({"spec": {"replicas": 3}}), InProgress, "0 of 3"),
            (
                deployment([2, 2, 2, 2], &good),
                InProgress,
                "2 of 3 replicas are there",
            ),
            (
                deployment([3, 2, 3, 3], &good),
                InProgress,
                "2 of 3 replicas are of the latest",
            ),
            (deployment([4, 3, 3, 3], &good), InProgress, "1 old"),
            (
                deployment([3, 3, 2, 3], &good),
                InProgress,
                "2 of 3 replicas are available",
            ),
            (
                deployment([3, 3, 3, 2], &good),
                InProgress,
                "2 of 3 replicas are ready",
            ),
            (
                deployment([3, 3, 3, 3], std::slice::from_ref(&available)),
                InProgress,
                "ReplicaSet",
            ),
            (
                deployment([3, 3, 3, 3], &[rolled_out]),
                InProgress,
                "not available",
            ),
            (deployment([3, 3, 3, 3], &good), Current, "3 replicas"),
            (
                deployment([3, 1, 1, 1], &[late, available.clone()]),
                Failed,
                "ProgressDeadlineExceeded",
            ),
            // Without a deadline the controller tells no progress.
            (
                json!({
                    "spec": {"replicas": 0, "progressDeadlineSeconds": 2_147_483_647},
                    "status": {"conditions": [available]},
                }),
                Current,
                "",
            ),
        ],
    );
}

#[test]
fn stateful_sets() {
    let with = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    let revisions = |update: &str, current: i64| {
        json!({
            "replicas": 2, "readyReplicas": 2, "updatedReplicas": 1, "currentReplicas": current,
            "currentRevision": "a", "updateRevision": update,
        })
    };
    let spec = json!({"replicas": 2});
    let partition = |partition: i64| json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": partition}}});
    check(
        "StatefulSet.apps",
        [
            (json!({}), InProgress, "0 of 1 replicas are there"),
            (
                with(json!({"updateStrategy": {"type": "OnDelete"}}), json!({})),
                Current,
                "deletes",
            ),
            (
                with(spec.clone(), json!({"replicas": 1})),
                InProgress,
                "1 of 2 replicas are there",
            ),
            (
                with(spec.clone(), json!({"replicas": 2, "readyReplicas": 1})),
                InProgress,
                "1 of 2 replicas are ready",
            ),
            (
                with(spec.clone(), json!({"replicas": 3, "readyReplicas": 3})),
                InProgress,
                "1 old",
            ),
            (with(spec.clone(), revisions("a", 1)), InProgress, "1 of 2"),
            (
                with(spec.clone(), revisions("b", 2)),
                InProgress,
                "latest revision",
            ),
            (with(spec, revisions("a", 2)), Current, "2 replicas"),
            (with(partition(0), revisions("a", 2)), InProgress, "1 of 2"),
            (with(partition(1), revisions("b", 1)), Current, ""),
        ],
    );
}

#[test]
fn daemon_sets() {
    let with = |strategy: &str, numbers: [i64; 5]| {
        let [desired, current, updated, available, ready] = numbers;
        json!({
            "metadata": {"generation": 1},
            "spec": {"updateStrategy": {"type": strategy}},
            "status": {
                "observedGeneration": 1, "desiredNumberScheduled": desired,
                "currentNumberScheduled": current, "updatedNumberScheduled": updated,
                "numberAvailable": available, "numberReady": ready,
            },
        })
    };
    check(
        "DaemonSet.apps",
        [
            (
                json!({"status": {"desiredNumberScheduled": 0}}),
                InProgress,
                "not seen",
            ),
            (
                json!({"status": {"observedGeneration": 1}}),
                InProgress,
                "not known",
            ),
            (
                with("RollingUpdate", [2, 1, 2, 2, 2]),
                InProgress,
                "1 of 2 nodes run its Pod",
            ),
            (
                with("RollingUpdate", [2, 2, 1, 2, 2]),
                InProgress,
                "latest revision",
            ),
            (with("RollingUpdate", [2, 2, 2, 1, 2]), InProgress, "available"),
            (with("RollingUpdate", [2, 2, 2, 2, 1]), InProgress, "ready"),
            (with("RollingUpdate", [2, 2, 2, 2, 2]), Current, "2 nodes"),
            (with("OnDelete", [2, 2, 1, 2, 2]), Current, "2 nodes"),
        ],
    );
}

#[test]
fn replica_sets() {
    let with = |numbers: [i64; 4], conditions: &[Value]| {
        let [replicas, labelled, available, ready] = numbers;
        json!({"spec": {"replicas": 2}, "status": {
            "replicas": replicas, "fullyLabeledReplicas": labelled, "availableReplicas": available,
            "readyReplicas": ready, "conditions": conditions,
        }})
    };
    let failure = condition("ReplicaFailure", "True", "FailedCreate");
    check(
        "ReplicaSet.apps",
        [
            (json!({}), InProgress, "0 of 1"),
            (with([2, 2, 2, 2], &[failure]), InProgress, "FailedCreate: about"),
            (with([2, 1, 2, 2], &[]), InProgress, "labelled"),
            (with([2, 2, 1, 2], &[]), InProgress, "available"),
            (with([2, 2, 2, 1], &[]), InProgress, "ready"),
            (with([3, 2, 2, 2], &[]), InProgress, "1 old"),
            (with([2, 2, 2, 2], &[]), Current, "2 replicas"),
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
