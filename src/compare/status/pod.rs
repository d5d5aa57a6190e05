//! The status of Pods, and the reason why one is not ready.

use serde_json::Value;

use super::object::ObjectView;
use super::{Readiness, State};

pub(super) fn readiness(object: ObjectView) -> Readiness {
    match object.text("/status/phase") {
        Some("Succeeded") => Readiness::current("it has completed"),
        // kstatus calls that Current, since it no longer changes.
        Some("Failed") => Readiness::failed(failure(object)),
        Some("Running") if object.has_condition("Ready") => Readiness::current("it is ready"),
        Some("Running") => match trouble(object.0) {
            Some(trouble) if is_crash_looping(object) => Readiness::failed(trouble),
            Some(trouble) => Readiness::in_progress(trouble),
            None => Readiness::in_progress("it is running but not ready"),
        },
        // kstatus calls an unschedulable Pod failed after 15 seconds. An autoscaler takes minutes to
        // add a node.
        Some("Pending") => {
            Readiness::in_progress(trouble(object.0).unwrap_or_else(|| "it is pending".to_owned()))
        }
        None => Readiness::in_progress("it has no phase yet"),
        Some(phase) => Readiness::new(State::Unknown, format!("its phase is {phase}")),
    }
}

/// Returns why a Pod is not ready: the first container that cannot be started, or why it is
/// unschedulable; `None` if no cause is known.
pub fn trouble(pod: &Value) -> Option<String> {
    let pod = ObjectView(pod);
    container_statuses(pod).find_map(waiting).or_else(|| {
        let scheduled = pod.condition("PodScheduled")?;
        let is_unschedulable = scheduled.status == "False" && scheduled.reason == "Unschedulable";
        is_unschedulable.then(|| scheduled.to_string())
    })
}

/// A container of a Pod that has crashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// The name of the container.
    pub container: String,
    /// The instance that crashed: the last one, or the one before it if the last one is waiting to
    /// start.
    pub instance: Instance,
}

/// An instance of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance {
    /// The last one.
    Last,
    /// The one before it.
    Previous,
}

/// Returns the first container of a Pod that has ended with an error.
pub fn crash(pod: &Value) -> Option<Crash> {
    container_statuses(ObjectView(pod))
        .map(ObjectView)
        .find_map(|container| {
            let instance = if container.count("/state/terminated/exitCode") != 0 {
                Instance::Last
            } else if container.0.pointer("/state/waiting").is_some()
                && container.count("/lastState/terminated/exitCode") != 0
            {
                Instance::Previous
            } else {
                return None;
            };
            Some(Crash {
                container: container.text("/name")?.to_owned(),
                instance,
            })
        })
}

fn container_statuses(pod: ObjectView<'_>) -> impl Iterator<Item = &Value> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .flat_map(move |pointer| pod.array(pointer))
}

/// Reasons that every container has for a while.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

fn waiting(container: &Value) -> Option<String> {
    let waiting = ObjectView(container).0.pointer("/state/waiting")?;
    let [reason, message] = ["reason", "message"].map(|field| waiting[field].as_str().unwrap_or_default());
    if reason.is_empty() || USUAL.contains(&reason) {
        return None;
    }
    let name = container["name"].as_str().unwrap_or_default();
    let colon = if message.is_empty() { "" } else { ": " };
    Some(format!("container {name}: {reason}{colon}{message}"))
}

fn is_crash_looping(object: ObjectView) -> bool {
    let containers = object.array("/status/containerStatuses").iter();
    let mut reasons = containers.map(|container| ObjectView(container).text("/state/waiting/reason"));
    reasons.any(|reason| reason == Some("CrashLoopBackOff"))
}

fn failure(object: ObjectView) -> String {
    match (object.text("/status/reason"), object.text("/status/message")) {
        (None, None) => "it has failed".to_owned(),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
    }
}
