//! Keeps the ApplySet metadata (labels and annotations of KEP-3659) of a parent that is a member of another set or has
//! a manifest: no apply of the object may remove it, whichever field manager owns it.

use serde_json::{Map, Value, json};

use super::managed_fields::{entries, is_apply_of, unite_all};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::applyset::{IS_PARENT_TYPE_LABEL, PART_OF_LABEL};
use crate::model::object::Object;

/// The fields of an object's metadata that hold ApplySet metadata.
const FIELDS: [&str; 2] = ["labels", "annotations"];

/// Returns the object with the ApplySet metadata that an apply by `manager` would remove from the live object: the
/// labels and annotations that this manager has applied before. `None` if there are none. `live_metadata` is the
/// metadata of the live object.
///
/// The values are taken from `live_metadata`, so the object may be sent only over the resourceVersion of
/// `live_metadata`.
pub fn add_live_applyset_metadata(object: &Object, live_metadata: &Value, manager: &str) -> Option<Object> {
    let mut metadata = None;
    for entry in entries(live_metadata)
        .iter()
        .filter(|entry| is_apply_of(entry, manager))
    {
        for field in FIELDS {
            for key in owned_parent_keys(entry, field) {
                let Some(value) = live_metadata[field].get(key) else {
                    continue;
                };
                let metadata = metadata.get_or_insert_with(|| object.metadata());
                labels_or_annotations_mut(metadata, field)
                    .entry(key)
                    .or_insert_with(|| value.clone());
            }
        }
    }
    metadata.map(|metadata| object.with_metadata(&metadata))
}

/// Removes ApplySet metadata from an entry, and returns it as a field set.
pub(super) fn take_parent_metadata(entry: &mut Value) -> Option<Value> {
    unite_all(
        FIELDS
            .into_iter()
            .filter_map(|field| take_owned_pairs(entry, field, is_parent_only_key)),
    )
}

/// Removes labels or annotations from an entry, and returns them as a field set.
pub(super) fn take_owned_pairs(
    entry: &mut Value,
    field: &str,
    is_taken: impl Fn(&str) -> bool,
) -> Option<Value> {
    let metadata = entry.pointer_mut("/fieldsV1/f:metadata")?.as_object_mut()?;
    let field = format!("f:{field}");
    let owned_pairs = metadata.get_mut(&field)?.as_object_mut()?;
    let (taken_pairs, kept_pairs): (Map<String, Value>, Map<String, Value>) = std::mem::take(owned_pairs)
        .into_iter()
        .partition(|(key, _)| key.strip_prefix("f:").is_some_and(&is_taken));
    if kept_pairs.is_empty() {
        metadata.remove(&field);
    } else {
        *owned_pairs = kept_pairs;
    }
    (!taken_pairs.is_empty()).then(|| json!({"f:metadata": {field: taken_pairs}}))
}

/// Returns the ApplySet metadata among the labels or annotations that an entry owns.
fn owned_parent_keys<'e>(entry: &'e Value, field: &str) -> impl Iterator<Item = &'e str> {
    entry["fieldsV1"]["f:metadata"][format!("f:{field}")]
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter_map(|key| key.strip_prefix("f:"))
        .filter(|key| is_parent_only_key(key))
}

/// Returns whether a label or annotation is ApplySet metadata of a parent. The part-of label belongs to a member, and
/// the label that allows a kind as a parent belongs to the manifest of its CRD.
fn is_parent_only_key(key: &str) -> bool {
    is_applyset_key(key) && ![PART_OF_LABEL, IS_PARENT_TYPE_LABEL].contains(&key)
}

fn labels_or_annotations_mut<'m>(
    metadata: &'m mut Map<String, Value>,
    field: &str,
) -> &'m mut Map<String, Value> {
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
    fn what_an_apply_would_remove_is_added() {
        let with = |metadata: &Value| {
            let object = Object::from(&json!({"metadata": metadata}));
            add_live_applyset_metadata(&object, &live("ours", "Apply"), "ours").map(|object| object.value())
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
    fn what_others_own_is_not_added() {
        let object = Object::from(&json!({}));
        for live in [live("theirs", "Apply"), live("ours", "Update"), json!({})] {
            assert_eq!(add_live_applyset_metadata(&object, &live, "ours"), None, "{live}");
        }
    }

    #[test]
    fn it_is_taken_out_of_an_entry() {
        let mut entry = live("ours", "Apply")["managedFields"][0].take();
        let parent_metadata = take_parent_metadata(&mut entry);
        let expected = json!({"f:metadata": {
            "f:labels": {(format!("f:{ID_LABEL}")): {}},
            "f:annotations": {(format!("f:{GROUP_KINDS_ANNOTATION}")): {}},
        }});
        assert_eq!(parent_metadata, Some(expected));
        let metadata = entry["fieldsV1"]["f:metadata"].as_object().expect("labels");
        assert_eq!(metadata.keys().collect::<Vec<_>>(), ["f:labels"]);
        assert_eq!(metadata["f:labels"].as_object().map(Map::len), Some(3));
        assert_eq!(take_parent_metadata(&mut entry), None);
    }
}
