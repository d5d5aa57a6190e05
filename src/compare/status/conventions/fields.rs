//! The signs in the fields of a status: phases, states, healths, flags, errors and numbers of replicas.

use serde_json::Value;

use super::super::object::ObjectView;
use super::Sign;
use super::words::{Tone, has_word, tone_of_text, words};

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
/// Collects the signs in the fields of the status.
pub(super) fn collect(object: ObjectView, found: &mut Vec<Sign>) {
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
            collect_from_text(name, &shown, text, found);
        }
        if FLAGS.contains(&name.as_str()) {
            flag(&shown, value, found);
        }
        if is_about_error(name) {
            error(&shown, value, found);
        }
        if let Some(inner) = value.as_object() {
            collect_from_map(name, inner, found);
        }
        if let Some(items) = value.as_array() {
            collect_from_list(name, items, found);
        }
    }
    numbers(object, found);
}

/// A field that sums the object up.
fn summary(name: &str, text: &str, found: &mut Vec<Sign>) {
    let shown = format!("its {name} is {text}");
    // As a condition, `Warning` says less.
    if text.eq_ignore_ascii_case("warning") {
        found.push(Sign::progress(shown));
        return;
    }
    found.extend(match tone_of_text(text) {
        Some(Tone::Final) => Some(Sign::failed(shown)),
        Some(Tone::Trouble | Tone::Progress) => Some(Sign::progress(shown)),
        Some(Tone::Paused) => Some(Sign::paused(shown)),
        Some(Tone::Good) => Some(Sign::good(shown)),
        Some(Tone::Fine) => Some(Sign::runs(shown)),
        None => None,
    });
}

/// A field such as `clusterState`, or `tasksReady: 2/3`.
fn collect_from_text(name: &str, shown: &str, text: &str, found: &mut Vec<Sign>) {
    if let Some((have, wanted)) = text.split_once('/').or_else(|| text.split_once(" of "))
        && let (Ok(have), Ok(wanted)) = (have.trim().parse::<i64>(), wanted.trim().parse::<i64>())
    {
        if have < wanted && is_about_readiness(name) {
            found.push(Sign::progress(format!("its {shown} is {text}")));
        }
        return;
    }
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    if !matches!(last, "state" | "status" | "phase" | "health" | "stage") || is_history(&words) {
        return;
    }
    let reason = format!("its {shown} is {text}");
    found.extend(match tone_of_text(text) {
        Some(Tone::Final | Tone::Trouble | Tone::Progress) => Some(Sign::detail(reason)),
        Some(Tone::Good) => Some(Sign::weak(reason)),
        _ => None,
    });
}

/// Returns whether a field reports an error: `errorMessage`, `failureReason`, `validationErrors`.
fn is_about_error(name: &str) -> bool {
    let words = words(name);
    has_word(&words, &["error", "errors", "failure"]) && !is_history(&words)
}

/// `lastRunStatus`, `phaseTransitionTimestamps`; but `lastObservedState` is of now.
fn is_history(words: &[String]) -> bool {
    has_word(words, &["history", "transition", "previous"])
        || has_word(words, &["last"]) && !has_word(words, &["observed"])
}

/// `ready: 2/3`, `statusReplicas: 2/3`
fn is_about_readiness(name: &str) -> bool {
    has_word(
        &words(name),
        &["ready", "replicas", "available", "healthy", "nodes"],
    )
}

/// A map below the status, such as `applicationState: {state: RUNNING}`.
fn collect_from_map(name: &str, fields: &serde_json::Map<String, Value>, found: &mut Vec<Sign>) {
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
                collect_from_text(field, &shown, text, found);
            }
        }
        if is_state && is_about_error(field) {
            error(&shown, value, found);
        }
    }
}

fn flag(name: &str, value: &Value, found: &mut Vec<Sign>) {
    let value = match value {
        Value::Bool(value) => *value,
        Value::String(text) if text.eq_ignore_ascii_case("true") => true,
        Value::String(text) if text.eq_ignore_ascii_case("false") => false,
        _ => return,
    };
    found.push(if value {
        Sign::good(format!("its {name} is true"))
    } else {
        Sign::progress(format!("its {name} is false"))
    });
}

/// An error counts only if no other sign is good: some controllers leave an old error in the status.
fn error(name: &str, value: &Value, found: &mut Vec<Sign>) {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Object(fields) => fields.get("message").and_then(Value::as_str).unwrap_or_default(),
        Value::Array(items) => items.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    if !text.is_empty() {
        found.push(Sign::detail(format!("{name}: {text}")));
    }
}

/// Compares the numbers of parts with those that are wanted: `readyReplicas` with `spec.replicas`, `availableNodes`
/// with `status.expectedNodes`, `ready` with `status.size`.
fn numbers(object: ObjectView, found: &mut Vec<Sign>) {
    let Some(fields) = object.0.get("status").and_then(Value::as_object) else {
        return;
    };
    for (name, value) in fields {
        let Some(have) = value.as_i64() else { continue };
        for word in ["unavailable", "unhealthy", "unready"] {
            if let Some(parts) = parts_after(name, word)
                && have > 0
                && are_counted(parts)
            {
                found.push(Sign::detail(format!("{word} {}: {have}", parts.to_lowercase())));
            }
        }
        for word in ["ready", "available", "healthy", "updated"] {
            if let Some(parts) = parts_after(name, word)
                && let Some(wanted) = wanted(object, word, parts)
            {
                let parts = if parts.is_empty() { "parts" } else { parts };
                found.push(compare_counts(
                    have,
                    wanted,
                    &format!("{} are {word}", parts.to_lowercase()),
                ));
            }
        }
    }
    let scheduled = object.number("/status/desiredNumberScheduled");
    if let (Some(have), Some(wanted)) = (object.number("/status/numberAvailable"), scheduled) {
        found.push(compare_counts(have, wanted, "are ready"));
    }
}

/// Returns `Replicas` of `readyReplicas` after `ready`, and nothing of `readySeconds` after `read`.
fn parts_after<'n>(name: &'n str, word: &str) -> Option<&'n str> {
    let parts = name.strip_prefix(word)?;
    let is_whole_word = parts.starts_with(|first: char| first.is_ascii_uppercase());
    (parts.is_empty() || is_whole_word).then_some(parts)
}

/// Returns whether these are parts of an object that run. Of other things, such as addresses of a pool, all are
/// hardly ever available.
fn are_counted(parts: &str) -> bool {
    const RUNNING: [&str; 12] = [
        "Replicas",
        "Nodes",
        "Instances",
        "Members",
        "Workers",
        "Pods",
        "Machines",
        "Servers",
        "Brokers",
        "Shards",
        "Agents",
        "Masters",
    ];
    RUNNING.contains(&parts)
}

/// Returns how many of these parts, as the name of a field has them, an object is to have.
fn wanted(object: ObjectView, word: &str, parts: &str) -> Option<i64> {
    let mut letters = parts.chars();
    let names = match letters.next() {
        None if word == "ready" => ["/status/size", "/spec/size", "/spec/replicas", "/status/replicas"]
            .map(str::to_owned)
            .to_vec(),
        None => Vec::new(),
        Some(_) if word == "available" && !are_counted(parts) => Vec::new(),
        Some(first) => {
            let plain = format!("{}{}", first.to_ascii_lowercase(), letters.as_str());
            vec![
                format!("/status/desired{parts}"),
                format!("/status/expected{parts}"),
                format!("/status/total{parts}"),
                format!("/spec/{plain}"),
                format!("/status/{plain}"),
            ]
        }
    };
    names.iter().find_map(|name| object.number(name))
}

/// Collects the signs in a status without any other sign: what its texts say, be their names unknown. A text is a word
/// as controllers write them, such as `Pending`, or the message of a field that has one: names of other objects and
/// addresses may have any word in them.
pub(super) fn collect_texts(object: ObjectView, found: &mut Vec<Sign>) {
    let fields = object.0.get("status").and_then(Value::as_object);
    for (name, value) in fields.into_iter().flatten() {
        let Some(text) = value.as_str() else { continue };
        let is_word = text.starts_with(char::is_uppercase) && text.chars().all(char::is_alphabetic);
        let is_message = matches!(name.as_str(), "message" | "reason");
        let is_bad = matches!(
            tone_of_text(text),
            Some(Tone::Final | Tone::Trouble | Tone::Progress)
        );
        if (is_word || is_message) && is_bad && !is_history(&words(name)) {
            found.push(Sign::detail(format!("its status.{name} is {text}")));
        }
    }
}

/// A list of parts with replicas of their own, such as instances.
fn collect_from_list(name: &str, items: &[Value], found: &mut Vec<Sign>) {
    for item in items {
        let [ready, wanted] = ["readyReplicas", "replicas"].map(|field| item.get(field)?.as_i64());
        if let (Some(have), Some(wanted)) = (ready, wanted)
            && have < wanted
        {
            found.push(compare_counts(
                have,
                wanted,
                &format!("replicas of its {name} are ready"),
            ));
        }
        for field in FLAGS.into_iter().chain(["applied"]) {
            if item.get(field) == Some(&Value::Bool(false)) && !is_history(&words(name)) {
                found.push(Sign::detail(format!("{field} is false in its status.{name}")));
            }
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
            found.push(Sign::progress(format!(
                "the {field} in its status.{name} is {text}"
            )));
        }
    }
}

fn compare_counts(have: i64, wanted: i64, what: &str) -> Sign {
    let reason = format!("{have} of {wanted} {what}");
    if have == 0 && wanted > 0 {
        Sign::progress(reason)
    } else if have < wanted {
        Sign::detail(reason)
    } else {
        Sign::weak(reason)
    }
}
