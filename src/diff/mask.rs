//! Values of Secrets are not shown; whether they differ is.
//!
//! The signs are kubectl's (`pkg/cmd/diff`, `Masker`). It leaves the annotation of
//! client-side apply as it is, which holds the same values; here that is hidden, too.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Stands for a value that is the same in both states, or there in only one.
const HIDDEN: &str = "***";
const BEFORE: &str = "*** (before)";
const AFTER: &str = "*** (after)";

/// Fields of a Secret whose values are secret.
pub(crate) const FIELDS: [&str; 2] = ["data", "stringData"];

/// In which client-side apply keeps the whole manifest.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Hides the values of both states of a Secret.
pub(super) fn hide(live: &mut Option<Value>, predicted: &mut Option<Value>) {
    for field in FIELDS {
        let live = live.as_mut().and_then(|object| object.get_mut(field));
        let predicted = predicted.as_mut().and_then(|object| object.get_mut(field));
        hide_values(live, predicted);
    }
    hide_pair(
        live.as_mut().and_then(last_applied),
        predicted.as_mut().and_then(last_applied),
    );
}

fn last_applied(object: &mut Value) -> Option<&mut Value> {
    object
        .get_mut("metadata")?
        .get_mut("annotations")?
        .get_mut(LAST_APPLIED)
}

fn hide_values(mut live: Option<&mut Value>, mut predicted: Option<&mut Value>) {
    let keys: BTreeSet<String> = [&live, &predicted]
        .into_iter()
        .flatten()
        .filter_map(|values| values.as_object())
        .flat_map(|values| values.keys().cloned())
        .collect();
    for key in keys {
        hide_pair(
            live.as_mut().and_then(|values| values.get_mut(&key)),
            predicted.as_mut().and_then(|values| values.get_mut(&key)),
        );
    }
    // What is no mapping is no valid Secret, and may hold a value all the same.
    for values in [live, predicted].into_iter().flatten() {
        if !values.is_object() && !values.is_null() {
            *values = json!(HIDDEN);
        }
    }
}

fn hide_pair(live: Option<&mut Value>, predicted: Option<&mut Value>) {
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
