//! The field managers that lose or gain fields of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::compare::field_paths::member_paths;
use crate::compare::ownership::entries;

/// The owners that lose or gain fields, each once and sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnershipChange {
    /// The owners that lose fields.
    from: Vec<Owner>,
    /// The owners that gain fields.
    to: Vec<Owner>,
}

/// A field manager, and how it wrote its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    /// The name of the manager.
    manager: String,
    /// The API version that it wrote.
    version: String,
    /// `Apply` or `Update`. A manager that owns a field by both owns it twice, and can lose one of the two.
    operation: String,
}

impl OwnershipChange {
    /// Compares the managed fields of two states of an object.
    pub fn new(live: &Value, predicted: &Value) -> Self {
        let before = fields_by_owner(live);
        let after = fields_by_owner(predicted);
        Self {
            from: owners_losing_fields(&before, &after),
            to: owners_losing_fields(&after, &before),
        }
    }
}

impl std::fmt::Display for OwnershipChange {
    /// `helm -> applyset`; `+ applyset` if no manager loses a field. If these are the same managers, they write another
    /// API version, or in another way: `applyset: Apply autoscaling/v1 -> Apply autoscaling/v2`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, to] =
            [&self.from, &self.to].map(|owners| join_once(owners, |owner| owner.manager.clone()));
        if from == to && !from.is_empty() {
            let way = |owner: &Owner| format!("{} {}", owner.operation, owner.version);
            let [old, new] = [&self.from, &self.to].map(|owners| join_once(owners, way));
            return write!(f, "{from}: {old} -> {new}");
        }
        match (from.is_empty(), to.is_empty()) {
            (false, false) => write!(f, "{from} -> {to}"),
            (true, false) => write!(f, "+ {to}"),
            (false, true) => write!(f, "- {from}"),
            (true, true) => f.write_str("unchanged fields"),
        }
    }
}

/// Joins what `describe` says of each owner, each text once.
fn join_once(owners: &[Owner], describe: impl Fn(&Owner) -> String) -> String {
    let texts: BTreeSet<String> = owners.iter().map(describe).collect();
    texts.into_iter().collect::<Vec<_>>().join(", ")
}

/// The fields of each owner, as paths.
type OwnedFields = BTreeMap<Owner, BTreeSet<String>>;

/// Returns the owners of a field in `before` that they do not own in `after`.
fn owners_losing_fields(before: &OwnedFields, after: &OwnedFields) -> Vec<Owner> {
    before
        .iter()
        .filter(|(owner, fields)| {
            after
                .get(*owner)
                .is_none_or(|kept_fields| !fields.is_subset(kept_fields))
        })
        .map(|(owner, _)| owner.clone())
        .collect()
}

fn fields_by_owner(object: &Value) -> OwnedFields {
    let mut owned_fields = OwnedFields::new();
    for entry in entries(&object["metadata"]) {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let owner = Owner {
            manager: entry["manager"].as_str().unwrap_or("unknown").to_owned(),
            version: text("apiVersion"),
            operation: text("operation"),
        };
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
                "applyset: Apply x/v1 -> Apply x/v2",
            ),
            (
                vec![("helm", update, spec())],
                vec![("helm", v1, spec())],
                "helm: Update x/v1 -> Apply x/v1",
            ),
            (vec![("a", v1, one())], vec![("a", v1, one())], "unchanged fields"),
        ];
        for (before, after, text) in table {
            let change = OwnershipChange::new(&object(&before), &object(&after));
            assert_eq!(change.to_string(), text);
        }
    }
}
