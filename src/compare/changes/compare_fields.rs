//! Compares manifest, field set and live object field by field, up to the first reason to send.

use serde_json::{Map, Value};

use super::atomic_or_granular::{DeclaredOrKey, Ownership, Shape};
use super::defaults::FieldOfKind;
use super::own_and_other_entries::OwnAndOtherEntries;
use super::{CrdVersion, Reason, defaults};
use crate::compare::field_paths::format_readable_path;
use crate::compare::ownership::{KUBECTL_FIELD_MANAGER, LAST_APPLIED};
use crate::model::built_in_kinds::TypeMeta;

/// The greatest depth that is compared: deeper than any schema in use, and shallow enough for any
/// stack.
const DEEPEST: usize = 100;

pub(super) type Step = Result<(), Reason>;
pub(super) type Fields = Map<String, Value>;

/// Compares manifest and live object; fails with the first reason to send.
pub(super) fn check_unchanged(
    desired: &Value,
    live: &Value,
    field_manager: &str,
    definition: Option<&CrdVersion<'_>>,
) -> Step {
    let (Some(desired_fields), Some(existing)) = (desired.as_object(), live.as_object()) else {
        return Err(Reason::ValueDiffers(String::new()));
    };
    let type_meta = type_meta_of(desired);
    for name in ["apiVersion", "kind"] {
        if existing
            .get(name)
            .is_some_and(|known| Some(known) != desired_fields.get(name))
        {
            return Err(Reason::OtherVersion);
        }
    }
    let metadata = &live["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return Err(Reason::Terminating);
    }
    // The server rewrites the annotation with each apply.
    if field_manager == KUBECTL_FIELD_MANAGER && metadata["annotations"].get(LAST_APPLIED).is_some() {
        let path = format!("metadata.annotations[{LAST_APPLIED}]");
        return Err(Reason::SharedField(path));
    }
    let managed_fields = &metadata["managedFields"];
    let entries = OwnAndOtherEntries::read(managed_fields, type_meta.api_version, field_manager)?;
    // etcd may hold an empty list that another manager has applied to a custom resource's
    // metadata (`finalizers: []`). A read omits it, and the next write drops it, so whether it
    // is there cannot be seen.
    if !type_meta.is_built_in() && !entries.is_sole_applier() {
        return Err(Reason::SharedField("metadata".to_owned()));
    }
    let mut comparison = FieldComparison {
        status_ignored: type_meta.ignores_status()
            || definition.is_some_and(CrdVersion::has_status_subresource),
        built_in: type_meta.is_built_in(),
        type_meta,
        path: Vec::with_capacity(16),
        entries: &entries,
    };
    let shape = match definition {
        _ if comparison.built_in => Shape::BuiltIn,
        Some(definition) => definition.shape(),
        None => Shape::Unknown,
    };
    let outcome = comparison.compare_granular_map(desired_fields, &entries.ours, existing, shape);
    if entries.has_applied {
        outcome
    } else {
        outcome.map_err(|_| Reason::NotOwnedByUs)
    }
}

pub(super) fn type_meta_of(object: &Value) -> TypeMeta<'_> {
    TypeMeta {
        api_version: object["apiVersion"].as_str().unwrap_or_default(),
        kind: object["kind"].as_str().unwrap_or_default(),
    }
}

/// The comparison of one object, at the field that it has reached.
pub(super) struct FieldComparison<'a> {
    pub(super) type_meta: TypeMeta<'a>,
    /// Values may be compared as the server writes them.
    pub(super) built_in: bool,
    status_ignored: bool,
    /// The keys of the tree from its root to here.
    pub(super) path: Vec<&'a str>,
    entries: &'a OwnAndOtherEntries<'a>,
}

impl<'a> FieldComparison<'a> {
    /// Compares a granular map field by field.
    pub(super) fn compare_granular_map(
        &mut self,
        desired: &'a Fields,
        owned: &'a Fields,
        live: &'a Fields,
        shape: Shape<'a>,
    ) -> Step {
        if self.path.len() > DEEPEST {
            return Err(Reason::TooDeep(self.path_here()));
        }
        let mut covered = 0;
        for (key, node) in owned {
            if key == "." {
                continue;
            }
            self.path.push(key);
            let (Some(name), Value::Object(node)) = (key.strip_prefix("f:"), node) else {
                return Err(Reason::Unreadable(self.path_here()));
            };
            let Some(value) = desired.get(name) else {
                return Err(Reason::FieldDropped(self.path_here()));
            };
            self.compare_owned_field(name, value, node, live.get(name), shape)?;
            self.path.pop();
            covered += 1;
        }
        if covered == desired.len() {
            return Ok(());
        }
        let mut key = String::from("f:");
        for (name, value) in desired {
            key.truncate(2);
            key.push_str(name);
            if !owned.contains_key(&key) {
                self.compare_unowned_field(name, value, live.get(name), shape)?;
            }
        }
        Ok(())
    }

    /// Compares a field that our entry has.
    fn compare_owned_field(
        &mut self,
        name: &'a str,
        desired: &'a Value,
        owned: &'a Fields,
        live: Option<&'a Value>,
        shape: Shape<'a>,
    ) -> Step {
        let (mut shape, mut membership) = shape.field(name);
        if self.path == ["f:metadata"] {
            (shape, membership) = (Shape::BuiltIn, DeclaredOrKey::Declared);
        }
        if owned.is_empty() {
            return self.check_leaf_unchanged(name, desired, live, shape);
        }
        // An apply takes keys out of its entry that it does not write itself.
        let self_owned = owned.contains_key(".");
        match membership {
            // Adopted fields keep the keys that the updates of the former tool have recorded.
            DeclaredOrKey::Declared if self_owned => return Err(Reason::OwnedAsByUpdate(self.path_here())),
            DeclaredOrKey::Key if !self_owned => return Err(Reason::Unreadable(self.path_here())),
            // A key of a map, or a declared field that an update has recorded.
            DeclaredOrKey::Unknown if self_owned => return Err(Reason::UnknownShape(self.path_here())),
            DeclaredOrKey::Declared | DeclaredOrKey::Key | DeclaredOrKey::Unknown => {}
        }
        match (desired, live) {
            (Value::Object(desired), Some(Value::Object(live))) => {
                self.compare_granular_map(desired, owned, live, shape)
            }
            (Value::Array(desired), Some(Value::Array(live))) => {
                self.compare_list_items(desired, owned, live, shape.items())
            }
            (Value::Object(_) | Value::Array(_), _) => Err(Reason::ValueDiffers(self.path_here())),
            _ => Err(Reason::FieldDropped(self.path_here())),
        }
    }

    /// Compares a field that our entry has as one value.
    fn check_leaf_unchanged(
        &mut self,
        name: &str,
        desired: &Value,
        live: Option<&Value>,
        shape: Shape<'a>,
    ) -> Step {
        let relation = match desired {
            // `{}` is recorded as a leaf whatever the type.
            Value::Object(fields) if fields.is_empty() => Ownership::Atomic,
            Value::Object(_) => shape.map_ownership(name, self.type_meta),
            Value::Array(_) => shape.list_ownership(name, self.type_meta),
            _ => Ownership::Atomic,
        };
        match relation {
            Ownership::Granular => return Err(Reason::FieldAdded(self.path_here())),
            Ownership::Unknown => return Err(Reason::UnknownShape(self.path_here())),
            Ownership::Atomic => {}
        }
        if live == Some(desired) || self.merge_of_empty_keeps_live_value(name, desired, live, shape) {
            return Ok(());
        }
        let field = self.field_with_kind(self.container_name(), name);
        let written_differently = match (shape, live) {
            (Shape::BuiltIn, Some(live)) => defaults::server_writes_as(desired, live, field),
            (Shape::BuiltIn, None) => self.built_in && defaults::server_leaves_out(desired, field),
            (Shape::Schema(schema, _), Some(live)) => {
                defaults::equals_with_schema_defaults(desired, live, schema)
            }
            (Shape::Schema(..), None) | (Shape::Deduced | Shape::Unknown, _) => false,
        };
        if written_differently {
            self.check_not_shared(None)
        } else {
            Err(Reason::ValueDiffers(self.path_here()))
        }
    }

    /// Returns whether merging `{}` or `null` into the live value keeps it all.
    fn merge_of_empty_keeps_live_value(
        &self,
        name: &str,
        desired: &Value,
        live: Option<&Value>,
        shape: Shape<'a>,
    ) -> bool {
        let relation = match (desired, live) {
            (Value::Null, Some(Value::Object(live))) if !live.is_empty() => {
                shape.map_ownership(name, self.type_meta)
            }
            (Value::Object(desired), Some(Value::Object(live))) if desired.is_empty() && !live.is_empty() => {
                shape.map_ownership(name, self.type_meta)
            }
            (Value::Null, Some(Value::Array(live))) if !live.is_empty() => {
                shape.list_ownership(name, self.type_meta)
            }
            _ => Ownership::Unknown,
        };
        relation == Ownership::Granular
    }

    /// Judges a field of the manifest that our entry does not have.
    fn compare_unowned_field(
        &mut self,
        name: &str,
        desired: &'a Value,
        live: Option<&'a Value>,
        shape: Shape<'a>,
    ) -> Step {
        match (self.path.as_slice(), name) {
            ([], "apiVersion" | "kind") => Ok(()),
            ([], "metadata") => Err(Reason::NotOwnedByUs),
            ([], "status") if self.does_server_keep_live_status(desired, live) => {
                self.check_sole_applier(name)
            }
            // Never recorded (`managedfields/internal/stripmeta.go`).
            (
                ["f:metadata"],
                "name" | "namespace" | "creationTimestamp" | "selfLink" | "uid" | "generation"
                | "resourceVersion",
            ) => match live {
                Some(live) if live == desired => Ok(()),
                _ => Err(Reason::ValueDiffers(self.path_below(name))),
            },
            // An empty associative list is nothing to own.
            _ if desired.as_array().is_some_and(Vec::is_empty)
                && shape.field(name).1 == DeclaredOrKey::Declared
                && shape.field(name).0.list_ownership(name, self.type_meta) == Ownership::Granular =>
            {
                match live {
                    Some(Value::Array(_)) => Ok(()),
                    None if self.built_in
                        && defaults::server_leaves_out(
                            desired,
                            self.field_with_kind(self.last_field_name_of_first_keys(self.path.len()), name),
                        ) =>
                    {
                        let key = format!("f:{name}");
                        self.check_not_shared(Some(&key))
                    }
                    _ => Err(Reason::ValueDiffers(self.path_below(name))),
                }
            }
            // Built-in kinds may take such a map for an absent one.
            _ if !self.built_in
                && leaves_no_trace_when_applied(name, desired, live, shape, self.type_meta) =>
            {
                Ok(())
            }
            _ => Err(Reason::FieldAdded(self.path_below(name))),
        }
    }

    /// Returns whether the server replaces this status by the live one.
    fn does_server_keep_live_status(&self, desired: &Value, live: Option<&Value>) -> bool {
        if self.status_ignored {
            return defaults::is_blank_status(desired, self.type_meta);
        }
        let live = live.and_then(Value::as_object);
        desired.as_object().is_some_and(Map::is_empty)
            && live.is_some_and(|live| !live.is_empty())
            && self.entries.is_status_written_as_subresource()
    }

    /// Accepts a value that the server writes in another way, if no other manager's entry would
    /// change.
    fn check_not_shared(&self, key: Option<&str>) -> Step {
        let path = self.path.iter().copied().chain(key);
        if self.entries.others_have(&path) {
            return Err(Reason::SharedField(format_readable_path(path)));
        }
        Ok(())
    }

    /// Accepts a value of a field that no entry has, if no other manager has applied.
    fn check_sole_applier(&self, name: &str) -> Step {
        if self.entries.is_sole_applier() {
            Ok(())
        } else {
            Err(Reason::SharedField(self.path_below(name)))
        }
    }

    fn field_with_kind<'f>(&self, container: &'f str, name: &'f str) -> FieldOfKind<'f>
    where
        'a: 'f,
    {
        FieldOfKind {
            type_meta: self.type_meta,
            container,
            name,
        }
    }

    /// Returns the name of the field that the current field is in.
    fn container_name(&self) -> &'a str {
        self.last_field_name_of_first_keys(self.path.len().saturating_sub(1))
    }

    /// Returns the name of the last field in the first `keys` keys of the path; keys of list items are skipped.
    fn last_field_name_of_first_keys(&self, keys: usize) -> &'a str {
        self.path[..keys]
            .iter()
            .rev()
            .find_map(|key| key.strip_prefix("f:"))
            .unwrap_or_default()
    }

    pub(super) fn path_here(&self) -> String {
        format_readable_path(self.path.iter().copied())
    }

    fn path_below(&self, name: &str) -> String {
        let key = format!("f:{name}");
        format_readable_path(self.path.iter().copied().chain([key.as_str()]))
    }
}

/// Returns whether a field of a custom resource exists already, and is an empty associative list, or a map with nothing
/// but such lists. An apply of it leaves no trace in a tree.
fn leaves_no_trace_when_applied(
    name: &str,
    desired: &Value,
    live: Option<&Value>,
    shape: Shape<'_>,
    type_meta: TypeMeta<'_>,
) -> bool {
    let (below, membership) = shape.field(name);
    if !matches!(below, Shape::Schema(..)) || membership != DeclaredOrKey::Declared {
        return false;
    }
    match (desired, live) {
        (Value::Array(desired), Some(Value::Array(_))) => {
            desired.is_empty() && below.list_ownership(name, type_meta) == Ownership::Granular
        }
        (Value::Object(desired), Some(Value::Object(live))) => {
            !desired.is_empty()
                && below.map_ownership(name, type_meta) == Ownership::Granular
                && desired.iter().all(|(name, desired)| {
                    leaves_no_trace_when_applied(name, desired, live.get(name), below, type_meta)
                })
        }
        _ => false,
    }
}
