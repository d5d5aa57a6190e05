//! The status of Pods: what keeps a Pod from becoming ready, whether it recovers by itself, and which container has
//! crashed.
//!
//! docs/decisions/reading.md has the reasons for the grace periods.

use std::num::NonZeroU32;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::object::ObjectView;
use super::{Readiness, State};
use crate::model::text::counted;

/// The time that a problem lasts before it counts as one that stays.
const GRACE: Duration = Duration::from_mins(1);
/// The longest pause between two tries of the kubelet to start a container.
const LONGEST_BACK_OFF: Duration = Duration::from_mins(5);

/// Reasons that every container has for a while before it starts; they are not a problem.
const REASONS_BEFORE_START: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// Reasons for a container whose image the kubelet does not have, and tries again to get.
const IMAGE_REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// Reasons for a container that the kubelet cannot create, and tries again to create.
const CREATION_REASONS: [&str; 3] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "PreCreateHookError",
];

pub(super) fn judge(object: ObjectView) -> Readiness {
    match object.text("/status/phase") {
        Some("Succeeded") => Readiness::current("it has completed"),
        // kstatus calls a failed Pod Current, because it no longer changes.
        Some("Failed") => Readiness::failed(describe_failure(object)),
        Some("Running") if object.has_true_condition("Ready") => Readiness::current("it is ready"),
        Some("Running") => match reason_for_not_ready(object.0) {
            Some(problem) if is_crash_looping(object) => Readiness::failed(problem),
            Some(problem) => Readiness::in_progress(problem),
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
    problems_before_start(pod).next().map(|problem| problem.reason)
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

/// One reason why a Pod is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodProblem {
    /// The name of the container; empty if the Pod has no node.
    container: String,
    cause: ProblemCause,
    /// The reason in words: `container app: ErrImagePull: no such image`.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProblemCause {
    /// The container crashes again and again.
    CrashLoop {
        restarts: u32,
        /// The start of the instance that crashed last.
        started: Option<Timestamp>,
    },
    /// The kubelet cannot start the container, and tries again: `image`, or the reason itself.
    NotStarted(String),
    /// The name of the image is invalid, so there is nothing to try again.
    InvalidImageName,
    /// Anything else, such as that no node fits: nothing shows that it stays.
    Other(String),
}

/// The conditions under which a Pod whose container crashes counts as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodFailureRule {
    /// The number of restarts of the container.
    pub restarts: NonZeroU32,
    /// The start of the wait, by the server's clock. What crashed before may be repaired by this run.
    pub began: Timestamp,
}

/// The time for which a wait has seen a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The time since the problem was first seen.
    pub lasts_for: Duration,
    /// The age of the Pod when the problem was first seen.
    pub age_of_pod: Duration,
}

impl PodProblem {
    /// Returns a text that is the same as long as the problem is: the reason has times and counts that change.
    pub fn key(&self) -> String {
        let cause = match &self.cause {
            ProblemCause::CrashLoop { .. } => "crash loop",
            ProblemCause::InvalidImageName => "invalid image name",
            ProblemCause::NotStarted(reason) | ProblemCause::Other(reason) => reason,
        };
        format!("{} {cause}", self.container)
    }

    /// Returns whether the Pod has failed: it will not recover by itself. If that is not sure, it has not.
    pub fn is_failure(&self, rule: PodFailureRule, sighting: Sighting) -> bool {
        match &self.cause {
            ProblemCause::CrashLoop { restarts, started } => {
                // An instance that was started during the wait has seen all that the run has written.
                let is_of_this_wait = started.is_some_and(|started| started >= rule.began);
                *restarts >= rule.restarts.get() && is_of_this_wait
            }
            // The kubelet pauses between two tries for about as long as it has tried, at most five minutes.
            ProblemCause::NotStarted(_) => {
                sighting.lasts_for >= sighting.age_of_pod.clamp(GRACE, LONGEST_BACK_OFF)
            }
            ProblemCause::InvalidImageName => true,
            ProblemCause::Other(_) => false,
        }
    }

    /// Returns whether a container crashes again and again.
    pub fn is_crash_loop(&self) -> bool {
        matches!(self.cause, ProblemCause::CrashLoop { .. })
    }
}

/// Returns everything that keeps containers of a Pod from starting: what they wait for, and a node that is missing.
/// Empty if no cause is known, as for a container that has started and is not ready.
pub fn problems_before_start(pod: &Value) -> impl Iterator<Item = PodProblem> {
    let view = ObjectView(pod);
    let containers = container_statuses(view).filter_map(problem_of_waiting_container);
    let scheduled = view.condition("PodScheduled");
    let unschedulable =
        scheduled.filter(|scheduled| scheduled.status == "False" && scheduled.reason == "Unschedulable");
    containers.chain(unschedulable.map(|scheduled| PodProblem {
        container: String::new(),
        cause: ProblemCause::Other("unschedulable".to_owned()),
        reason: scheduled.to_string(),
    }))
}

fn container_statuses(pod: ObjectView<'_>) -> impl Iterator<Item = &Value> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .flat_map(move |pointer| pod.array(pointer))
}

/// Returns why a container cannot be started; `None` if it is not waiting, or for a usual reason.
fn problem_of_waiting_container(status: &Value) -> Option<PodProblem> {
    let view = ObjectView(status);
    let waiting = status.pointer("/state/waiting")?;
    let [reason, message] = ["reason", "message"].map(|field| waiting[field].as_str().unwrap_or_default());
    let name = status["name"].as_str().unwrap_or_default();
    let cause = match reason {
        "" => return None,
        reason if REASONS_BEFORE_START.contains(&reason) => return None,
        "CrashLoopBackOff" => {
            let started = view.text("/lastState/terminated/startedAt");
            ProblemCause::CrashLoop {
                restarts: u32::try_from(view.number_or_zero("/restartCount")).unwrap_or_default(),
                started: started.and_then(|started| started.parse().ok()),
            }
        }
        "InvalidImageName" => ProblemCause::InvalidImageName,
        reason if IMAGE_REASONS.contains(&reason) => ProblemCause::NotStarted("image".to_owned()),
        reason if CREATION_REASONS.contains(&reason) => ProblemCause::NotStarted(reason.to_owned()),
        reason => ProblemCause::Other(reason.to_owned()),
    };
    let after = match &cause {
        ProblemCause::CrashLoop { restarts, .. } if *restarts > 0 => {
            format!(" after {}", counted(*restarts as usize, "restart"))
        }
        _ => String::new(),
    };
    let colon = if message.is_empty() { "" } else { ": " };
    Some(PodProblem {
        container: name.to_owned(),
        cause,
        reason: format!("container {name}: {reason}{after}{colon}{message}"),
    })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BEFORE: &str = "2026-01-01T00:00:00Z";
    const BEGAN: &str = "2026-01-01T00:10:00Z";
    const AFTER: &str = "2026-01-01T00:11:00Z";

    fn waiting(reason: &str) -> Value {
        json!({"status": {"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": reason}}}]}})
    }

    fn crash_loop(restarts: u32, started: &str) -> Value {
        let container = json!({
            "name": "app", "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "startedAt": started}},
        });
        json!({"status": {"initContainerStatuses": [container]}})
    }

    fn unschedulable() -> Value {
        json!({"status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node fits"},
        ]}})
    }

    #[test]
    fn only_what_does_not_recover_has_failed() {
        let rule = PodFailureRule {
            restarts: NonZeroU32::new(5).expect("not zero"),
            began: BEGAN.parse().expect("a time"),
        };
        // The Pod, how long the problem was seen, the age of the Pod before, and whether it has failed.
        let table = [
            (crash_loop(1, AFTER), 200, 0, false),
            (crash_loop(4, AFTER), 200, 0, false),
            (crash_loop(5, AFTER), 0, 0, true),
            (crash_loop(5, BEGAN), 0, 0, true),
            // It has not started again since the run wrote what may repair it.
            (crash_loop(500, BEFORE), 200, 9000, false),
            (crash_loop(500, ""), 200, 9000, false),
            (crash_loop(500, AFTER), 0, 9000, true),
            (waiting("ErrImagePull"), 0, 0, false),
            (waiting("ImagePullBackOff"), 59, 0, false),
            (waiting("ImagePullBackOff"), 60, 59, true),
            (waiting("ImagePullBackOff"), 60, 61, false),
            (waiting("ImagePullBackOff"), 299, 9000, false),
            (waiting("ImagePullBackOff"), 300, 9000, true),
            (waiting("CreateContainerConfigError"), 59, 0, false),
            (waiting("CreateContainerConfigError"), 60, 0, true),
            (waiting("InvalidImageName"), 0, 9000, true),
            (waiting("RunContainerError"), 9000, 0, false),
            (waiting("SomethingNew"), 9000, 0, false),
            // The scheduler may wait for a volume, for a Pod that terminates, or for a node that is being added.
            (unschedulable(), 9000, 9000, false),
        ];
        for (pod, lasts_for, age_of_pod, expected) in table {
            let sighting = Sighting {
                lasts_for: Duration::from_secs(lasts_for),
                age_of_pod: Duration::from_secs(age_of_pod),
            };
            let problems: Vec<PodProblem> = problems_before_start(&pod).collect();
            assert_eq!(problems.len(), 1, "{pod}");
            let is_failure = problems[0].is_failure(rule, sighting);
            assert_eq!(is_failure, expected, "{pod} {sighting:?}");
        }
    }

    #[test]
    fn a_problem_keeps_its_key_while_its_reason_changes() {
        let key = |pod: &Value| {
            problems_before_start(pod)
                .map(|problem| problem.key())
                .collect::<Vec<_>>()
        };
        assert_eq!(key(&waiting("ErrImagePull")), key(&waiting("ImagePullBackOff")));
        assert_eq!(key(&crash_loop(1, AFTER)), key(&crash_loop(2, BEGAN)));
        assert_ne!(key(&crash_loop(1, AFTER)), key(&waiting("ErrImagePull")));
        for pod in [
            waiting("ContainerCreating"),
            waiting("PodInitializing"),
            waiting(""),
            json!({}),
        ] {
            assert_eq!(problems_before_start(&pod).count(), 0, "{pod}");
        }
    }
}
