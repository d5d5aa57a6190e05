//! The place of a value in an object, with its type as far as it is known: from the tables of built-in kinds, or from
//! the definition of a custom resource.

use serde_json::{Value, json};

use super::changes::{
    CrdVersion, DeclaredOrKey, FieldOfKind, Shape, fill_in_schema_defaults, server_leaves_out,
    value_as_server_writes_it, zero_of,
};
use crate::model::built_in_kinds::{Ownership, TypeMeta};

/// The place of a value in an object.
#[derive(Clone, Copy)]
pub(super) struct TypedPlace<'n> {
    type_meta: TypeMeta<'n>,
    shape: Shape<'n>,
    /// The name of the field in which the field is; empty at the root.
    container: &'n str,
    /// The name of the field; for a list item, the name of the field of the list.
    name: &'n str,
    is_item: bool,
}

impl<'n> TypedPlace<'n> {
    /// Returns the place of an object; `None` for a custom resource without a definition.
    pub(super) fn of_known_type(object: &'n Value, definition: Option<CrdVersion<'n>>) -> Option<Self> {
        let place = Self::new(object, definition);
        (object["kind"].is_string() && !matches!(place.shape, Shape::Unknown)).then_some(place)
    }

    /// Returns the place of an object. Below a custom resource without a definition, only the types of the metadata are
    /// known.
    pub(super) fn new(object: &'n Value, definition: Option<CrdVersion<'n>>) -> Self {
        let type_meta = TypeMeta::from_object(object);
        Self {
            type_meta,
            shape: match definition {
                _ if type_meta.is_built_in() => Shape::BuiltIn,
                Some(definition) => definition.shape(),
                None => Shape::Unknown,
            },
            container: "",
            name: "",
            is_item: false,
        }
    }

    /// Returns whether the place is in an object of a built-in kind, or in metadata.
    pub(super) fn is_in_built_in_kind(self) -> bool {
        matches!(self.shape, Shape::BuiltIn)
    }

    /// Returns the place of a field of this map.
    pub(super) fn below(self, name: &'n str) -> Self {
        Self {
            shape: match (self.name, name) {
                ("", "metadata") => Shape::BuiltIn,
                _ => self.shape.field(name).0,
            },
            container: self.name,
            name,
            is_item: false,
            ..self
        }
    }

    /// Returns the place of an item of this list.
    pub(super) fn item(self) -> Self {
        Self {
            shape: self.shape.items(),
            is_item: true,
            ..self
        }
    }

    /// Returns how a field belongs to this map.
    pub(super) fn membership(self, name: &str) -> DeclaredOrKey {
        match (self.name, name) {
            ("", "apiVersion" | "kind" | "metadata") => DeclaredOrKey::Declared,
            _ => self.shape.field(name).1,
        }
    }

    /// Returns how a map at this place is owned.
    pub(super) fn map_ownership(self) -> Ownership {
        match self.shape {
            Shape::BuiltIn if self.is_item && self.type_meta.has_atomic_items(self.name) => Ownership::Atomic,
            Shape::BuiltIn if self.is_item => Ownership::Granular,
            shape => shape.map_ownership(self.name, self.type_meta),
        }
    }

    /// Returns how a list at this place is owned.
    pub(super) fn list_ownership(self) -> Ownership {
        self.shape.list_ownership(self.name, self.type_meta)
    }

    /// Returns the keys that distinguish the items of this list, each with its default; `None` if the list is a set, or
    /// if they are not known.
    pub(super) fn keys_of_list_with_defaults(self) -> Option<Vec<(String, Option<Value>)>> {
        match self.shape {
            Shape::BuiltIn => self.type_meta.keys_of_list_with_defaults(self.name),
            shape => shape.keys_of_list_map_with_defaults(),
        }
    }

    /// Returns a value of a manifest as the server writes it over this live value, as far as that is known.
    pub(super) fn as_server_writes_it(self, desired: &Value, live: &Value) -> Value {
        match self.shape {
            Shape::BuiltIn => value_as_server_writes_it(desired, live, self.field_of_kind()),
            Shape::Schema(schema, _) => {
                let mut value = desired.clone();
                fill_in_schema_defaults(&mut value, schema);
                value
            }
            Shape::Deduced | Shape::Unknown => desired.clone(),
        }
    }

    /// Returns whether the server does not store this value of a manifest, because it is empty.
    pub(super) fn is_left_out(self, desired: &Value) -> bool {
        matches!(self.shape, Shape::BuiltIn) && server_leaves_out(desired, self.field_of_kind())
    }

    fn field_of_kind(self) -> FieldOfKind<'n> {
        FieldOfKind {
            type_meta: self.type_meta,
            container: self.container,
            name: self.name,
        }
    }

    /// Returns the value with which a field was once sent that has an owner but no value: the empty value of its type,
    /// or `None` if a built-in kind has a field of this name whose type is not known. For any other kind, the value is
    /// null, which leaves the field without a value as well.
    pub(super) fn empty_value_once_sent(this: Option<Self>, name: &str) -> Option<Value> {
        match this {
            Some(place) if matches!(place.shape, Shape::BuiltIn) => {
                zero_of(place.type_meta, place.name, name)
            }
            Some(_) | None => Some(Value::Null),
        }
    }

    /// Returns the value with which a map or list was sent that has an owner, but whose parts do not. If parts of its
    /// type are owned one by one, it was sent empty.
    pub(super) fn value_as_sent(self, value: &Value) -> Value {
        match value {
            Value::Object(_) if self.map_ownership() == Ownership::Granular => json!({}),
            Value::Array(_) if self.list_ownership() == Ownership::Granular => json!([]),
            value => value.clone(),
        }
    }
}
