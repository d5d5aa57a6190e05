//! The status of a live object: is it as its manifest says, and if not, why?
//!
//! Pure. The rules are those of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus`, README and
//! `status/core.go`) with three exceptions: a Pod that failed is Failed, one that does not fit on
//! any node yet is not, and `OnDelete` holds for DaemonSets as for StatefulSets.

mod kinds;
mod pod;
mod workloads;

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;

use crate::model::identity::GroupKind;

pub use pod::trouble as trouble_of_pod;

/// The states of kstatus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum State {
    /// The object is as its manifest says.
    Current,
    /// A controller is at work, or has not begun yet.
    InProgress,
    /// The object will not become Current by itself.
    Failed,
    /// The object is being deleted.
    Terminating,
    /// The object does not show its state.
    Unknown,
}

impl State {
    /// Returns the name that kstatus uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
        }
    }
}

/// The state of an object, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The state.
    pub state: State,
    /// The reason, as the rest of a sentence about the object; a condition's own message if there
    /// is one.
    pub reason: String,
}

impl Readiness {
    /// Creates a state with its reason.
    pub fn new(state: State, reason: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
        }
    }

    fn current(reason: impl Into<String>) -> Self {
        Self::new(State::Current, reason)
    }

    fn in_progress(reason: impl Into<String>) -> Self {
        Self::new(State::InProgress, reason)
    }

    fn failed(reason: impl Into<String>) -> Self {
        Self::new(State::Failed, reason)
    }
}

/// Returns the status of an object of a kind, as a GET or an item of a LIST of whole objects
/// shows it.
pub fn readiness(object: &Value, group_kind: &GroupKind) -> Readiness {
    let object = Object(object);
    generic(object)
        .or_else(|| of_kind(object, group_kind))
        .or_else(|| by_ready_condition(object))
        .unwrap_or_else(|| Readiness::current("it is there"))
}

fn of_kind(object: Object, group_kind: &GroupKind) -> Option<Readiness> {
    let group = group_kind.group.as_str();
    Some(match (group, group_kind.kind.as_str()) {
        ("", "Pod") => pod::readiness(object),
        ("", "Service") => kinds::service(object),
        ("", "PersistentVolumeClaim") => kinds::persistent_volume_claim(object),
        ("", "ConfigMap" | "Secret") | ("batch", "CronJob") => Readiness::current("it is there"),
        ("apps" | "extensions", "Deployment") => workloads::deployment(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workloads::daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") => workloads::replica_set(object),
        ("batch", "Job") => kinds::job(object),
        ("policy", "PodDisruptionBudget") => kinds::disruption_budget(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => kinds::custom_resource_definition(object),
        _ => return None,
    })
}

/// Applies the rules for all kinds: deletion, generations, and the conditions `Reconciling` and
/// `Stalled`.
fn generic(object: Object) -> Option<Readiness> {
    if object.text("/metadata/deletionTimestamp").is_some() {
        let finalizers = object.array("/metadata/finalizers");
        let finalizers: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
        let reason = match finalizers.as_slice() {
            [] => "it is being deleted".to_owned(),
            [finalizer] => format!("it is being deleted, and waits for the finalizer {finalizer}"),
            several => format!(
                "it is being deleted, and waits for the finalizers {}",
                several.join(", ")
            ),
        };
        return Some(Readiness::new(State::Terminating, reason));
    }
    if let (Some(wanted), Some(observed)) = (
        object.number("/metadata/generation"),
        object.number("/status/observedGeneration"),
    ) && wanted != observed
    {
        return Some(Readiness::in_progress(format!(
            "its controller has seen generation {observed} of {wanted}"
        )));
    }
    object.conditions().find_map(|condition| {
        if condition.status != "True" {
            return None;
        }
        match condition.kind {
            "Reconciling" => Some(Readiness::in_progress(condition.to_string())),
            "Stalled" => Some(Readiness::failed(condition.to_string())),
            _ => None,
        }
    })
}

/// Applies the condition `Ready`, which many custom resources have.
fn by_ready_condition(object: Object) -> Option<Readiness> {
    let ready = object.condition("Ready")?;
    Some(match ready.status {
        "True" => Readiness::current("its condition Ready is True"),
        _ => Readiness::in_progress(ready.to_string()),
    })
}

/// An object whose fields are read by JSON pointer.
#[derive(Debug, Clone, Copy)]
struct Object<'a>(&'a Value);

impl<'a> Object<'a> {
    fn text(self, pointer: &str) -> Option<&'a str> {
        self.0
            .pointer(pointer)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    fn number(self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer).and_then(Value::as_i64)
    }

    /// Returns a number, or zero: numbers of a status that are zero are left out.
    fn count(self, pointer: &str) -> i64 {
        self.number(pointer).unwrap_or_default()
    }

    fn array(self, pointer: &str) -> &'a [Value] {
        let array = self.0.pointer(pointer).and_then(Value::as_array);
        array.map_or(&[], Vec::as_slice)
    }

    fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.array("/status/conditions").iter().map(Condition::of)
    }

    fn condition(self, kind: &str) -> Option<Condition<'a>> {
        self.conditions().find(|condition| condition.kind == kind)
    }

    fn has_condition(self, kind: &str) -> bool {
        self.condition(kind)
            .is_some_and(|condition| condition.status == "True")
    }
}

/// One condition of a status.
#[derive(Debug, Clone, Copy)]
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl<'a> Condition<'a> {
    fn of(condition: &'a Value) -> Self {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        Self {
            kind: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        }
    }
}

impl std::fmt::Display for Condition<'_> {
    /// Writes the reason and message, or what there is of them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.message, self.reason) {
            ("", "") => write!(f, "its condition {} is {}", self.kind, self.status),
            ("", reason) => f.write_str(reason),
            (message, "") => f.write_str(message),
            (message, reason) => write!(f, "{reason}: {message}"),
        }
    }
}

/// Returns `2 of 3 replicas are ready` if these are too few.
fn too_few(have: i64, wanted: i64, what: &str) -> Option<Readiness> {
    (have < wanted).then(|| Readiness::in_progress(format!("{have} of {wanted} {what}")))
}
