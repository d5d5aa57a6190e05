//! Atomic or granular: a map or list of a type is owned as one value, or field by field. The tree of
//! a field set does not show which.

use serde_json::{Map, Value, json};

pub(super) use crate::model::built_in_kinds::Ownership;
use crate::model::built_in_kinds::TypeMeta;

/// The way in which a field belongs to its map: declared by the type, or a key of the map. An apply records
/// the key itself (`.`), and not a declared field that has fields below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::compare) enum DeclaredOrKey {
    Declared,
    Key,
    Unknown,
}

/// One version of a `CustomResourceDefinition`.
#[derive(Debug, Clone, Copy)]
pub struct CrdVersion<'a> {
    schema: &'a Map<String, Value>,
    status_subresource: bool,
}

impl<'a> CrdVersion<'a> {
    /// Reads the version (`v1alpha1`) of a `CustomResourceDefinition`
    /// (`apiextensions.k8s.io/v1`) as the server has it. `None` if it has no such version, or no
    /// schema to rely on.
    pub fn from_definition(custom_resource_definition: &'a Value, version: &str) -> Option<Self> {
        let spec = custom_resource_definition.get("spec")?;
        if spec.get("preserveUnknownFields").and_then(Value::as_bool) == Some(true) {
            return None;
        }
        let version = spec
            .get("versions")?
            .as_array()?
            .iter()
            .find(|crd_version| crd_version.get("name").and_then(Value::as_str) == Some(version))?;
        Some(Self {
            schema: version.pointer("/schema/openAPIV3Schema")?.as_object()?,
            status_subresource: version.pointer("/subresources/status").is_some(),
        })
    }

    /// Reduces a `CustomResourceDefinition` to what [`CrdVersion::from_definition`] reads of one version. The
    /// rest, mostly descriptions, is most of its size.
    pub fn reduce_definition(mut custom_resource_definition: Value, version: &str) -> Value {
        let spec = &mut custom_resource_definition["spec"];
        let preserves = spec["preserveUnknownFields"].take();
        let mut crd_version = spec["versions"]
            .as_array_mut()
            .map(std::mem::take)
            .into_iter()
            .flatten()
            .find(|crd_version| crd_version["name"] == version)
            .unwrap_or_default();
        let mut schema = crd_version["schema"].take();
        remove_descriptions(&mut schema);
        let reduced = json!({
            "name": version,
            "schema": schema,
            "subresources": crd_version["subresources"].take(),
        });
        json!({"spec": {"preserveUnknownFields": preserves, "versions": [reduced]}})
    }

    /// Returns the schema of an object of this version.
    pub fn schema(&self) -> &'a Map<String, Value> {
        self.schema
    }

    pub(in crate::compare) fn shape(&self) -> Shape<'a> {
        Shape::from_schema(self.schema, UnknownFields::Pruned)
    }

    /// Returns whether the status can only be written through its subresource.
    pub(in crate::compare) fn has_status_subresource(&self) -> bool {
        self.status_subresource
    }
}

/// Removes the descriptions of a schema. A field named `description` has a schema, which is not a
/// text, and stays. Values of objects stay as they are.
fn remove_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if matches!(fields.get("description"), Some(Value::String(_))) {
                fields.remove("description");
            }
            for (name, schema) in fields {
                if !matches!(name.as_str(), "default" | "enum" | "example") {
                    remove_descriptions(schema);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The type at one place of an object, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(in crate::compare) enum Shape<'a> {
    /// A built-in kind, or the metadata of any kind.
    BuiltIn,
    /// A node of a custom resource's schema, and what it does with unknown fields.
    Schema(&'a Map<String, Value>, UnknownFields),
    /// Below unknown fields that are kept: maps are granular, lists atomic.
    Deduced,
    Unknown,
}

/// The treatment of fields that a schema does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::compare) enum UnknownFields {
    Pruned,
    Preserved,
}

impl<'a> Shape<'a> {
    fn from_schema(schema: &'a Map<String, Value>, around: UnknownFields) -> Self {
        match schema.get("x-kubernetes-preserve-unknown-fields") {
            Some(Value::Bool(true)) => Self::Schema(schema, UnknownFields::Preserved),
            _ => Self::Schema(schema, around),
        }
    }

    /// Returns the type of a field, and how the field belongs to this type.
    pub(in crate::compare) fn field(self, name: &str) -> (Self, DeclaredOrKey) {
        match self {
            Self::BuiltIn => (Self::BuiltIn, DeclaredOrKey::Declared),
            Self::Deduced => (Self::Deduced, DeclaredOrKey::Key),
            Self::Unknown => (Self::Unknown, DeclaredOrKey::Unknown),
            Self::Schema(schema, unknown) => {
                // An embedded object has fields that its schema does not name.
                if schema.contains_key("x-kubernetes-embedded-resource") {
                    return (Self::Unknown, DeclaredOrKey::Unknown);
                }
                let properties = schema.get("properties").and_then(Value::as_object);
                if let Some(Value::Object(field)) = properties.and_then(|properties| properties.get(name)) {
                    return (Self::from_schema(field, unknown), DeclaredOrKey::Declared);
                }
                match schema.get("additionalProperties") {
                    Some(Value::Object(element)) => (Self::from_schema(element, unknown), DeclaredOrKey::Key),
                    Some(Value::Bool(true)) => (Self::Deduced, DeclaredOrKey::Key),
                    None if unknown == UnknownFields::Preserved || properties.is_none_or(Map::is_empty) => {
                        (Self::Deduced, DeclaredOrKey::Key)
                    }
                    _ => (Self::Unknown, DeclaredOrKey::Unknown),
                }
            }
        }
    }

    /// Returns the keys that distinguish items of an associative list, each with its default;
    /// `None` for a set.
    pub(in crate::compare) fn keys_of_list_map_with_defaults(self) -> Option<Vec<(String, Option<Value>)>> {
        let Self::Schema(schema, _) = self else {
            return None;
        };
        let properties = &schema.get("items")?["properties"];
        let names = schema.get("x-kubernetes-list-map-keys")?.as_array()?;
        Some(
            names
                .iter()
                .filter_map(|name| {
                    let name = name.as_str()?;
                    Some((name.to_owned(), properties[name].get("default").cloned()))
                })
                .collect(),
        )
    }

    /// Returns the type of a list's items.
    pub(in crate::compare) fn items(self) -> Self {
        match self {
            Self::BuiltIn | Self::Deduced | Self::Unknown => self,
            Self::Schema(schema, unknown) => match schema.get("items") {
                Some(Value::Object(items)) => Self::from_schema(items, unknown),
                _ => Self::Unknown,
            },
        }
    }

    /// Returns whether an item of this type is an atomic map if it is a leaf of the tree. An item of a granular type is
    /// a leaf, too, if all its keys have their defaults; no list of a built-in kind has such items.
    pub(super) fn is_atomic_map_if_leaf(self) -> bool {
        match self {
            Self::BuiltIn => true,
            Self::Deduced | Self::Unknown => false,
            Self::Schema(schema, _) => {
                schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic")
            }
        }
    }

    /// Returns how the map called `name` is owned.
    pub(in crate::compare) fn map_ownership(self, name: &str, type_meta: TypeMeta<'_>) -> Ownership {
        match self {
            Self::BuiltIn => type_meta.map_ownership(name),
            Self::Deduced => Ownership::Granular,
            Self::Unknown => Ownership::Unknown,
            Self::Schema(schema, _) => {
                if !may_have_type(schema, "object") {
                    return Ownership::Unknown;
                }
                match schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
                    Some("atomic") => Ownership::Atomic,
                    Some("granular") | None => Ownership::Granular,
                    Some(_) => Ownership::Unknown,
                }
            }
        }
    }

    /// Returns how the list called `name` is owned.
    pub(in crate::compare) fn list_ownership(self, name: &str, type_meta: TypeMeta<'_>) -> Ownership {
        match self {
            Self::BuiltIn => type_meta.list_ownership(name),
            Self::Deduced => Ownership::Atomic,
            Self::Unknown => Ownership::Unknown,
            Self::Schema(schema, _) => {
                if !may_have_type(schema, "array") {
                    return Ownership::Unknown;
                }
                match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                    Some("atomic") | None => Ownership::Atomic,
                    Some("set" | "map") => Ownership::Granular,
                    Some(_) => Ownership::Unknown,
                }
            }
        }
    }
}

/// Returns whether a node of a schema allows values of this JSON type. Otherwise its `x-kubernetes-` extensions do not
/// say how such a value is owned.
fn may_have_type(schema: &Map<String, Value>, json_type: &str) -> bool {
    match schema.get("type") {
        Some(schema_type) => schema_type.as_str() == Some(json_type),
        None => schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_definition_only_one_version_is_kept_and_means_the_same() {
        let schema = json!({"openAPIV3Schema": {
            "type": "object",
            "description": "for people",
            "properties": {"spec": {
                "type": "object",
                "description": "for people",
                "properties": {
                    "description": {"type": "string", "description": "for people"},
                    "links": {"type": "object", "default": {"description": "of a link"}},
                },
            }},
        }});
        let definition = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v2", "schema": schema, "subresources": {"status": {}}},
            ]},
        });
        let relevant = CrdVersion::reduce_definition(definition.clone(), "v2");
        assert!(!relevant.to_string().contains("for people"), "{relevant}");
        assert!(CrdVersion::from_definition(&relevant, "v1").is_none());
        let crd_version = CrdVersion::from_definition(&relevant, "v2").expect("a version");
        let whole = CrdVersion::from_definition(&definition, "v2").expect("a version");
        assert_eq!(crd_version.status_subresource, whole.status_subresource);
        let names = |definition: &CrdVersion<'_>| {
            let spec = definition.schema["properties"]["spec"]["properties"].clone();
            json!([spec["description"]["type"], spec["links"]["default"]])
        };
        let expected = json!(["string", {"description": "of a link"}]);
        assert_eq!((names(&crd_version), names(&whole)), (expected.clone(), expected));
        for without in [
            json!({}),
            json!({"spec": {"preserveUnknownFields": true}}),
            json!(null),
        ] {
            let relevant = CrdVersion::reduce_definition(without, "v2");
            assert!(
                CrdVersion::from_definition(&relevant, "v2").is_none(),
                "{relevant}"
            );
        }
    }
}
