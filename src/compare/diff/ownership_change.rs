//! The field managers that lose or gain fields of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::compare::field_paths::member_paths;
use crate::compare::ownership::entries;

/// The names of the field managers that lose or gain fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnershipChange {
    losing: BTreeSet<String>,
    gaining: BTreeSet<String>,
}

impl OwnershipChange {
    /// Compares the managed fields of two states of an object.
    pub fn new(live: &Value, predicted: &Value) -> Self {
        let [before, after] = [live, predicted].map(fields_by_owner);
        Self {
            losing: managers_losing_fields(&before, &after),
            gaining: managers_losing_fields(&after, &before),
        }
    }
}

impl std::fmt::Display for OwnershipChange {
    /// `helm -> applyset`; `+ applyset` if no manager loses a field. If these are the same managers, they write another
    /// API version, or in another way: `applyset -> applyset`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, to] =
            [&self.losing, &self.gaining].map(|managers| Vec::from_iter(managers.clone()).join(", "));
        match (from.is_empty(), to.is_empty()) {
            (false, false) => write!(f, "{from} -> {to}"),
            (true, false) => write!(f, "+ {to}"),
            (false, true) => write!(f, "- {from}"),
            (true, true) => f.write_str("unchanged fields"),
        }
    }
}

/// The fields of each owner, as paths. An owner is a manager with its operation and the API version that it wrote: a
/// manager that owns a field by two operations owns it twice, and can lose one of the two.
type OwnedFields<'a> = BTreeMap<[&'a str; 3], BTreeSet<String>>;

/// Returns the managers of fields in `before` that they do not own in the same way in `after`.
fn managers_losing_fields(before: &OwnedFields<'_>, after: &OwnedFields<'_>) -> BTreeSet<String> {
    before
        .iter()
        .filter(|(owner, fields)| {
            after
                .get(*owner)
                .is_none_or(|kept_fields| !fields.is_subset(kept_fields))
        })
        .map(|([manager, ..], _)| (*manager).to_owned())
        .collect()
}

fn fields_by_owner(object: &Value) -> OwnedFields<'_> {
    let mut owned_fields = OwnedFields::new();
    for entry in entries(&object["metadata"]) {
        let owner =
            ["manager", "operation", "apiVersion"].map(|key| entry[key].as_str().unwrap_or("unknown"));
        owned_fields
            .entry(owner)
            .or_default()
            .extend(member_paths(&entry["fieldsV1"]));
    }
    owned_fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn owners_that_lose_and_gain_fields_are_named() {
        let object = |entries: &[(&str, &str, Value)]| {
            let entry = |(manager, way, fields): &(&str, &str, Value)| {
                let (operation, version) = way.split_once(' ').expect("two words");
                json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsV1": fields})
            };
            json!({"metadata": {"managedFields": entries.iter().map(entry).collect::<Vec<_>>()}})
        };
        let spec = || json!({"f:spec": {"f:a": {}, "f:b": {}}});
        let one = || json!({"f:spec": {"f:a": {}}});
        let [v1, v2, update] = ["Apply x/v1", "Apply x/v2", "Update x/v1"];
        let table = [
            (
                vec![("helm", v1, spec())],
                vec![("applyset", v1, spec())],
                "helm -> applyset",
            ),
            (
                vec![("helm", v1, spec())],
                vec![("helm", v1, one()), ("applyset", v1, spec())],
                "helm -> applyset",
            ),
            (
                vec![("helm", v1, spec())],
                vec![("helm", v1, spec()), ("applyset", v1, one())],
                "+ applyset",
            ),
            (vec![("helm", v1, spec())], vec![("helm", v1, one())], "- helm"),
            (
                vec![("helm", v1, spec()), ("helm", update, spec())],
                vec![("applyset", v1, spec())],
                "helm -> applyset",
            ),
            (
                vec![("applyset", v1, spec())],
                vec![("applyset", v2, spec())],
                "applyset -> applyset",
            ),
            (
                vec![("helm", update, spec())],
                vec![("helm", v1, spec())],
                "helm -> helm",
            ),
            (vec![("a", v1, one())], vec![("a", v1, one())], "unchanged fields"),
        ];
        for (before, after, text) in table {
            let change = OwnershipChange::new(&object(&before), &object(&after));
            assert_eq!(change.to_string(), text);
        }
    }
}
