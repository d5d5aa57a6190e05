//! The field managers that lose or gain fields of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The managers that lose or gain fields, each once and sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnershipChange {
    /// The managers that lose fields.
    pub from: Vec<String>,
    /// The managers that gain fields.
    pub to: Vec<String>,
}

impl OwnershipChange {
    /// Compares the managed fields of two states of an object.
    pub fn new(live: &Value, predicted: &Value) -> Self {
        let before = owned_fields_by_manager(live);
        let after = owned_fields_by_manager(predicted);
        Self {
            from: managers_losing_fields(&before, &after),
            to: managers_losing_fields(&after, &before),
        }
    }
}

impl std::fmt::Display for OwnershipChange {
    /// `helm -> applyset`; `+ applyset` if no manager loses a field.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = self.from.join(", ");
        let to = self.to.join(", ");
        match (from.is_empty(), to.is_empty()) {
            (false, false) => write!(f, "{from} -> {to}"),
            (true, false) => write!(f, "+ {to}"),
            (false, true) => write!(f, "- {from}"),
            (true, true) => f.write_str("unchanged fields"),
        }
    }
}

/// The fields of each manager, as paths.
type OwnedFields = BTreeMap<String, BTreeSet<String>>;

/// Returns the managers that own a field in `before` that they do not own in `after`.
fn managers_losing_fields(before: &OwnedFields, after: &OwnedFields) -> Vec<String> {
    before
        .iter()
        .filter(|(manager, fields)| {
            after
                .get(*manager)
                .is_none_or(|kept_fields| !fields.is_subset(kept_fields))
        })
        .map(|(manager, _)| manager.clone())
        .collect()
}

fn owned_fields_by_manager(object: &Value) -> OwnedFields {
    let mut owned_fields = OwnedFields::new();
    for entry in object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let manager = entry["manager"].as_str().unwrap_or("unknown");
        let fields = owned_fields.entry(manager.to_owned()).or_default();
        // A manager that owns a field by an apply and by an update owns it twice, and can lose one of the two.
        let prefix = entry["operation"].as_str().unwrap_or_default();
        collect_paths(prefix, &entry["fieldsV1"], fields);
    }
    owned_fields
}

fn collect_paths(path: &str, fields: &Value, paths: &mut BTreeSet<String>) {
    for (key, child) in fields.as_object().into_iter().flatten() {
        let path = format!("{path}/{key}");
        if child.as_object().is_none_or(serde_json::Map::is_empty) {
            paths.insert(path);
        } else {
            collect_paths(&path, child, paths);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managers_that_lose_and_gain_fields_are_named() {
        let object = |entries: &[(&str, Value)]| {
            let entry = |(manager, fields): &(&str, Value)| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
            json!({"metadata": {"managedFields": entries.iter().map(entry).collect::<Vec<_>>()}})
        };
        let spec = || json!({"f:spec": {"f:a": {}, "f:b": {}}});
        let one = || json!({"f:spec": {"f:a": {}}});
        let table = [
            (
                vec![("helm", spec())],
                vec![("applyset", spec())],
                "helm -> applyset",
            ),
            (
                vec![("helm", spec())],
                vec![("helm", one()), ("applyset", spec())],
                "helm -> applyset",
            ),
            (
                vec![("helm", spec())],
                vec![("helm", spec()), ("applyset", one())],
                "+ applyset",
            ),
            (vec![("helm", spec())], vec![("helm", one())], "- helm"),
            (vec![("a", one())], vec![("a", one())], "unchanged fields"),
        ];
        for (before, after, text) in table {
            let change = OwnershipChange::new(&object(&before), &object(&after));
            assert_eq!(change.to_string(), text);
        }
    }
}
