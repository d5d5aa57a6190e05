//! The status of Deployments, StatefulSets, DaemonSets, ReplicaSets and Jobs.

use super::object::ObjectView;
use super::{JobGoal, Readiness, in_progress_if_too_few};

/// The value of `spec.progressDeadlineSeconds` that means no deadline (apps/v1, `MaxInt32`). A missing field means the
/// same.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(super) fn judge_deployment(object: ObjectView) -> Readiness {
    let progressing = object.condition("Progressing");
    if let Some(condition) = progressing.filter(|condition| condition.reason == "ProgressDeadlineExceeded") {
        return Readiness::failed(condition.to_string());
    }
    // The controller neither creates nor replaces Pods of a paused Deployment, so a wait would not end.
    if object.is_true("/spec/paused") {
        return Readiness::current("it is paused: its spec.paused is true");
    }
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let replicas = object.number_or_zero("/status/replicas");
    let updated = object.number_or_zero("/status/updatedReplicas");
    let available = object.number_or_zero("/status/availableReplicas");
    let ready = object.number_or_zero("/status/readyReplicas");
    // As in kstatus. Where available replicas are compared with updated ones, these are as many as are wanted.
    let shortage = in_progress_if_too_few(replicas, wanted, "replicas exist")
        .or_else(|| in_progress_if_too_few(updated, wanted, "replicas are of the latest revision"))
        .or_else(|| in_progress_if_too_many(replicas, wanted))
        .or_else(|| in_progress_if_too_few(available, updated, "replicas are available"))
        .or_else(|| in_progress_if_too_few(ready, wanted, "replicas are ready"));
    if let Some(shortage) = shortage {
        return shortage;
    }
    // Without a deadline the controller does not write the condition `Progressing`.
    let deadline = object
        .number("/spec/progressDeadlineSeconds")
        .unwrap_or(NO_DEADLINE);
    let is_rolled_out = deadline == NO_DEADLINE
        || progressing.is_some_and(|condition| {
            condition.status == "True" && condition.reason == "NewReplicaSetAvailable"
        });
    if !is_rolled_out {
        return Readiness::in_progress("its latest ReplicaSet is not available yet");
    }
    if !object.has_true_condition("Available") {
        return Readiness::in_progress("it is not available yet");
    }
    Readiness::current(describe_replicas(replicas, "available"))
}

pub(super) fn judge_stateful_set(object: ObjectView) -> Readiness {
    if object.text("/spec/updateStrategy/type") == Some("OnDelete") {
        return Readiness::current("its Pods are updated only when they are deleted");
    }
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let replicas = object.number_or_zero("/status/replicas");
    let updated = object.number_or_zero("/status/updatedReplicas");
    let ready = object.number_or_zero("/status/readyReplicas");
    let shortage = in_progress_if_too_few(replicas, wanted, "replicas exist")
        .or_else(|| in_progress_if_too_few(ready, wanted, "replicas are ready"))
        .or_else(|| in_progress_if_too_many(replicas, wanted));
    if let Some(shortage) = shortage {
        return shortage;
    }
    if let Some(partition) = object.number("/spec/updateStrategy/rollingUpdate/partition") {
        let unfinished =
            in_progress_if_too_few(updated, wanted - partition, "replicas are of the latest revision");
        return unfinished.unwrap_or_else(|| Readiness::current(describe_replicas(replicas, "ready")));
    }
    let current = object.number_or_zero("/status/currentReplicas");
    if let Some(shortage) = in_progress_if_too_few(current, wanted, "replicas are of the current revision") {
        return shortage;
    }
    if object.text("/status/currentRevision") != object.text("/status/updateRevision") {
        return Readiness::in_progress("not all replicas are of the latest revision");
    }
    Readiness::current(describe_replicas(replicas, "ready"))
}

pub(super) fn judge_daemon_set(object: ObjectView) -> Readiness {
    if object.number("/status/observedGeneration").is_none() {
        return Readiness::in_progress("its controller has not observed it yet");
    }
    let Some(wanted) = object.number("/status/desiredNumberScheduled") else {
        return Readiness::in_progress("its controller has not computed its number of nodes yet");
    };
    // With `OnDelete`, only a person who deletes Pods updates them, so the number of updated ones does not count.
    // kstatus waits for the updated Pods nevertheless.
    let is_updated_by_hand = object.text("/spec/updateStrategy/type") == Some("OnDelete");
    let counts = [
        Some(("/status/currentNumberScheduled", "nodes run its Pod")),
        (!is_updated_by_hand).then_some(("/status/updatedNumberScheduled", "nodes run its latest revision")),
        Some(("/status/numberAvailable", "nodes have its Pod available")),
        Some(("/status/numberReady", "nodes have its Pod ready")),
    ];
    counts
        .into_iter()
        .flatten()
        .find_map(|(pointer, what)| in_progress_if_too_few(object.number_or_zero(pointer), wanted, what))
        .unwrap_or_else(|| Readiness::current(format!("it is running on {wanted} nodes")))
}

pub(super) fn judge_replica_set(object: ObjectView) -> Readiness {
    // The controller retries, so this is not final.
    if let Some(failure) = object.true_condition("ReplicaFailure") {
        return Readiness::in_progress(failure.to_string());
    }
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let replicas = object.number_or_zero("/status/replicas");
    let counts = [
        ("/status/fullyLabeledReplicas", "replicas are fully labeled"),
        ("/status/availableReplicas", "replicas are available"),
        ("/status/readyReplicas", "replicas are ready"),
    ];
    counts
        .into_iter()
        .find_map(|(pointer, what)| in_progress_if_too_few(object.number_or_zero(pointer), wanted, what))
        .or_else(|| in_progress_if_too_many(replicas, wanted))
        .unwrap_or_else(|| Readiness::current(describe_replicas(replicas, "available")))
}

/// Treats a running Job as Current, however long it runs, unless the wait is for its completion.
pub(super) fn judge_job(object: ObjectView, goal: JobGoal) -> Readiness {
    let parallelism = object.number("/spec/parallelism").unwrap_or(1);
    let wanted = object.number("/spec/completions").unwrap_or(parallelism);
    let succeeded = object.number_or_zero("/status/succeeded");
    if let Some(failed) = object.true_condition("Failed") {
        return Readiness::failed(failed.to_string());
    }
    if object.has_true_condition("Complete") {
        return Readiness::current(format!("{succeeded} of {wanted} completions have succeeded"));
    }
    if object.has_true_condition("Suspended") {
        return Readiness::current("it is suspended");
    }
    if object.text("/status/startTime").is_none() {
        return Readiness::in_progress("it has not started");
    }
    let active = object.number_or_zero("/status/active");
    let reason =
        format!("it is running: {active} active, {succeeded} of {wanted} completions have succeeded");
    match goal {
        JobGoal::Started => Readiness::current(reason),
        JobGoal::Completed => Readiness::in_progress(reason),
    }
}

/// Returns the state of an object with more replicas than wanted; `None` if there are not more.
fn in_progress_if_too_many(replicas: i64, wanted: i64) -> Option<Readiness> {
    (replicas > wanted)
        .then(|| Readiness::in_progress(format!("{replicas} replicas exist, and {wanted} are wanted")))
}

fn describe_replicas(replicas: i64, state: &str) -> String {
    match replicas {
        1 => format!("1 replica is {state}"),
        replicas => format!("{replicas} replicas are {state}"),
    }
}
