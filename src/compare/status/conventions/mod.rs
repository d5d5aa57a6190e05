//! The status of kinds without a rule of their own, from the conventions of the Kubernetes API and of
//! controllers: conditions, phases, flags, numbers of replicas.
//!
//! The sign with the greatest weight decides: signs that sum the object up outweigh those of its parts, and a failure
//! outweighs all. Without any sign, this module returns `None`, and the caller counts the object as Current: if it were
//! `InProgress`, `--wait` would wait for the object until the timeout.

mod conditions;
mod fields;
mod words;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::object::ObjectView;
use super::{JobGoal, State};

/// One sign of the state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sign {
    weight: Weight,
    reason: String,
    reason_kind: ReasonKind,
}

/// What the reason of a sign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReasonKind {
    /// An explanation.
    Explanation,
    /// A field of the status with its value (`its status.phase is Failed`). A message elsewhere in the status may
    /// explain it.
    FieldValue,
}

/// The meaning of a sign. A later variant outweighs an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A part of the object is good: Current, if the object has no other sign.
    GoodPart,
    /// The object runs: Current, unless it is of a kind that runs to completion and the wait is for its end.
    CurrentUnlessItEnds,
    /// A part of the object is not good: `InProgress`, unless a sign that sums the object up says otherwise.
    BadPart,
    /// The object is Current.
    Current,
    /// The object is `InProgress`.
    InProgress,
    /// The object is suspended by its manifest or by a person: Current, because a wait would not end.
    Paused,
    /// The object has failed, and does not recover by itself.
    Failed,
}

impl Sign {
    fn new(weight: Weight, reason: String) -> Self {
        Self {
            weight,
            reason,
            reason_kind: ReasonKind::Explanation,
        }
    }

    fn with_field_value_as_reason(self) -> Self {
        Self {
            reason_kind: ReasonKind::FieldValue,
            ..self
        }
    }

    fn good_part(reason: String) -> Self {
        Self::new(Weight::GoodPart, reason)
    }

    fn bad_part(reason: String) -> Self {
        Self::new(Weight::BadPart, reason)
    }

    fn current_unless_it_ends(reason: String) -> Self {
        Self::new(Weight::CurrentUnlessItEnds, reason)
    }

    fn current(reason: String) -> Self {
        Self::new(Weight::Current, reason)
    }

    fn in_progress(reason: String) -> Self {
        Self::new(Weight::InProgress, reason)
    }

    fn paused(reason: String) -> Self {
        Self::new(Weight::Paused, reason)
    }

    fn failed(reason: String) -> Self {
        Self::new(Weight::Failed, reason)
    }
}

/// Returns the state that the status of an object shows, with the reason; `None` if nothing in the status
/// reports a state. An object that runs to completion, such as a `PipelineRun`, is judged like a Job: `goal` says
/// whether it is Current as soon as it has started, or only when it has completed.
pub(super) fn judge_by_conventions(object: ObjectView, goal: JobGoal) -> Option<(State, String)> {
    let sign = find_decisive_sign(object)?;
    let state = match sign.weight {
        Weight::CurrentUnlessItEnds if goal == JobGoal::Completed && has_an_end(object) => State::InProgress,
        Weight::GoodPart | Weight::CurrentUnlessItEnds | Weight::Current | Weight::Paused => State::Current,
        Weight::BadPart | Weight::InProgress => State::InProgress,
        Weight::Failed => State::Failed,
    };
    let mut reason = sign.reason;
    if state != State::Current
        && sign.reason_kind == ReasonKind::FieldValue
        && let Some(message) = find_status_message(object)
        && !reason.ends_with(message)
    {
        reason = format!("{reason}: {message}");
    }
    Some((state, reason))
}

/// Returns the sign with the greatest weight. If there are several, the first gives the reason. If there is none, bad
/// words in any text of the status count.
fn find_decisive_sign(object: ObjectView) -> Option<Sign> {
    let mut found = Vec::new();
    conditions::collect_signs(object, &mut found);
    fields::collect_signs(object, &mut found);
    if found.is_empty() {
        fields::collect_bad_signs_from_any_text(object, &mut found);
    }
    let greatest = found.iter().map(|sign| sign.weight).max()?;
    found.into_iter().find(|sign| sign.weight == greatest)
}

/// Returns the text in which the status says what is wrong.
fn find_status_message(object: ObjectView<'_>) -> Option<&str> {
    let fields = [
        "/status/error",
        "/status/errorMessage",
        "/status/message",
        "/status/reason",
    ];
    fields.into_iter().find_map(|field| object.text(field))
}

/// Returns whether the name of the kind says that its objects end: `PipelineRun`, but not `CronJob`.
fn has_an_end(object: ObjectView) -> bool {
    const LAST_WORDS: [&str; 7] = [
        "run",
        "job",
        "backup",
        "restore",
        "workflow",
        "experiment",
        "migration",
    ];
    let words = words::split_words(object.text("/kind").unwrap_or_default());
    let [first, last] = [words.first(), words.last()].map(|word| word.map_or("", String::as_str));
    LAST_WORDS.contains(&last) && !matches!(first, "cron" | "scheduled" | "schedule" | "recurring")
}

/// Returns why an object is suspended by its manifest: `spec.suspend` and the like.
pub(super) fn reason_for_suspension_by_manifest(object: ObjectView) -> Option<String> {
    const FLAGS: [&str; 5] = ["suspend", "suspended", "paused", "pause", "hibernate"];
    let spec = object.0.get("spec")?;
    let flag = FLAGS.into_iter().find(|flag| spec[flag] == true)?;
    Some(format!("it is suspended: its spec.{flag} is true"))
}

/// Returns whether no controller has reported anything in the status yet: all of its fields are empty, or
/// `observedGeneration`. A status with empty conditions counts as reported only if another field is a sign.
pub(super) fn is_unreported(object: &Value) -> bool {
    let fields = match object.get("status") {
        None | Some(Value::Null) => return true,
        Some(Value::Object(fields)) => fields,
        Some(_) => return false,
    };
    if fields.get("conditions").is_some_and(is_empty_list) {
        return find_decisive_sign(ObjectView(object)).is_none();
    }
    fields.iter().all(|(name, value)| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => name == "observedGeneration",
    })
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}
