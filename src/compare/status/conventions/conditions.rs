//! The signs in the conditions of an object, by the polarity of their types.

use serde_json::Value;

use super::super::object::{Condition, ObjectView};
use super::Sign;
use super::words::{Tone, has_word, tone, tone_of_text, words};

/// Lists below `status` whose items have conditions of their own: routes and policies have them
/// for each parent, gateways for each listener.
const NESTED: [&str; 4] = [
    "/status/parents",
    "/status/ancestors",
    "/status/listeners",
    "/status/ingress",
];
/// Lists of conditions of the whole object.
const WHOLE: [&str; 3] = [
    "/status/conditions",
    "/status/conditionedStatus/conditions",
    "/status/status/conditions",
];

/// Collects the signs in all conditions of an object.
pub(super) fn collect(object: ObjectView, found: &mut Vec<Sign>) {
    let generation = object.number("/metadata/generation");
    for pointer in WHOLE {
        collect_from_conditions(object.array(pointer), generation, "", found);
    }
    for pointer in NESTED {
        let place = pointer.trim_start_matches("/status/");
        if object
            .0
            .pointer(pointer)
            .is_some_and(|items| items.as_array().is_some_and(Vec::is_empty))
            && matches!(place, "parents" | "ancestors")
        {
            found.push(Sign::progress(format!("it has no {place} yet")));
        }
        for item in object.array(pointer) {
            let prefix = format!("{}: ", name_of(item, place));
            collect_from_conditions(ObjectView(item).array("/conditions"), generation, &prefix, found);
        }
    }
}

/// The name of an item with conditions of its own, for people.
fn name_of(item: &Value, place: &str) -> String {
    let kind = match place {
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

/// The role of a condition in the status of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionRole {
    /// It sums the object up: `Ready`, `Synced`.
    Summary,
    /// It is about a part of the object or a step: `DashboardSynchronized`.
    Detail,
}

fn collect_from_conditions(
    conditions: &[Value],
    generation: Option<i64>,
    prefix: &str,
    found: &mut Vec<Sign>,
) {
    let read: Vec<(Condition, Vec<String>, &Value)> = conditions
        .iter()
        .map(|value| {
            let condition = Condition::new(value);
            // `platform.example.com/app-ready`
            let name = condition.kind.rsplit('/').next().unwrap_or_default();
            (condition, words(name), value)
        })
        .collect();
    let has_summary = read.iter().any(|(_, words, _)| sums_up_details(words));
    let is_ready = read
        .iter()
        .any(|(condition, words, _)| words.as_slice() == ["ready"] && condition.status == "True");
    for (condition, words, value) in &read {
        let role = if is_summary(words) || words.len() == 1 {
            ConditionRole::Summary
        } else {
            ConditionRole::Detail
        };
        let context = ConditionContext {
            role,
            has_summary,
            is_ready,
        };
        if let Some(mut sign) = judge_condition(*condition, words, context) {
            let seen = ObjectView(value).number("/observedGeneration");
            if let (Some(seen), Some(generation), ConditionRole::Summary) = (seen, generation, role)
                && seen < generation
            {
                sign = Sign::progress(format!(
                    "its condition {} is of generation {seen} of {generation}",
                    condition.kind
                ));
            }
            sign.reason.insert_str(0, prefix);
            found.push(sign);
        }
    }
}

/// Returns whether a condition of this type sums an object up.
fn is_summary(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["resolved", "refs"] | ["not", "ready"] | ["in", "sync"] => true,
        [word] => tone(&[(*word).to_owned()]) == Some(Tone::Good),
        _ => false,
    }
}

/// Returns whether a condition of this type covers those about details. `Accepted`, `Deployed` and
/// the like are steps on the way.
fn sums_up_details(words: &[String]) -> bool {
    const WHOLE: [&str; 10] = [
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
    matches!(words, [word] if WHOLE.contains(&word.as_str()))
}

/// The role of a condition among the others of its list.
#[derive(Debug, Clone, Copy)]
struct ConditionContext {
    role: ConditionRole,
    has_summary: bool,
    is_ready: bool,
}

fn judge_condition(condition: Condition, words: &[String], context: ConditionContext) -> Option<Sign> {
    let is_detail = context.role == ConditionRole::Detail;
    // `LastBackupSucceeded` is history.
    if has_word(words, &["last", "previous"]) {
        return None;
    }
    let Some(tone) = tone(words) else {
        return (condition.status == "Unknown").then(|| Sign::detail(condition.to_string()));
    };
    match (tone, condition.status) {
        (Tone::Good, "True") => Some(good(condition, words)),
        // `Running`, with the message `Waiting for …`.
        (Tone::Fine, "True") if !is_detail && begins_with_work(condition.message) => {
            Some(Sign::detail(condition.to_string()))
        }
        (Tone::Fine, "True") => (!is_detail).then(|| Sign::weak(affirm(condition))),
        (Tone::Fine, "False" | "Unknown") if is_step(words) => Some(Sign::detail(condition.to_string())),
        (Tone::Good, _) if !is_detail || !context.has_summary => {
            not_good(condition, words, is_detail, context.is_ready)
        }
        (Tone::Progress, "True") if !(is_detail && context.is_ready) || is_change(words) => {
            progressing(condition, words, context)
        }
        (Tone::Progress, "Unknown") if words == ["progressing"] => {
            Some(Sign::progress(condition.to_string()))
        }
        (Tone::Progress, "False")
            if words == ["progressing"] && tone_of_text(condition.reason) >= Some(Tone::Trouble) =>
        {
            Some(Sign::failed(condition.to_string()))
        }
        (Tone::Paused, "True") if words.len() == 1 => {
            Some(Sign::paused(format!("it is {}: {condition}", words[0])))
        }
        (Tone::Trouble, "True") if !(is_detail && context.is_ready) => {
            Some(Sign::progress(condition.to_string()))
        }
        (Tone::Final, "True") if !is_detail => Some(Sign::failed(condition.to_string())),
        (Tone::Final, "True") if !context.is_ready => Some(Sign::progress(condition.to_string())),
        _ => None,
    }
}

/// Returns whether an object has to be what this type says before it works. It need not be `Enabled` or a `Leader`.
fn is_step(words: &[String]) -> bool {
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

/// Returns whether a message begins with what a controller does, and does not end with what it has done.
fn begins_with_work(message: &str) -> bool {
    let words = words(message);
    let [first, last] = [words.first(), words.last()].map(|word| tone(std::slice::from_ref(word?)));
    first == Some(Tone::Progress) && !matches!(last, Some(Tone::Fine | Tone::Good))
}

/// A good condition is True. `Complete` is True of a failed object, too; then the reason says so.
fn good(condition: Condition, words: &[String]) -> Sign {
    let is_end = matches!(words[0].as_str(), "complete" | "completed" | "finished" | "done");
    if is_end && tone_of_text(condition.reason) >= Some(Tone::Trouble) {
        return Sign::failed(condition.to_string());
    }
    // `Accepted`, `Deployed` and the like are steps on the way.
    if sums_up_details(words) {
        Sign::good(affirm(condition))
    } else {
        Sign::weak(affirm(condition))
    }
}

fn affirm(condition: Condition) -> String {
    format!("its condition {} is {}", condition.kind, condition.status)
}

/// Reasons of an optional part of an object that does not exist.
const NOT_WANTED: [&str; 8] = [
    "required",
    "applicable",
    "needed",
    "disabled",
    "excludes",
    "unmanaged",
    "skipped",
    "optional",
];

fn not_good(condition: Condition, words: &[String], is_detail: bool, is_ready: bool) -> Option<Sign> {
    let reason = super::words::words(condition.reason);
    let of_reason = tone_of_text(condition.reason);
    if is_detail && has_word(&reason, &NOT_WANTED) {
        return None;
    }
    // It is not ready any more, since it has ended.
    if has_word(&reason, &["completed", "succeeded", "finished"]) {
        return None;
    }
    // It runs to completion, and is ready for use before.
    let is_end = matches!(words[0].as_str(), "complete" | "completed" | "finished" | "done");
    if is_end && is_ready {
        return None;
    }
    if of_reason == Some(Tone::Paused) {
        return Some(Sign::paused(format!("it is paused: {condition}")));
    }
    let is_over = words == ["succeeded"] && condition.status == "False" && of_reason != Some(Tone::Progress);
    if condition.status == "False" && (is_over || of_reason == Some(Tone::Final) && is_hopeless(&reason)) {
        return Some(Sign::failed(condition.to_string()));
    }
    Some(Sign::progress(condition.to_string()))
}

/// Returns whether a reason says that the object does not recover by itself. `UpdateFailed` and the
/// like are retried.
fn is_hopeless(reason: &[String]) -> bool {
    const HOPELESS: [&str; 9] = [
        "invalid",
        "unrecoverable",
        "terminal",
        "permanent",
        "fatal",
        "unsupported",
        "malformed",
        "illegal",
        "stalled",
    ];
    has_word(reason, &HOPELESS)
}

/// Returns whether the type is about a change in progress, as `ControlPlaneUpdating` does. While it
/// lasts, the object may still be ready as it was before.
fn is_change(words: &[String]) -> bool {
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

/// `Progressing` stays True after a rollout for some controllers, with a reason that says so.
fn progressing(condition: Condition, words: &[String], context: ConditionContext) -> Option<Sign> {
    if words == ["progressing"] {
        let reason = super::words::words(condition.reason);
        let is_done = reason
            .last()
            .is_some_and(|word| tone(std::slice::from_ref(word)) == Some(Tone::Good))
            && tone(&reason) < Some(Tone::Paused);
        if context.is_ready || is_done {
            return None;
        }
    }
    if has_word(&super::words::words(condition.reason), &["approval"]) {
        return Some(Sign::paused(format!("it is waiting for approval: {condition}")));
    }
    if context.is_ready && words.len() == 1 && matches!(words[0].as_str(), "partial" | "unknown") {
        return None;
    }
    Some(Sign::progress(condition.to_string()))
}
