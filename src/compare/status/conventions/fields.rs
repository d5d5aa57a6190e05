//! The signs in the fields of a status: phases, states, healths, flags, errors and numbers of replicas.

use serde_json::Value;

use super::super::object::ObjectView;
use super::Sign;
use super::words::{Tone, has_word, split_words, tone_of_text};

/// Fields of a status that sum the object up.
const SUMMARY_FIELDS: [&str; 12] = [
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
const READY_FLAGS: [&str; 7] = [
    "ready",
    "readyToUse",
    "healthy",
    "available",
    "synced",
    "isReady",
    "succeeded",
];

/// Collects the signs in the fields of the status.
pub(super) fn collect_signs(object: ObjectView, found: &mut Vec<Sign>) {
    let Some(status) = object.0.get("status") else {
        return;
    };
    if let Some(text) = status.as_str() {
        collect_from_summary("status", text, found);
    }
    let Some(fields) = status.as_object() else { return };
    for (name, value) in fields {
        let shown = format!("status.{name}");
        if SUMMARY_FIELDS.contains(&name.as_str()) {
            if let Some(text) = value.as_str() {
                collect_from_summary(&shown, text, found);
            }
        } else if let Some(text) = value.as_str() {
            collect_from_text(name, &shown, text, found);
        }
        if READY_FLAGS.contains(&name.as_str()) {
            collect_from_ready_flag(&shown, value, found);
        }
        if is_about_error(name) {
            collect_from_error(&shown, value, found);
        }
        if let Some(inner) = value.as_object() {
            collect_from_map(name, inner, found);
        }
        if let Some(items) = value.as_array() {
            collect_bad_signs_from_list(name, items, found);
        }
    }
    collect_from_counts(object, found);
}

/// Collects the sign in a field that sums the object up.
fn collect_from_summary(name: &str, text: &str, found: &mut Vec<Sign>) {
    let shown = format!("its {name} is {text}");
    // A condition `Warning` may be about anything, and has the tone of `Positive`. A phase `Warning` is about the
    // whole object.
    if text.eq_ignore_ascii_case("warning") {
        found.push(Sign::in_progress(shown).with_field_value_as_reason());
        return;
    }
    let sign = match tone_of_text(text) {
        Some(Tone::Failed) => Some(Sign::failed(shown)),
        Some(Tone::Degraded | Tone::InProgress) => Some(Sign::in_progress(shown)),
        Some(Tone::Paused) => Some(Sign::paused(shown)),
        Some(Tone::Current) => Some(Sign::current(shown)),
        Some(Tone::Positive) => Some(Sign::current_unless_it_ends(shown)),
        None => None,
    };
    found.extend(sign.map(Sign::with_field_value_as_reason));
}

/// Collects the sign in a text field such as `clusterState`, or `tasksReady: 2/3`.
fn collect_from_text(name: &str, name_in_messages: &str, text: &str, found: &mut Vec<Sign>) {
    if let Some((have, wanted)) = text.split_once('/').or_else(|| text.split_once(" of "))
        && let (Ok(have), Ok(wanted)) = (have.trim().parse::<i64>(), wanted.trim().parse::<i64>())
    {
        if have < wanted && is_about_readiness(name) {
            found.push(
                Sign::in_progress(format!("its {name_in_messages} is {text}")).with_field_value_as_reason(),
            );
        }
        return;
    }
    let words = split_words(name);
    let last = words.last().map_or("", String::as_str);
    if !matches!(last, "state" | "status" | "phase" | "health" | "stage") || are_words_about_the_past(&words)
    {
        return;
    }
    let reason = format!("its {name_in_messages} is {text}");
    let sign = match tone_of_text(text) {
        Some(Tone::Failed | Tone::Degraded | Tone::InProgress) => Some(Sign::bad_part(reason)),
        Some(Tone::Current) => Some(Sign::good_part(reason)),
        _ => None,
    };
    found.extend(sign.map(Sign::with_field_value_as_reason));
}

/// Returns whether a field reports an error: `errorMessage`, `failureReason`, `validationErrors`.
fn is_about_error(name: &str) -> bool {
    let words = split_words(name);
    has_word(&words, &["error", "errors", "failure"]) && !are_words_about_the_past(&words)
}

/// Returns whether the words of a field's name say that the field is about the past: `lastRunStatus`,
/// `phaseTransitionTimestamps`, but not `lastObservedState`.
fn are_words_about_the_past(words: &[String]) -> bool {
    has_word(words, &["history", "transition", "previous"])
        || has_word(words, &["last"]) && !has_word(words, &["observed"])
}

/// Returns whether a field with a text such as `2/3` counts parts that are ready: `ready`, `statusReplicas`.
fn is_about_readiness(name: &str) -> bool {
    has_word(
        &split_words(name),
        &["ready", "replicas", "available", "healthy", "nodes"],
    )
}

/// Collects the signs in a map of the status, such as `applicationState: {state: RUNNING}`.
fn collect_from_map(name: &str, fields: &serde_json::Map<String, Value>, found: &mut Vec<Sign>) {
    // These hold what a cloud provider reports about the resource behind the object, in words of the provider.
    if matches!(
        name,
        "atProvider" | "outputs" | "lastUpdate" | "lastOperation" | "resources"
    ) {
        return;
    }
    let is_state = split_words(name)
        .last()
        .is_some_and(|word| matches!(word.as_str(), "state" | "status" | "health" | "result"));
    for (field, value) in fields {
        let shown = format!("status.{name}.{field}");
        // A status for each controller of the object.
        if name == "statuses"
            && let Some(text) = value.get("state").and_then(Value::as_str)
        {
            collect_from_summary(&format!("{shown}.state"), text, found);
        }
        if let Some(text) = value.as_str() {
            if field == "health" || is_state && matches!(field.as_str(), "state" | "status" | "phase") {
                collect_from_summary(&shown, text, found);
            } else {
                collect_from_text(field, &shown, text, found);
            }
        }
        if is_state && is_about_error(field) {
            collect_from_error(&shown, value, found);
        }
    }
}

fn collect_from_ready_flag(name: &str, value: &Value, found: &mut Vec<Sign>) {
    let value = match value {
        Value::Bool(value) => *value,
        Value::String(text) if text.eq_ignore_ascii_case("true") => true,
        Value::String(text) if text.eq_ignore_ascii_case("false") => false,
        _ => return,
    };
    let sign = if value {
        Sign::current(format!("its {name} is true"))
    } else {
        Sign::in_progress(format!("its {name} is false"))
    };
    found.push(sign.with_field_value_as_reason());
}

/// Collects the sign in an error. It is only a detail, which a sign that the object is Current outweighs: some
/// controllers leave an old error in the status.
fn collect_from_error(name: &str, value: &Value, found: &mut Vec<Sign>) {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Object(fields) => fields.get("message").and_then(Value::as_str).unwrap_or_default(),
        Value::Array(items) => items.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    if !text.is_empty() {
        found.push(Sign::bad_part(format!("{name}: {text}")));
    }
}

/// Collects the signs in counts of parts: compares `readyReplicas` with `spec.replicas`, `availableNodes` with
/// `status.expectedNodes`, `ready` with `status.size`.
fn collect_from_counts(object: ObjectView, found: &mut Vec<Sign>) {
    let Some(fields) = object.0.get("status").and_then(Value::as_object) else {
        return;
    };
    for (name, value) in fields {
        let Some(have) = value.as_i64() else { continue };
        for word in ["unavailable", "unhealthy", "unready"] {
            if let Some(parts) = strip_leading_word(name, word)
                && have > 0
                && is_name_of_parts_that_run(parts)
            {
                found.push(Sign::bad_part(format!("{word} {}: {have}", parts.to_lowercase())));
            }
        }
        for word in ["ready", "available", "healthy", "updated"] {
            if let Some(parts) = strip_leading_word(name, word)
                && let Some(wanted) = find_wanted_count(object, word, parts)
            {
                let parts = if parts.is_empty() { "parts" } else { parts };
                found.push(sign_of_counts(
                    have,
                    wanted,
                    &format!("{} are {word}", parts.to_lowercase()),
                ));
            }
        }
    }
    let scheduled = object.number("/status/desiredNumberScheduled");
    if let (Some(have), Some(wanted)) = (object.number("/status/numberAvailable"), scheduled) {
        found.push(sign_of_counts(have, wanted, "are ready"));
    }
}

/// Returns `Replicas` of `readyReplicas` after `ready`, and nothing of `readySeconds` after `read`.
fn strip_leading_word<'n>(name: &'n str, word: &str) -> Option<&'n str> {
    let parts = name.strip_prefix(word)?;
    let is_whole_word = parts.starts_with(|first: char| first.is_ascii_uppercase());
    (parts.is_empty() || is_whole_word).then_some(parts)
}

/// Returns whether these are parts of an object that run. For other parts, such as the addresses of a pool, the count
/// of available ones says nothing: they are hardly ever all available.
fn is_name_of_parts_that_run(parts: &str) -> bool {
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

/// Returns how many parts an object is to have; `parts` is what follows `word` in the name of the field that counts
/// them, such as `Replicas` of `readyReplicas`.
fn find_wanted_count(object: ObjectView, word: &str, parts: &str) -> Option<i64> {
    let mut letters = parts.chars();
    let names = match letters.next() {
        None if word == "ready" => ["/status/size", "/spec/size", "/spec/replicas", "/status/replicas"]
            .map(str::to_owned)
            .to_vec(),
        None => Vec::new(),
        Some(_) if word == "available" && !is_name_of_parts_that_run(parts) => Vec::new(),
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

/// Collects the signs in the texts of a status that has no other sign, whatever the names of their fields.
///
/// Only a single word as controllers write them, such as `Pending`, and the fields `message` and `reason` count. Other
/// texts are names of other objects or addresses, which can have any word in them.
pub(super) fn collect_bad_signs_from_any_text(object: ObjectView, found: &mut Vec<Sign>) {
    let fields = object.0.get("status").and_then(Value::as_object);
    for (name, value) in fields.into_iter().flatten() {
        let Some(text) = value.as_str() else { continue };
        let is_word = text.starts_with(char::is_uppercase) && text.chars().all(char::is_alphabetic);
        let is_message = matches!(name.as_str(), "message" | "reason");
        let is_bad = matches!(
            tone_of_text(text),
            Some(Tone::Failed | Tone::Degraded | Tone::InProgress)
        );
        if (is_word || is_message) && is_bad && !are_words_about_the_past(&split_words(name)) {
            found.push(Sign::bad_part(format!("its status.{name} is {text}")).with_field_value_as_reason());
        }
    }
}

/// Collects the signs in a list of parts, such as instances, which may have replicas of their own.
fn collect_bad_signs_from_list(name: &str, items: &[Value], found: &mut Vec<Sign>) {
    for item in items {
        let [ready, wanted] = ["readyReplicas", "replicas"].map(|field| item.get(field)?.as_i64());
        if let (Some(have), Some(wanted)) = (ready, wanted)
            && have < wanted
        {
            found.push(sign_of_counts(
                have,
                wanted,
                &format!("replicas of its {name} are ready"),
            ));
        }
        for field in READY_FLAGS.into_iter().chain(["applied"]) {
            if item.get(field) == Some(&Value::Bool(false)) && !are_words_about_the_past(&split_words(name)) {
                found.push(Sign::bad_part(format!("{field} is false in its status.{name}")));
            }
        }
        let state = SUMMARY_FIELDS
            .into_iter()
            .find_map(|field| Some((field, item.get(field)?.as_str()?)));
        if let Some((field, text)) = state
            && !are_words_about_the_past(&split_words(name))
            && !text.eq_ignore_ascii_case("unknown")
            && matches!(
                tone_of_text(text),
                Some(Tone::Failed | Tone::Degraded | Tone::InProgress)
            )
        {
            found.push(Sign::in_progress(format!(
                "the {field} in its status.{name} is {text}"
            )));
        }
    }
}

fn sign_of_counts(have: i64, wanted: i64, what: &str) -> Sign {
    let reason = format!("{have} of {wanted} {what}");
    if have == 0 && wanted > 0 {
        Sign::in_progress(reason)
    } else if have < wanted {
        Sign::bad_part(reason)
    } else {
        Sign::good_part(reason)
    }
}
