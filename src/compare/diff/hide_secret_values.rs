//! Hides the values of Secrets, and shows whether they differ.
//!
//! Annotations and labels of a Secret may have copies of its values, as that of client-side apply has, so they are hidden
//! as well. The placeholders are those of kubectl (`pkg/cmd/diff`, `Masker`), which shows annotations and labels.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::model::secret_value::{METADATA_WITH_COPIES, may_hold_copy, secret_fields};
use crate::model::text::HIDDEN;

/// The placeholder for a live value that differs from the predicted value. If the values are equal, or only one of them
/// exists, the placeholder is [`HIDDEN`].
pub const BEFORE: &str = "*** (before)";
/// The placeholder for a predicted value that differs from the live value.
pub const AFTER: &str = "*** (after)";

/// Hides the values of both states of a Secret, and its annotations and labels if it has values.
pub(super) fn hide(live: &mut Option<Value>, predicted: &mut Option<Value>) {
    let states = [&*live, &*predicted].into_iter().flatten();
    let fields: BTreeSet<String> = states.flat_map(secret_fields).map(str::to_owned).collect();
    for field in &fields {
        let [live, predicted] = [&mut *live, &mut *predicted]
            .map(|state| state.as_mut().and_then(|object| object.get_mut(field)));
        hide_values_of_field(live, predicted, |_| true);
    }
    for field in METADATA_WITH_COPIES {
        let [live, predicted] = [&mut *live, &mut *predicted].map(|state| {
            state
                .as_mut()
                .and_then(|object| object.get_mut("metadata")?.get_mut(field))
        });
        hide_values_of_field(live, predicted, |key| may_hold_copy(key, &fields));
    }
}

/// Replaces [`HIDDEN`] in place of each value of a Secret by another placeholder.
pub(super) fn replace_hidden_by_placeholder(object: &mut Option<Value>, placeholder: &str) {
    let Some(object) = object.as_mut().filter(|object| object["kind"] == "Secret") else {
        return;
    };
    let fields: Vec<String> = secret_fields(object).map(str::to_owned).collect();
    for field in fields {
        if let Some(Value::Object(values)) = object.get_mut(&field) {
            for value in values.values_mut().filter(|value| **value == HIDDEN) {
                *value = json!(placeholder);
            }
        }
    }
}

/// Hides the values in both states of a field whose keys `is_hidden` chooses.
fn hide_values_of_field(
    mut live: Option<&mut Value>,
    mut predicted: Option<&mut Value>,
    is_hidden: impl Fn(&str) -> bool,
) {
    let keys: BTreeSet<String> = [&live, &predicted]
        .into_iter()
        .flatten()
        .filter_map(|values| values.as_object())
        .flat_map(|values| values.keys().cloned())
        .filter(|key| is_hidden(key))
        .collect();
    for key in keys {
        hide_value_pair(
            live.as_mut().and_then(|values| values.get_mut(&key)),
            predicted.as_mut().and_then(|values| values.get_mut(&key)),
        );
    }
    // A field that is not a mapping is invalid, but may still hold a value.
    for values in [live, predicted].into_iter().flatten() {
        if !values.is_object() && !values.is_null() {
            *values = json!(HIDDEN);
        }
    }
}

/// Hides two states of a value, and shows if they differ.
fn hide_value_pair(live: Option<&mut Value>, predicted: Option<&mut Value>) {
    match (live, predicted) {
        (Some(live), Some(predicted)) if live != predicted => {
            *live = json!(BEFORE);
            *predicted = json!(AFTER);
        }
        (live, predicted) => {
            for value in [live, predicted].into_iter().flatten() {
                *value = json!(HIDDEN);
            }
        }
    }
}
