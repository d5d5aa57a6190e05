//! The objects of a plan, as a row for each namespace and kind.

use std::collections::BTreeMap;

use crate::model::identity::{GroupKind, ObjectKey};
use crate::report::plan_view::Effect;
use crate::report::rows::{NAMES, PlanRow};

/// The room for ` and 123 more`.
const AND_MORE: usize = 13;

/// Returns a row for the objects of each namespace and kind.
pub(super) fn fold<'k>(effect: Effect, keys: impl Iterator<Item = &'k ObjectKey>) -> Vec<PlanRow> {
    let mut folded: BTreeMap<(Option<&str>, &GroupKind), Vec<&str>> = BTreeMap::new();
    for key in keys {
        let place = (key.namespace.as_deref(), &key.group_kind);
        folded.entry(place).or_default().push(&key.name);
    }
    let mut rows = Vec::new();
    for ((namespace, kind), names) in folded {
        let objects = ObjectKey {
            group_kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: names_of(kind, names),
        };
        rows.push(PlanRow::new(effect.sign_and_color(), Some(&objects), ""));
    }
    rows
}

/// `pg, redis and 3 more`
fn names_of(kind: &GroupKind, mut names: Vec<&str>) -> String {
    names.sort_unstable();
    let width = |text: &str| kind.object_name(text).chars().count();
    let all = names.join(", ");
    if width(&all) <= NAMES {
        return all;
    }
    let shown = (2..=names.len())
        .take_while(|shown| width(&names[..*shown].join(", ")) + AND_MORE <= NAMES)
        .last()
        .unwrap_or(1);
    let text = names[..shown].join(", ");
    match names.len() - shown {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
