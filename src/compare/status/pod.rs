//! The status of Pods, and the crashes of their containers.

use serde_json::Value;

use super::object::ObjectView;
use super::pod_trouble::{container_statuses, troubles_of_pod};
use super::{Readiness, State};

pub(super) fn judge(object: ObjectView) -> Readiness {
    match object.text("/status/phase") {
        Some("Succeeded") => Readiness::current("it has completed"),
        // kstatus calls a failed Pod Current, because it no longer changes.
        Some("Failed") => Readiness::failed(describe_failure(object)),
        Some("Running") if object.has_true_condition("Ready") => Readiness::current("it is ready"),
        Some("Running") => match reason_for_not_ready(object.0) {
            Some(trouble) if is_crash_looping(object) => Readiness::failed(trouble),
            Some(trouble) => Readiness::in_progress(trouble),
            None => Readiness::in_progress("it is running but not ready"),
        },
        // kstatus calls an unschedulable Pod Failed after 15 seconds. We wait longer, because an autoscaler takes
        // minutes to add a node.
        Some("Pending") => Readiness::in_progress(
            reason_for_not_ready(object.0).unwrap_or_else(|| "it is pending".to_owned()),
        ),
        None => Readiness::in_progress("it has no phase yet"),
        Some(phase) => Readiness::new(State::Unknown, format!("its phase is {phase}")),
    }
}

fn reason_for_not_ready(pod: &Value) -> Option<String> {
    troubles_of_pod(pod).next().map(|trouble| trouble.reason)
}

/// A container of a Pod that has crashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// The name of the container.
    pub container: String,
    /// The instance that crashed.
    pub instance: ContainerInstance,
}

/// An instance of a container: each restart makes a new one. kubectl has the logs of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerInstance {
    /// The latest instance.
    Last,
    /// The instance before the latest one (`kubectl logs --previous`).
    Previous,
}

/// Returns the first container of a Pod that has ended with an error, and the instance that has: the last one, or the
/// one before it, if the last one waits to start.
pub fn find_crashed_container(pod: &Value) -> Option<Crash> {
    container_statuses(ObjectView(pod))
        .map(ObjectView)
        .find_map(|container| {
            let instance = if container.number_or_zero("/state/terminated/exitCode") != 0 {
                ContainerInstance::Last
            } else if container.0.pointer("/state/waiting").is_some()
                && container.number_or_zero("/lastState/terminated/exitCode") != 0
            {
                ContainerInstance::Previous
            } else {
                return None;
            };
            Some(Crash {
                container: container.text("/name")?.to_owned(),
                instance,
            })
        })
}

fn is_crash_looping(object: ObjectView) -> bool {
    let containers = object.array("/status/containerStatuses").iter();
    let mut reasons = containers.map(|container| ObjectView(container).text("/state/waiting/reason"));
    reasons.any(|reason| reason == Some("CrashLoopBackOff"))
}

fn describe_failure(object: ObjectView) -> String {
    match (object.text("/status/reason"), object.text("/status/message")) {
        (None, None) => "it has failed".to_owned(),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
    }
}
