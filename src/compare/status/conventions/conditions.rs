//! The signs in the conditions of an object, by the polarity of their types.

use serde_json::Value;

use super::super::object::{Condition, ObjectView};
use super::Sign;
use super::words::{Tone, has_word, split_words, tone_of_text, tone_of_words};

/// Lists of parts of an object whose items have conditions of their own: routes and policies have conditions for each
/// parent, gateways for each listener.
const LISTS_OF_PARTS: [&str; 4] = [
    "/status/parents",
    "/status/ancestors",
    "/status/listeners",
    "/status/ingress",
];
/// Lists of conditions of the whole object.
const LISTS_OF_CONDITIONS: [&str; 3] = [
    "/status/conditions",
    "/status/conditionedStatus/conditions",
    "/status/status/conditions",
];

/// Collects the signs in all conditions of an object.
pub(super) fn collect_signs(object: ObjectView, found: &mut Vec<Sign>) {
    let generation = object.number("/metadata/generation");
    for pointer in LISTS_OF_CONDITIONS {
        collect_from_conditions(object.array(pointer), generation, "", found);
    }
    for pointer in LISTS_OF_PARTS {
        let list_name = pointer.trim_start_matches("/status/");
        let list = object.0.pointer(pointer).and_then(Value::as_array);
        // A route or policy takes effect through its parents. A Gateway without listeners may be complete.
        if list.is_some_and(Vec::is_empty) && matches!(list_name, "parents" | "ancestors") {
            found.push(Sign::in_progress(format!("it has no {list_name} yet")));
        }
        for item in list.into_iter().flatten() {
            let prefix = format!("{}: ", describe_part(item, list_name));
            collect_from_conditions(ObjectView(item).array("/conditions"), generation, &prefix, found);
        }
    }
}

/// Returns the kind and the name of a part of an object, for messages: `listener https`.
fn describe_part(item: &Value, list_name: &str) -> String {
    let kind = match list_name {
        "parents" => "parent",
        "ancestors" => "ancestor",
        "listeners" => "listener",
        other => other,
    };
    let names = ["/name", "/parentRef/name", "/ancestorRef/name", "/host"];
    let name = names
        .into_iter()
        .find_map(|pointer| ObjectView(item).text(pointer));
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
}

fn collect_from_conditions(
    conditions: &[Value],
    generation: Option<i64>,
    prefix: &str,
    found: &mut Vec<Sign>,
) {
    let conditions: Vec<(Condition, Vec<String>, &Value)> = conditions
        .iter()
        .map(|value| {
            let condition = Condition::new(value);
            // `platform.example.com/app-ready`
            let name = condition.kind.rsplit('/').next().unwrap_or_default();
            (condition, split_words(name), value)
        })
        .collect();
    let has_summary = conditions.iter().any(|(_, words, _)| sums_up_details(words));
    let is_ready = conditions
        .iter()
        .any(|(condition, words, _)| words.as_slice() == ["ready"] && condition.status == "True");
    for (condition, words, value) in &conditions {
        let is_detail = !is_summary_type(words) && words.len() != 1;
        let context = ConditionContext {
            is_detail,
            has_summary,
            is_ready,
        };
        if let Some(mut sign) = judge_condition(*condition, words, context) {
            // A controller may leave a condition about a detail at an old generation, if the detail did not change.
            let observed = ObjectView(value).number("/observedGeneration");
            if let (Some(observed), Some(generation), false) = (observed, generation, is_detail)
                && observed < generation
            {
                sign = Sign::in_progress(format!(
                    "its condition {} is of generation {observed} of {generation}",
                    condition.kind
                ));
            }
            sign.reason.insert_str(0, prefix);
            found.push(sign);
        }
    }
}

/// Returns whether a condition of this type sums an object up.
fn is_summary_type(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["resolved", "refs"] | ["not", "ready"] | ["in", "sync"] => true,
        [word] => tone_of_words(&[(*word).to_owned()]) == Some(Tone::Current),
        _ => false,
    }
}

/// Returns whether a condition of this type sums up the conditions about details, so that these do not count beside it.
/// `Accepted`, `Deployed` and the like do not: an object can be accepted long before it is ready.
fn sums_up_details(words: &[String]) -> bool {
    const SUMMARIES: [&str; 10] = [
        "ready",
        "available",
        "healthy",
        "succeeded",
        "success",
        "successful",
        "complete",
        "completed",
        "finished",
        "done",
    ];
    matches!(words, [word] if SUMMARIES.contains(&word.as_str()))
}

/// The context of a condition in its list of conditions.
#[derive(Debug, Clone, Copy)]
struct ConditionContext {
    /// The condition is about a part of the object or a step, such as `DashboardSynchronized`. Others sum the object up:
    /// `Ready`, `Synced`.
    is_detail: bool,
    /// The list has a condition that sums up the details, be it true or not.
    has_summary: bool,
    /// The condition `Ready` of the list is True.
    is_ready: bool,
}

/// Returns the sign that a condition is, given the words of its type; `None` if the condition says nothing.
fn judge_condition(condition: Condition, words: &[String], context: ConditionContext) -> Option<Sign> {
    let ConditionContext { is_detail, .. } = context;
    // `LastBackupSucceeded` is history.
    if has_word(words, &["last", "previous"]) {
        return None;
    }
    let Some(tone) = tone_of_words(words) else {
        return (condition.status == "Unknown").then(|| Sign::bad_part(condition.to_string()));
    };
    match (tone, condition.status) {
        (Tone::Current, "True") => Some(judge_true_readiness_condition(condition, words)),
        // `Running` is True, but the message is `Waiting for …`.
        (Tone::Positive, "True") if !is_detail && says_work_is_unfinished(condition.message) => {
            Some(Sign::bad_part(condition.to_string()))
        }
        (Tone::Positive, "True") => {
            (!is_detail).then(|| Sign::good_part(describe_condition_status(condition)))
        }
        (Tone::Positive, "False" | "Unknown") if is_required_step_type(words) => {
            Some(Sign::bad_part(condition.to_string()))
        }
        (Tone::Current, _) if !is_detail || !context.has_summary => {
            judge_untrue_readiness_condition(condition, words, is_detail, context.is_ready)
        }
        (Tone::InProgress, "True") if !(is_detail && context.is_ready) || is_ongoing_change_type(words) => {
            judge_true_progress_condition(condition, words, context)
        }
        (Tone::InProgress, "Unknown") if words == ["progressing"] => {
            Some(Sign::in_progress(condition.to_string()))
        }
        (Tone::InProgress, "False")
            if words == ["progressing"] && tone_of_text(condition.reason) >= Some(Tone::Degraded) =>
        {
            Some(Sign::failed(condition.to_string()))
        }
        (Tone::Paused, "True") if words.len() == 1 => {
            Some(Sign::paused(format!("it is {}: {condition}", words[0])))
        }
        (Tone::Degraded, "True") if !(is_detail && context.is_ready) => {
            Some(Sign::in_progress(condition.to_string()))
        }
        (Tone::Failed, "True") if !is_detail => Some(Sign::failed(condition.to_string())),
        (Tone::Failed, "True") if !context.is_ready => Some(Sign::in_progress(condition.to_string())),
        _ => None,
    }
}

/// Returns whether a condition of this type has to be True before the object works: `Connected`, but not `Enabled` or
/// `Leader`.
fn is_required_step_type(words: &[String]) -> bool {
    const STEPS: [&str; 11] = [
        "attached",
        "connected",
        "created",
        "initialised",
        "initialized",
        "joined",
        "online",
        "registered",
        "running",
        "scheduled",
        "started",
    ];
    has_word(words, &STEPS)
}

/// Returns whether a message begins with what a controller does, as `Waiting for the volume` does, and does not end
/// with what the controller has done, as `Creating pods: completed` does.
fn says_work_is_unfinished(message: &str) -> bool {
    let words = split_words(message);
    let [first, last] = [words.first(), words.last()].map(|word| tone_of_words(std::slice::from_ref(word?)));
    first == Some(Tone::InProgress) && !matches!(last, Some(Tone::Positive | Tone::Current))
}

/// Judges a condition that says that the object is Current, and is True.
fn judge_true_readiness_condition(condition: Condition, words: &[String]) -> Sign {
    // `Complete` is True of an object that has failed, too; then the reason says that it failed.
    if is_completion_type(words) && tone_of_text(condition.reason) >= Some(Tone::Degraded) {
        return Sign::failed(condition.to_string());
    }
    if sums_up_details(words) {
        Sign::current(describe_condition_status(condition))
    } else {
        Sign::good_part(describe_condition_status(condition))
    }
}

/// Returns whether the type of a condition begins with the end of an object that runs to completion.
fn is_completion_type(words: &[String]) -> bool {
    matches!(words[0].as_str(), "complete" | "completed" | "finished" | "done")
}

fn describe_condition_status(condition: Condition) -> String {
    format!("its condition {} is {}", condition.kind, condition.status)
}

/// Words in the reason of a condition about an optional part that the object does not have: `NotRequired`, `Skipped`.
const REASONS_OF_OPTIONAL_PARTS: [&str; 8] = [
    "required",
    "applicable",
    "needed",
    "disabled",
    "excludes",
    "unmanaged",
    "skipped",
    "optional",
];

/// Words in reasons of failures that the controller does not retry; `UpdateFailed` and the like are retried.
const PERMANENT_REASONS: [&str; 9] = [
    "fatal",
    "illegal",
    "invalid",
    "malformed",
    "permanent",
    "stalled",
    "terminal",
    "unrecoverable",
    "unsupported",
];

/// Judges a condition that says that the object is Current, and is False or Unknown.
fn judge_untrue_readiness_condition(
    condition: Condition,
    words: &[String],
    is_detail: bool,
    is_ready: bool,
) -> Option<Sign> {
    let reason = split_words(condition.reason);
    let tone_of_reason = tone_of_text(condition.reason);
    if is_detail && has_word(&reason, &REASONS_OF_OPTIONAL_PARTS) {
        return None;
    }
    // An object that has completed is not ready any more.
    if has_word(&reason, &["completed", "succeeded", "finished"]) {
        return None;
    }
    // An object that runs to completion may be ready for use before it completes.
    if is_completion_type(words) && is_ready {
        return None;
    }
    if tone_of_reason == Some(Tone::Paused) {
        return Some(Sign::paused(format!("it is paused: {condition}")));
    }
    // Tekton writes `Succeeded` as False only at the end, and as Unknown while a run is at work.
    let has_ended = words == ["succeeded"] && tone_of_reason != Some(Tone::InProgress);
    let needs_change = tone_of_reason == Some(Tone::Failed) && has_word(&reason, &PERMANENT_REASONS);
    if condition.status == "False" && (has_ended || needs_change) {
        return Some(Sign::failed(condition.to_string()));
    }
    Some(Sign::in_progress(condition.to_string()))
}

/// Returns whether the type of a condition is about a change in progress, as `ControlPlaneUpdating` is. During a
/// change the object may still be ready as it was before, so that `Ready` does not outweigh the condition.
fn is_ongoing_change_type(words: &[String]) -> bool {
    const CHANGES: [&str; 8] = [
        "updating",
        "upgrading",
        "deleting",
        "creating",
        "scaling",
        "restarting",
        "migrating",
        "rolling",
    ];
    has_word(words, &CHANGES)
}

/// Judges a condition that says that a controller is working, and is True.
fn judge_true_progress_condition(
    condition: Condition,
    words: &[String],
    context: ConditionContext,
) -> Option<Sign> {
    let reason = split_words(condition.reason);
    // Some controllers leave `Progressing` True after a rollout; then the reason says that the rollout is done, as
    // `NewReplicaSetAvailable` does.
    if words == ["progressing"] {
        let ends_well = reason
            .last()
            .is_some_and(|word| tone_of_words(std::slice::from_ref(word)) == Some(Tone::Current));
        let is_done = ends_well && tone_of_words(&reason) < Some(Tone::Paused);
        if context.is_ready || is_done {
            return None;
        }
    }
    if has_word(&reason, &["approval"]) {
        return Some(Sign::paused(format!("it is waiting for approval: {condition}")));
    }
    if context.is_ready && words.len() == 1 && matches!(words[0].as_str(), "partial" | "unknown") {
        return None;
    }
    Some(Sign::in_progress(condition.to_string()))
}
