//! The signs in the fields of a status: phases, states, healths, flags, errors and numbers of replicas.

use serde_json::Value;

use super::super::object::Object;
use super::Evidence;
use super::words::{Tone, tone_of_text, words};

/// Fields of a status that sum the object up.
const SUMMARIES: [&str; 12] = [
    "phase",
    "state",
    "status",
    "health",
    "currentStatus",
    "overallStatus",
    "currentState",
    "overallState",
    "compliant",
    "printableStatus",
    "healthStatus",
    "statusText",
];
/// Flags that are false until the object is ready.
const FLAGS: [&str; 7] = [
    "ready",
    "readyToUse",
    "healthy",
    "available",
    "synced",
    "isReady",
    "succeeded",
];
/// Fields that exist if something is wrong.
const ERRORS: [&str; 6] = [
    "error",
    "errorMessage",
    "failureMessage",
    "failureReason",
    "validationError",
    "errors",
];

/// Collects the signs in the fields of the status.
pub(super) fn evidence(object: Object, found: &mut Vec<Evidence>) {
    let Some(status) = object.0.get("status") else {
        return;
    };
    if let Some(text) = status.as_str() {
        summary("status", text, found);
    }
    let Some(fields) = status.as_object() else { return };
    for (name, value) in fields {
        let shown = format!("status.{name}");
        if SUMMARIES.contains(&name.as_str()) {
            if let Some(text) = value.as_str() {
                summary(&shown, text, found);
            }
        } else if let Some(text) = value.as_str() {
            of_text(name, &shown, text, found);
        }
        if FLAGS.contains(&name.as_str()) {
            flag(&shown, value, found);
        }
        if ERRORS.contains(&name.as_str()) {
            error(&shown, value, found);
        }
        if let Some(inner) = value.as_object() {
            of_part(name, inner, found);
        }
        if let Some(items) = value.as_array() {
            of_items(name, items, found);
        }
    }
    numbers(object, found);
}

/// A field that sums the object up.
fn summary(name: &str, text: &str, found: &mut Vec<Evidence>) {
    let shown = format!("its {name} is {text}");
    // As a condition, `Warning` says less.
    if text.eq_ignore_ascii_case("warning") {
        found.push(Evidence::progress(shown));
        return;
    }
    found.extend(match tone_of_text(text) {
        Some(Tone::Final) => Some(Evidence::failed(shown)),
        Some(Tone::Trouble | Tone::Progress) => Some(Evidence::progress(shown)),
        Some(Tone::Paused) => Some(Evidence::paused(shown)),
        Some(Tone::Good | Tone::Fine) => Some(Evidence::good(shown)),
        None => None,
    });
}

/// A field such as `clusterState`, or `tasksReady: 2/3`.
fn of_text(name: &str, shown: &str, text: &str, found: &mut Vec<Evidence>) {
    if let Some((have, wanted)) = text.split_once('/')
        && let (Ok(have), Ok(wanted)) = (have.trim().parse::<i64>(), wanted.trim().parse::<i64>())
    {
        if have < wanted && is_about_readiness(name) {
            found.push(Evidence::progress(format!("its {shown} is {text}")));
        }
        return;
    }
    let words = words(name);
    let is_state = words
        .last()
        .is_some_and(|word| matches!(word.as_str(), "state" | "status" | "phase" | "health" | "stage"))
        && !is_history(&words);
    if !is_state {
        return;
    }
    let reason = format!("its {shown} is {text}");
    found.extend(match tone_of_text(text) {
        Some(Tone::Final | Tone::Trouble | Tone::Progress) => Some(Evidence::detail(reason)),
        Some(Tone::Good) => Some(Evidence::weak(reason)),
        _ => None,
    });
}

/// `lastRunStatus`, `phaseTransitionTimestamps`; but `lastObservedState` is of now.
fn is_history(words: &[String]) -> bool {
    let has = |name: &str| words.iter().any(|word| word == name);
    has("history") || has("transition") || has("previous") || has("last") && !has("observed")
}

/// `ready: 2/3`, `statusReplicas: 2/3`
fn is_about_readiness(name: &str) -> bool {
    words(name).iter().any(|word| {
        matches!(
            word.as_str(),
            "ready" | "replicas" | "available" | "healthy" | "nodes"
        )
    })
}

/// A map below the status, such as `applicationState: {state: RUNNING}`.
fn of_part(name: &str, fields: &serde_json::Map<String, Value>, found: &mut Vec<Evidence>) {
    // A provider has its own terms for the resource that it manages.
    if matches!(
        name,
        "atProvider" | "outputs" | "lastUpdate" | "lastOperation" | "resources"
    ) {
        return;
    }
    let is_state = words(name)
        .last()
        .is_some_and(|word| matches!(word.as_str(), "state" | "status" | "health" | "result"));
    for (field, value) in fields {
        let shown = format!("status.{name}.{field}");
        // A status for each controller of the object.
        if name == "statuses"
            && let Some(text) = value.get("state").and_then(Value::as_str)
        {
            summary(&format!("{shown}.state"), text, found);
        }
        if let Some(text) = value.as_str() {
            if field == "health" || is_state && matches!(field.as_str(), "state" | "status" | "phase") {
                summary(&shown, text, found);
            } else {
                of_text(field, &shown, text, found);
            }
        }
        if is_state && ERRORS.contains(&field.as_str()) {
            error(&shown, value, found);
        }
    }
}

fn flag(name: &str, value: &Value, found: &mut Vec<Evidence>) {
    let value = match value {
        Value::Bool(value) => *value,
        Value::String(text) if text.eq_ignore_ascii_case("true") => true,
        Value::String(text) if text.eq_ignore_ascii_case("false") => false,
        _ => return,
    };
    found.push(if value {
        Evidence::good(format!("its {name} is true"))
    } else {
        Evidence::progress(format!("its {name} is false"))
    });
}

/// An error counts only if no other sign is good: some controllers leave an old error in the status.
fn error(name: &str, value: &Value, found: &mut Vec<Evidence>) {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Object(fields) => fields.get("message").and_then(Value::as_str).unwrap_or_default(),
        Value::Array(items) => items.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    if !text.is_empty() {
        found.push(Evidence::detail(format!("{name}: {text}")));
    }
}

/// Numbers of which the first is to reach the second, as the status has them.
const PAIRS: [(&str, &str); 6] = [
    ("availableNodes", "expectedNodes"),
    ("readyNodes", "nodes"),
    ("readyInstances", "instances"),
    ("readyMembers", "members"),
    ("numberAvailable", "desiredNumberScheduled"),
    ("ready", "size"),
];

/// Compares the numbers of replicas and the like.
fn numbers(object: Object, found: &mut Vec<Evidence>) {
    let number = |names: &[&str]| names.iter().find_map(|name| object.number(name));
    let wanted = number(&["/status/desiredReplicas", "/spec/replicas", "/status/replicas"]);
    let have = number(&["/status/readyReplicas", "/status/availableReplicas"]);
    if let (Some(wanted), Some(have)) = (wanted, have) {
        found.push(of_all(have, wanted, "replicas are ready"));
    }
    for (have, wanted) in PAIRS {
        let number = |name: &str| object.number(&format!("/status/{name}"));
        if let (Some(have), Some(wanted)) = (number(have), number(wanted)) {
            found.push(of_all(have, wanted, "are ready"));
        }
    }
    let unavailable = object.count("/status/unavailableReplicas");
    if unavailable > 0 {
        found.push(Evidence::detail(format!(
            "{unavailable} replicas are unavailable"
        )));
    }
    let updated = object.number("/status/updatedReplicas");
    if let (Some(wanted), Some(updated)) = (object.number("/spec/replicas"), updated)
        && updated < wanted
    {
        found.push(of_all(updated, wanted, "replicas are of the latest revision"));
    }
}

/// A list of parts with replicas of their own, such as instances.
fn of_items(name: &str, items: &[Value], found: &mut Vec<Evidence>) {
    for item in items {
        let number = |field: &str| item.get(field).and_then(Value::as_i64);
        if let (Some(have), Some(wanted)) = (number("readyReplicas"), number("replicas"))
            && have < wanted
        {
            found.push(of_all(have, wanted, &format!("replicas of its {name} are ready")));
        }
        let state = SUMMARIES
            .into_iter()
            .find_map(|field| Some((field, item.get(field)?.as_str()?)));
        if let Some((field, text)) = state
            && !is_history(&words(name))
            && !text.eq_ignore_ascii_case("unknown")
            && matches!(
                tone_of_text(text),
                Some(Tone::Final | Tone::Trouble | Tone::Progress)
            )
        {
            found.push(Evidence::progress(format!(
                "the {field} in its status.{name} is {text}"
            )));
        }
    }
}

fn of_all(have: i64, wanted: i64, what: &str) -> Evidence {
    let reason = format!("{have} of {wanted} {what}");
    if have == 0 && wanted > 0 {
        Evidence::progress(reason)
    } else if have < wanted {
        Evidence::detail(reason)
    } else {
        Evidence::weak(reason)
    }
}
