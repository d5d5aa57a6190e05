//! The change of one label or annotation in words.

use std::collections::BTreeSet;

use crate::model::applyset::parent::Pairs;
use crate::model::applyset::{ID_LABEL, TOOLING_ANNOTATION};

/// Describes the change of `key` to `value`; `None` if it has that value already.
pub(super) fn describe(current: &Pairs, key: &str, value: &str) -> Option<String> {
    let Some(found) = current.get(key) else {
        return Some(format!("add {key} {value:?}"));
    };
    if found == value {
        return None;
    }
    let becomes = format!("change {key} from {found:?} to {value:?}");
    if key == ID_LABEL || key == TOOLING_ANNOTATION {
        return Some(becomes);
    }
    let (lost, gained) = (beyond(found, value), beyond(value, found));
    Some(match (lost.is_empty(), gained.is_empty()) {
        (true, true) => becomes,
        (false, true) => format!("remove {lost} from {key}"),
        (true, false) => format!("add {gained} to {key}"),
        (false, false) => format!("remove {lost} from {key} and add {gained}"),
    })
}

/// Lists the entries of the one list that the other lacks.
fn beyond(one: &str, other: &str) -> String {
    let known: BTreeSet<&str> = other.split(',').collect();
    let mut missing = Vec::new();
    for entry in one
        .split(',')
        .filter(|entry| !known.contains(entry) && !one.is_empty())
    {
        if entry.is_empty() || entry.contains(char::is_whitespace) {
            missing.push(format!("{entry:?}"));
        } else {
            missing.push(entry.to_owned());
        }
    }
    missing.join(", ")
}
