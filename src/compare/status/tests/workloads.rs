//! Workloads.

use super::*;

/// A Deployment of three replicas with these numbers: existing, updated, available, ready.
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
            (json!({}), InProgress, "0 of 1 replicas exist"),
            (json!({"spec": {"replicas": 3}}), InProgress, "0 of 3"),
            (
                deployment([2, 2, 2, 2], &good),
                InProgress,
                "2 of 3 replicas exist",
            ),
            (
                deployment([3, 2, 3, 3], &good),
                InProgress,
                "2 of 3 replicas are of the latest",
            ),
            (
                deployment([4, 3, 3, 3], &good),
                InProgress,
                "4 replicas exist, and 3 are wanted",
            ),
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
            // Without a deadline the controller reports no progress.
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
            (json!({}), InProgress, "0 of 1 replicas exist"),
            (
                with(json!({"updateStrategy": {"type": "OnDelete"}}), json!({})),
                Current,
                "only when they are deleted",
            ),
            (
                with(spec.clone(), json!({"replicas": 1})),
                InProgress,
                "1 of 2 replicas exist",
            ),
            (
                with(spec.clone(), json!({"replicas": 2, "readyReplicas": 1})),
                InProgress,
                "1 of 2 replicas are ready",
            ),
            (
                with(spec.clone(), json!({"replicas": 3, "readyReplicas": 3})),
                InProgress,
                "3 replicas exist",
            ),
            (with(spec.clone(), revisions("a", 1)), InProgress, "1 of 2"),
            (
                with(spec.clone(), revisions("b", 2)),
                InProgress,
                "latest revision",
            ),
            (with(spec, revisions("a", 2)), Current, "2 replicas are ready"),
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
                "not observed",
            ),
            (
                json!({"status": {"observedGeneration": 1}}),
                InProgress,
                "number of nodes",
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
        let [replicas, labeled, available, ready] = numbers;
        json!({"spec": {"replicas": 2}, "status": {
            "replicas": replicas, "fullyLabeledReplicas": labeled, "availableReplicas": available,
            "readyReplicas": ready, "conditions": conditions,
        }})
    };
    let failure = condition("ReplicaFailure", "True", "FailedCreate");
    check(
        "ReplicaSet.apps",
        [
            (json!({}), InProgress, "0 of 1"),
            (with([2, 2, 2, 2], &[failure]), InProgress, "FailedCreate: about"),
            (with([2, 1, 2, 2], &[]), InProgress, "labeled"),
            (with([2, 2, 1, 2], &[]), InProgress, "available"),
            (with([2, 2, 2, 1], &[]), InProgress, "ready"),
            (with([3, 2, 2, 2], &[]), InProgress, "3 replicas exist"),
            (with([2, 2, 2, 2], &[]), Current, "2 replicas"),
        ],
    );
}
