//! The bookkeeping of a parent that is a member of another set, or has a manifest of its own:
//! no apply takes it off, whichever field manager owns it.

use serde_json::{Map, Value, json};

use super::{entries, is_ours};
use crate::model::applyset::parent::is_bookkeeping_key;
use crate::model::applyset::{IS_PARENT_TYPE_LABEL, PART_OF_LABEL};
use crate::model::object::Object;

/// The fields of the metadata that have bookkeeping.
const FIELDS: [&str; 2] = ["labels", "annotations"];

/// Returns the object with the bookkeeping that an apply by `manager` would take off the live
/// one: what that manager has applied before. `None` if there is none. `live` is its metadata.
///
/// The values are those that were read, so the object may be sent only over the
/// resourceVersion of `live`.
pub fn with_bookkeeping(object: &Object, live: &Value, manager: &str) -> Option<Object> {
    let mut metadata = None;
    for entry in entries(live).iter().filter(|entry| is_ours(entry, manager)) {
        for field in FIELDS {
            for key in owned_keys(entry, field) {
                let Some(value) = live[field].get(key) else {
                    continue;
                };
                let metadata = metadata.get_or_insert_with(|| object.metadata());
                pairs(metadata, field).entry(key).or_insert_with(|| value.clone());
            }
        }
    }
    metadata.map(|metadata| object.with_metadata(&metadata))
}

/// Takes the bookkeeping out of an entry, as a field set of its own.
pub(super) fn take_bookkeeping(entry: &mut Value) -> Option<Value> {
    let mut taken = Map::new();
    for field in FIELDS {
        let keys: Vec<String> = owned_keys(entry, field).map(str::to_owned).collect();
        let Some(metadata) = entry
            .pointer_mut("/fieldsV1/f:metadata")
            .and_then(Value::as_object_mut)
        else {
            continue;
        };
        let field = format!("f:{field}");
        let Some(owned) = metadata.get_mut(&field).and_then(Value::as_object_mut) else {
            continue;
        };
        let removed: Map<String, Value> = keys
            .iter()
            .filter_map(|key| owned.remove_entry(&format!("f:{key}")))
            .collect();
        if owned.is_empty() {
            metadata.remove(&field);
        }
        if !removed.is_empty() {
            taken.insert(field, Value::Object(removed));
        }
    }
    (!taken.is_empty()).then(|| json!({"f:metadata": taken}))
}

/// The labels or annotations of the convention that an entry owns. The part-of label belongs to
/// a member, and the mark of a parent's kind to the manifest of a definition.
fn owned_keys<'e>(entry: &'e Value, field: &str) -> impl Iterator<Item = &'e str> {
    let owned = entry["fieldsV1"]["f:metadata"][format!("f:{field}")].as_object();
    let keys = owned.into_iter().flat_map(Map::keys);
    keys.filter_map(|key| key.strip_prefix("f:"))
        .filter(|key| is_bookkeeping_key(key) && ![PART_OF_LABEL, IS_PARENT_TYPE_LABEL].contains(key))
}

fn pairs<'m>(metadata: &'m mut Map<String, Value>, field: &str) -> &'m mut Map<String, Value> {
    let pairs = metadata.entry(field).or_insert(Value::Null);
    if !pairs.is_object() {
        *pairs = Value::Object(Map::new());
    }
    match pairs {
        Value::Object(pairs) => pairs,
        _ => unreachable!("it was made an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::applyset::{GROUP_KINDS_ANNOTATION, ID_LABEL};

    fn live(manager: &str, operation: &str) -> Value {
        let owned = |keys: &[&str]| -> Value {
            let keys = keys.iter().map(|key| (format!("f:{key}"), json!({})));
            Value::Object(keys.collect())
        };
        json!({
            "labels": {ID_LABEL: "id", PART_OF_LABEL: "set", IS_PARENT_TYPE_LABEL: "true", "app": "a"},
            "annotations": {GROUP_KINDS_ANNOTATION: "Secret"},
            "managedFields": [{"manager": manager, "operation": operation, "fieldsV1": {"f:metadata": {
                "f:labels": owned(&[ID_LABEL, PART_OF_LABEL, IS_PARENT_TYPE_LABEL, "app"]),
                "f:annotations": owned(&[GROUP_KINDS_ANNOTATION]),
            }}}],
        })
    }

    #[test]
    fn what_an_apply_would_take_off_goes_along() {
        let with = |metadata: &Value| {
            let object = Object::from(&json!({"metadata": metadata}));
            with_bookkeeping(&object, &live("ours", "Apply"), "ours").map(|object| object.value())
        };
        let annotations = json!({GROUP_KINDS_ANNOTATION: "Secret"});
        let table = [
            (json!({}), json!({ID_LABEL: "id"})),
            (json!({"labels": null}), json!({ID_LABEL: "id"})),
            (
                json!({"labels": {PART_OF_LABEL: "new"}}),
                json!({ID_LABEL: "id", PART_OF_LABEL: "new"}),
            ),
        ];
        for (metadata, labels) in table {
            let expected = json!({"metadata": {"labels": labels, "annotations": annotations}});
            assert_eq!(with(&metadata), Some(expected), "{metadata}");
        }
    }

    #[test]
    fn what_others_own_stays_by_itself() {
        let object = Object::from(&json!({}));
        for live in [live("theirs", "Apply"), live("ours", "Update"), json!({})] {
            assert_eq!(with_bookkeeping(&object, &live, "ours"), None, "{live}");
        }
    }

    #[test]
    fn bookkeeping_is_taken_out_of_an_entry() {
        let mut entry = live("ours", "Apply")["managedFields"][0].take();
        let taken = take_bookkeeping(&mut entry);
        let expected = json!({"f:metadata": {
            "f:labels": {(format!("f:{ID_LABEL}")): {}},
            "f:annotations": {(format!("f:{GROUP_KINDS_ANNOTATION}")): {}},
        }});
        assert_eq!(taken, Some(expected));
        let left = entry["fieldsV1"]["f:metadata"].as_object().expect("labels");
        assert_eq!(left.keys().collect::<Vec<_>>(), ["f:labels"]);
        assert_eq!(left["f:labels"].as_object().map(Map::len), Some(3));
        assert_eq!(take_bookkeeping(&mut entry), None);
    }
}
