//! The fields that an apply of a custom resource owns under one version of its definition.
//!
//! The server types a manifest by the schema that it serves at that moment. If two schemas type a manifest differently,
//! the field set in an answer shows which of them the server has used.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::CrdVersion;
use super::atomic_or_granular::{DeclaredOrKey, Ownership, Shape};
use crate::compare::field_paths::member_paths;
use crate::compare::ownership::apply_entry;
use crate::model::built_in_kinds::TypeMeta;

/// The fields that an apply of a manifest owns under a schema, except `metadata`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaFieldSet {
    /// The schema does not show them.
    Unknown,
    /// The manifest has a field that the schema neither declares nor keeps; it is refused.
    Undeclared,
    /// The members of the field set, as paths of its keys.
    Fields(BTreeSet<String>),
}

impl SchemaFieldSet {
    /// Types a manifest by the definition of its kind, as the server does.
    pub fn new(manifest: &Value, definition: Option<&CrdVersion<'_>>) -> Self {
        let (Some(definition), Some(fields)) = (definition, manifest.as_object()) else {
            return Self::Unknown;
        };
        let mut builder = FieldSetBuilder {
            type_meta: TypeMeta::from_object(manifest),
            members: BTreeSet::new(),
        };
        for (name, value) in fields {
            // The server resets what belongs to a subresource.
            let is_left_out = matches!(name.as_str(), "apiVersion" | "kind" | "metadata")
                || (name == "status" && definition.has_status_subresource());
            if !is_left_out && builder.add_field(definition.shape(), name, value, "").is_none() {
                return Self::Undeclared;
            }
        }
        Self::Fields(builder.members)
    }

    /// Returns whether the metadata in the answer to an apply shows that the server has typed the manifest as `self`,
    /// and not as `new`. False if the two are equal, or if one of them is not known.
    pub fn was_used_in_answer(&self, metadata: &Value, field_manager: &str, new: &Self) -> bool {
        let (Self::Fields(old), Self::Fields(new)) = (self, new) else {
            return false;
        };
        let Some(owned) = applied_paths(metadata, field_manager) else {
            return false;
        };
        if old.is_subset(new) {
            // Only the new schema can show itself.
            old != new && new.difference(old).all(|path| !owned.contains(path))
        } else {
            old.difference(new).any(|path| owned.contains(path))
        }
    }
}

/// Returns the paths of the field set that this manager has applied.
fn applied_paths(metadata: &Value, field_manager: &str) -> Option<BTreeSet<String>> {
    Some(member_paths(&apply_entry(metadata, field_manager)?["fieldsV1"]))
}

struct FieldSetBuilder<'a> {
    type_meta: TypeMeta<'a>,
    members: BTreeSet<String>,
}

/// `None` if a field is not declared.
type Declared = Option<()>;

impl FieldSetBuilder<'_> {
    fn add_fields(&mut self, shape: Shape<'_>, fields: &Map<String, Value>, path: &str) -> Declared {
        fields
            .iter()
            .try_for_each(|(name, value)| self.add_field(shape, name, value, path))
    }

    fn add_field(&mut self, shape: Shape<'_>, name: &str, value: &Value, path: &str) -> Declared {
        let path = format!("{path}/f:{name}");
        let (below, membership) = shape.field(name);
        if membership == DeclaredOrKey::Unknown {
            // An embedded object is not looked into.
            return shape.is_opaque().then(|| self.add_path(path));
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => match below.map_ownership(name, self.type_meta) {
                Ownership::Granular => {
                    if membership == DeclaredOrKey::Key {
                        self.add_path(format!("{path}/."));
                    }
                    self.add_fields(below, fields, &path)
                }
                Ownership::Atomic | Ownership::Unknown => {
                    self.add_path(path);
                    Some(())
                }
            },
            Value::Array(items) => match below.list_ownership(name, self.type_meta) {
                Ownership::Granular => items
                    .iter()
                    .try_for_each(|item| self.add_item(below, item, &path)),
                Ownership::Atomic | Ownership::Unknown => {
                    self.add_path(path);
                    Some(())
                }
            },
            _ => {
                self.add_path(path);
                Some(())
            }
        }
    }

    fn add_item(&mut self, list: Shape<'_>, item: &Value, path: &str) -> Declared {
        let Some(keys) = list.keys_of_list_map_with_defaults() else {
            self.add_path(format!("{path}/v:{item}"));
            return Some(());
        };
        let key: Map<String, Value> = keys
            .into_iter()
            .filter_map(|(name, default)| Some((name.to_owned(), item.get(name).or(default)?.clone())))
            .collect();
        let path = format!("{path}/k:{}", Value::Object(key));
        let shape = list.items();
        if shape.is_atomic_map_if_leaf() {
            self.add_path(path);
            return Some(());
        }
        self.add_path(format!("{path}/."));
        self.add_fields(shape, item.as_object()?, &path)
    }

    fn add_path(&mut self, path: String) {
        self.members.insert(path);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(spec: &Value) -> Value {
        json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": spec}},
        }}}]}})
    }

    fn field_set_of(definition: &Value, manifest_spec: &Value) -> SchemaFieldSet {
        let manifest =
            json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": manifest_spec});
        SchemaFieldSet::new(&manifest, CrdVersion::from_definition(definition, "v1").as_ref())
    }

    fn fields<const N: usize>(paths: [&str; N]) -> SchemaFieldSet {
        SchemaFieldSet::Fields(paths.map(str::to_owned).into())
    }

    #[test]
    fn manifests_are_typed_as_the_server_types_them() {
        let ports = |more: Value| {
            let mut list = json!({"type": "array", "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}});
            list.as_object_mut()
                .expect("a mapping")
                .extend(more.as_object().expect("a mapping").clone());
            json!({"list": list})
        };
        let names = |list_type: &str| json!({"list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": list_type}});
        let keyed =
            json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]});
        let map = json!({"list": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "a": {"type": "string"}}}}});
        let open_schema = json!({"list": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let item = json!({"list": [{"port": 80}]});
        for (schema, spec, expected) in [
            (ports(json!({})), item.clone(), fields(["/f:spec/f:list"])),
            (
                ports(keyed),
                item,
                fields([
                    "/f:spec/f:list/k:{\"port\":80,\"protocol\":\"TCP\"}/.",
                    "/f:spec/f:list/k:{\"port\":80,\"protocol\":\"TCP\"}/f:port",
                ]),
            ),
            (names("atomic"), json!({"list": []}), fields(["/f:spec/f:list"])),
            (names("set"), json!({"list": []}), fields([])),
            (
                names("set"),
                json!({"list": ["a"]}),
                fields(["/f:spec/f:list/v:\"a\""]),
            ),
            (names("set"), json!({"other": 1}), SchemaFieldSet::Undeclared),
            (
                map,
                json!({"list": {"x": {"a": "b"}}}),
                fields(["/f:spec/f:list/f:x/.", "/f:spec/f:list/f:x/f:a"]),
            ),
            (
                open_schema,
                json!({"list": {"x": [1], "y": {}}}),
                fields(["/f:spec/f:list/f:x", "/f:spec/f:list/f:y"]),
            ),
        ] {
            assert_eq!(
                field_set_of(&definition(&schema), &spec),
                expected,
                "{schema} {spec}"
            );
        }
    }

    #[test]
    fn an_answer_shows_by_which_schema_it_was_typed() {
        let metadata = |fields: Value| {
            json!({"managedFields": [
                {"manager": "us", "operation": "Update", "fieldsV1": {"f:x": {}}},
                {"manager": "us", "operation": "Apply", "fieldsV1": fields},
            ]})
        };
        let leaf = metadata(json!({"f:metadata": {"f:labels": {}}, "f:list": {}}));
        let items = metadata(json!({"f:list": {"v:1": {}}}));
        let nothing = metadata(json!({"f:other": {}}));
        let atomic = fields(["/f:list"]);
        let set = fields(["/f:list/v:1"]);
        let empty = fields([]);
        for (old, new, answer, is_old) in [
            (&atomic, &set, &leaf, true),
            (&atomic, &set, &items, false),
            (&set, &atomic, &items, true),
            (&set, &atomic, &leaf, false),
            (&empty, &atomic, &nothing, true),
            (&empty, &atomic, &leaf, false),
            (&atomic, &empty, &leaf, true),
            (&atomic, &empty, &nothing, false),
            (&atomic, &atomic, &leaf, false),
            (&SchemaFieldSet::Unknown, &set, &leaf, false),
            (&SchemaFieldSet::Undeclared, &set, &leaf, false),
        ] {
            assert_eq!(
                old.was_used_in_answer(answer, "us", new),
                is_old,
                "{old:?} {new:?} {answer}"
            );
        }
        assert!(!atomic.was_used_in_answer(&leaf, "them", &set));
    }
}
