//! The fields of an object that a field manager owns, as a manifest: an apply of this manifest by the manager leaves
//! the object as it is.

use serde_json::{Map, Value, json};

use super::LAST_APPLIED;
use super::managed_fields::{
    apply_entry, entries, is_apply, is_apply_of, is_client_side_apply, move_string_data_keys, unite_all,
};
use crate::compare::changes::CrdVersion;
use crate::compare::field_paths::{ItemKey, has_parts_owned_separately, leaf_paths, value_at};
use crate::compare::typed_place::TypedPlace;

/// Returns the manifest with the fields that `manager` owns. The fields of client-side apply count as its own, because
/// each apply takes them over, and removes the fields that its manifest lacks. `definition` is the CRD of a custom
/// resource.
pub fn manifest_owned_by(object: &Value, manager: &str, definition: Option<CrdVersion<'_>>) -> Value {
    manifest_from_field_set(object, field_set_owned_by(object, manager), definition)
}

/// Returns the field set of the manifest that [`manifest_owned_by`] returns.
pub(super) fn field_set_owned_by(object: &Value, manager: &str) -> Option<Value> {
    manifest_field_set(object, |entry| {
        is_apply_of(entry, manager) || is_client_side_apply(entry)
    })
}

/// Returns the fields of an object that any manager has applied, client-side or server-side, as a manifest.
pub fn manifest_applied_by_any(object: &Value, definition: Option<CrdVersion<'_>>) -> Value {
    let fields = manifest_field_set(object, |entry| is_apply(entry) || is_client_side_apply(entry));
    manifest_from_field_set(object, fields, definition)
}

/// Returns the fields of an object that any manager owns, as a manifest. Defaults of the server have no owner, and are
/// missing.
pub fn manifest_of_all_managers(object: &Value, definition: Option<CrdVersion<'_>>) -> Value {
    manifest_from_field_set(object, manifest_field_set(object, |_| true), definition)
}

/// Returns the fields that a manifest of the chosen entries has: the union of their field sets, with `data` in place of
/// `stringData`, and without the annotation of client-side apply. An entry is chosen if `is_included` is true.
fn manifest_field_set(object: &Value, is_included: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut fields = unite_entries(&object["metadata"], is_included).map(remove_last_applied)?;
    move_string_data_keys(&mut fields);
    Some(fields)
}

/// Returns whether the CRD of a custom resource is needed to know which of its fields `manager` has sent: a map that
/// the manager owns as a whole may have been sent empty, and filled by others or with defaults.
pub fn needs_definition_for_owned_fields(object: &Value, manager: &str) -> bool {
    TypedPlace::of_known_type(object, None).is_none()
        && leaf_paths(&field_set_owned_by(object, manager).unwrap_or_default())
            .iter()
            .filter_map(|path| value_at(object, path)?.as_object())
            .any(|map| !map.is_empty())
}

/// Returns the fields of an object that `manager` itself has applied, as a manifest.
pub fn manifest_applied_by(object: &Value, manager: &str) -> Value {
    let fields = manifest_field_set(object, |entry| is_apply_of(entry, manager));
    manifest_from_field_set(object, fields, None)
}

/// Returns the `apiVersion` in which `manager` has applied the object, and of which its field set is.
pub fn applied_api_version<'m>(metadata: &'m Value, manager: &str) -> Option<&'m str> {
    apply_entry(metadata, manager)?["apiVersion"].as_str()
}

pub(super) fn manifest_from_field_set(
    object: &Value,
    fields: Option<Value>,
    definition: Option<CrdVersion<'_>>,
) -> Value {
    let all = unite_entries(&object["metadata"], |_| true).unwrap_or_default();
    let mut manifest = fields
        .and_then(|fields| {
            owned_part(
                object,
                &fields,
                Some(&all),
                TypedPlace::of_known_type(object, definition),
            )
        })
        .unwrap_or_else(|| json!({}));
    for field in ["apiVersion", "kind"] {
        manifest[field] = object[field].clone();
    }
    for field in ["name", "namespace"] {
        if !object["metadata"][field].is_null() {
            manifest["metadata"][field] = object["metadata"][field].clone();
        }
    }
    manifest
}

/// Returns the field set without the annotation of client-side apply, which is not part of a manifest.
fn remove_last_applied(mut fields: Value) -> Value {
    let metadata = fields.get_mut("f:metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && let Some(annotations) = metadata.get_mut("f:annotations").and_then(Value::as_object_mut)
        && annotations.remove(&format!("f:{LAST_APPLIED}")).is_some()
        && annotations.keys().all(|key| key == ".")
    {
        metadata.remove("f:annotations");
    }
    fields
}

/// Returns the union of the field sets of the entries for which `is_included` is true; `None` if there are none.
pub(super) fn unite_entries(metadata: &Value, is_included: impl Fn(&Value) -> bool) -> Option<Value> {
    unite_all(
        entries(metadata)
            .iter()
            .filter(|entry| is_included(entry))
            .map(|entry| entry["fieldsV1"].clone()),
    )
}

/// Returns the part of a value that a field set owns; `None` if it owns no part. `fields_of_all_managers` is the node
/// of the value in the field set of all managers. An empty node owns the whole value, unless `fields_of_all_managers`
/// shows that a manager owns a part of it.
fn owned_part(
    value: &Value,
    fields: &Value,
    fields_of_all_managers: Option<&Value>,
    place: Option<TypedPlace<'_>>,
) -> Option<Value> {
    let fields = fields.as_object()?;
    let is_shared = fields_of_all_managers.is_some_and(has_parts_owned_separately);
    let is_itself = fields.contains_key(".") || fields.is_empty() && is_shared;
    match value {
        value if fields.is_empty() && !is_shared => {
            Some(place.map_or_else(|| value.clone(), |place| place.value_as_sent(value)))
        }
        Value::Object(values) => {
            let parts: Map<String, Value> = fields
                .iter()
                .filter_map(|(key, below)| {
                    let name = key.strip_prefix("f:")?;
                    let fields_of_all_managers = fields_of_all_managers
                        .and_then(|fields_of_all_managers| fields_of_all_managers.get(key));
                    let part = match values.get(name).filter(|value| !value.is_null()) {
                        Some(value) => owned_part(
                            value,
                            below,
                            fields_of_all_managers,
                            place.map(|place| place.below(name)),
                        ),
                        None if has_parts_owned_separately(below) => None,
                        None => TypedPlace::empty_value_once_sent(place, name),
                    };
                    Some((name.to_owned(), part?))
                })
                .collect();
            (!parts.is_empty() || is_itself).then_some(Value::Object(parts))
        }
        Value::Array(items) => {
            let parts: Vec<Value> = items
                .iter()
                .enumerate()
                .filter_map(|item| {
                    owned_item_part(item, fields, fields_of_all_managers, place.map(TypedPlace::item))
                })
                .collect();
            (!parts.is_empty() || is_itself).then_some(Value::Array(parts))
        }
        value => Some(value.clone()),
    }
}

/// Returns the part of a list item that one of the keys of a field set selects.
fn owned_item_part(
    (position, item): (usize, &Value),
    fields: &Map<String, Value>,
    fields_of_all_managers: Option<&Value>,
    place: Option<TypedPlace<'_>>,
) -> Option<Value> {
    fields.iter().find_map(|(key, below)| {
        let item_key = ItemKey::parse(key).filter(|key| key.selects(position, item))?;
        let fields_of_all_managers =
            fields_of_all_managers.and_then(|fields_of_all_managers| fields_of_all_managers.get(key));
        match item_key {
            ItemKey::Fields(keys) => {
                owned_keyed_item_part(item, below, &keys, (fields_of_all_managers, place))
            }
            ItemKey::Value(_) | ItemKey::Position(_) => {
                owned_part(item, below, fields_of_all_managers, place)
            }
        }
    })
}

/// Returns the part of a list item that is found by its keys. The part has at least one key, or the server could not
/// find the item: if none of the keys is owned, all are added.
fn owned_keyed_item_part(
    item: &Value,
    fields: &Value,
    keys: &Map<String, Value>,
    (fields_of_all_managers, place): (Option<&Value>, Option<TypedPlace<'_>>),
) -> Option<Value> {
    let mut part = owned_part(item, fields, fields_of_all_managers, place)?;
    if let Some(part) = part.as_object_mut()
        && keys.keys().all(|key| !part.contains_key(key))
    {
        part.extend(keys.clone());
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields})
    }

    fn with_entries(mut object: Value, entries: &[Value]) -> Value {
        object["metadata"]["managedFields"] = json!(entries);
        object
    }

    #[test]
    fn a_manifest_has_the_fields_of_its_manager() {
        let object = json!({
            "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b", "uid": "u", "labels": {"x": "1", "y": "2"}},
            "spec": {
                "ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 81, "protocol": "TCP"}],
                "list": ["a", "b"], "atomic": {"q": [1, 2]}, "empty": {}, "unowned": true,
            },
        });
        let fields = json!({
            "f:metadata": {"f:labels": {"f:x": {}}},
            "f:spec": {
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}, "k:{\"port\":82,\"protocol\":\"TCP\"}": {".": {}}},
                "f:list": {"v:\"b\"": {}, "v:\"c\"": {}}, "f:atomic": {}, "f:empty": {".": {}}, "f:gone": {},
            },
        });
        let was = with_entries(
            object,
            &[
                entry("us", "Apply", &fields),
                entry("us", "Update", &json!({"f:spec": {"f:unowned": {}}})),
            ],
        );
        assert_eq!(
            manifest_owned_by(&was, "us", None),
            json!({
                "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b", "labels": {"x": "1"}},
                "spec": {"ports": [{"port": 80}], "list": ["b"], "atomic": {"q": [1, 2]}, "empty": {}, "gone": null},
            })
        );
        assert_eq!(
            manifest_owned_by(&was, "them", None),
            json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b"}})
        );
    }

    #[test]
    fn an_empty_map_of_ours_does_not_have_what_others_put_in_it() {
        let ours = entry("us", "Apply", &json!({"f:data": {}, "f:atomic": {}}));
        let theirs = entry("them", "Update", &json!({"f:data": {".": {}, "f:a": {}}}));
        let object = json!({"metadata": {"name": "a"}, "data": {"a": "1"}, "atomic": {"b": 1}});
        let was = with_entries(object, &[ours, theirs]);
        let manifest = manifest_owned_by(&was, "us", None);
        assert_eq!(
            (&manifest["data"], &manifest["atomic"]),
            (&json!({}), &json!({"b": 1}))
        );
    }

    #[test]
    fn fields_of_client_side_apply_are_part_of_the_manifest() {
        let annotated = |more: &str| json!({".": {}, (format!("f:{LAST_APPLIED}")): {}, (more): {}});
        for (annotations, expected) in [
            (annotated("."), Value::Null),
            (annotated("f:note"), json!({"note": "x"})),
        ] {
            let object = json!({
                "metadata": {"name": "a", "annotations": {(LAST_APPLIED): "{}", "note": "x"}},
                "data": {"a": "1", "b": "2"},
            });
            let fields =
                json!({"f:metadata": {"f:annotations": annotations}, "f:data": {".": {}, "f:b": {}}});
            let was = with_entries(object, &[entry("kubectl-client-side-apply", "Update", &fields)]);
            let manifest = manifest_owned_by(&was, "us", None);
            assert_eq!(manifest["data"], json!({"b": "2"}));
            assert_eq!(manifest["metadata"]["annotations"], expected);
        }
    }

    #[test]
    fn an_item_without_any_key_gets_all_of_them() {
        let item = json!({"name": "a", "value": "1"});
        let keys = json!({"name": "a"});
        let keys = keys.as_object().expect("a mapping");
        assert_eq!(
            owned_keyed_item_part(&item, &json!({"f:value": {}}), keys, (None, None)),
            Some(item.clone())
        );
        assert_eq!(
            owned_keyed_item_part(&item, &json!({".": {}, "f:name": {}}), keys, (None, None)),
            Some(json!({"name": "a"}))
        );
    }

    #[test]
    fn what_the_server_leaves_out_comes_back_as_the_empty_value_of_its_type() {
        for (api_version, kind, field, expected) in [
            ("apps/v1", "Deployment", "paused", json!({"paused": false})),
            ("apps/v1", "Deployment", "hostname", json!({"hostname": ""})),
            ("apps/v1", "Deployment", "unknown", json!({})),
            ("apps/v1", "Deployment", "strategy", json!({"strategy": {}})),
            ("coordination.k8s.io/v1", "Lease", "strategy", json!({})),
            ("v1", "Service", "externalIPs", json!({"externalIPs": []})),
            ("v1", "LimitRange", "limits", json!({"limits": []})),
            ("example.com/v1", "Deployment", "paused", json!({"paused": null})),
        ] {
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": {}});
            let fields = json!({"f:spec": {".": {}, (format!("f:{field}")): {}}});
            let was = with_entries(object, &[entry("us", "Apply", &fields)]);
            assert_eq!(
                manifest_owned_by(&was, "us", None)["spec"],
                expected,
                "{kind} {field}"
            );
        }
    }

    #[test]
    fn values_that_were_applied_as_string_data_are_data() {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "MQ==", "b": "Mg=="}});
        let fields = json!({"f:stringData": {"f:a": {}}, "f:data": {".": {}, "f:b": {}}});
        let was = with_entries(object.clone(), &[entry("us", "Apply", &fields)]);
        assert_eq!(manifest_owned_by(&was, "us", None)["data"], object["data"]);
    }
}
