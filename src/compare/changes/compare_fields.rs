//! Compares manifest, field set and live object field by field, up to the first reason to send the manifest.

use serde_json::{Map, Value};

use super::atomic_or_granular::{DeclaredOrKey, Ownership, Shape};
use super::own_and_other_entries::OwnAndOtherEntries;
use super::server_writes_as::{self, FieldOfKind};
use super::{CrdVersion, Reason};
use crate::compare::field_paths::format_readable_path;
use crate::compare::ownership::{KUBECTL_FIELD_MANAGER, LAST_APPLIED};
use crate::model::built_in_kinds::TypeMeta;

/// The greatest depth that is compared: deeper than any schema in use, and shallow enough for any
/// stack.
const MAX_DEPTH: usize = 100;

/// Fields of metadata that the server never records (`managedfields/internal/stripmeta.go`). `managedFields` is one
/// more.
pub(in crate::compare) const METADATA_NEVER_RECORDED: [&str; 7] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "resourceVersion",
];

/// The result of comparing a field, a list or a whole object. `Err` is not a failure: it holds the first reason to send
/// the manifest, and `?` ends the comparison there.
pub(super) type UnchangedOrReason = Result<(), Reason>;
pub(super) type Fields = Map<String, Value>;

/// Compares manifest and live object. `crd_version` describes a custom resource; `None` if it is not known.
pub(super) fn check_unchanged(
    desired: &Value,
    live: &Value,
    field_manager: &str,
    crd_version: Option<&CrdVersion<'_>>,
) -> UnchangedOrReason {
    let (Some(desired_fields), Some(live_fields)) = (desired.as_object(), live.as_object()) else {
        return Err(Reason::ValueDiffers("the object".to_owned()));
    };
    let type_meta = TypeMeta::from_object(desired);
    for name in ["apiVersion", "kind"] {
        if live_fields
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
    let is_built_in = type_meta.is_built_in();
    let mut comparison = FieldComparison {
        status_ignored: is_status_ignored(type_meta, crd_version),
        is_built_in,
        type_meta,
        path: Vec::with_capacity(16),
        entries: &entries,
    };
    let shape = if is_built_in {
        Shape::BuiltIn
    } else {
        crd_version.map_or(Shape::Unknown, CrdVersion::shape)
    };
    let result = comparison.compare_granular_map(desired_fields, &entries.ours, live_fields, shape);
    if entries.has_applied {
        result
    } else {
        // We own the part-of label at most. The first field that differs is then less telling than that we have never
        // applied the object.
        result.map_err(|_| Reason::NotOwnedByUs)
    }
}

/// Returns whether the server ignores the status in a write of the object itself. `crd_version` describes a
/// custom resource; `None` if it is not known.
pub(in crate::compare) fn is_status_ignored(
    type_meta: TypeMeta<'_>,
    crd_version: Option<&CrdVersion<'_>>,
) -> bool {
    type_meta.ignores_status() || crd_version.is_some_and(CrdVersion::has_status_subresource)
}

/// The comparison of one object, at the field that it has reached.
pub(super) struct FieldComparison<'a> {
    pub(super) type_meta: TypeMeta<'a>,
    /// The object is of a built-in kind. [`server_writes_as`] knows how the server writes values of such kinds.
    pub(super) is_built_in: bool,
    /// The server ignores the status of a manifest.
    status_ignored: bool,
    /// The keys from the root of the tree to the field that is compared. They stay here when a reason is found, because
    /// it ends the comparison.
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
    ) -> UnchangedOrReason {
        if self.path.len() > MAX_DEPTH {
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
        // One buffer for all keys, since this runs for each map of each member.
        let mut key = String::from("f:");
        for (name, value) in desired {
            key.truncate("f:".len());
            key.push_str(name);
            if !owned.contains_key(&key) {
                self.compare_unowned_field(name, value, live.get(name), shape)?;
            }
        }
        Ok(())
    }

    /// Compares a field that our entry has.
    ///
    /// If there are fields below it, an apply records the field itself, by the key `.`, only if the field is a key of a
    /// map. An update records it in any case, and adopted objects keep the keys that updates of the former tool have
    /// recorded:
    ///
    /// | field | with `.` | without `.` |
    /// |---|---|---|
    /// | declared by the type | `OwnedAsByUpdate` | compared |
    /// | key of a map | compared | `Unreadable` |
    /// | unknown which | `UnknownShape` | compared |
    fn compare_owned_field(
        &mut self,
        name: &'a str,
        desired: &'a Value,
        owned: &'a Fields,
        live: Option<&'a Value>,
        shape: Shape<'a>,
    ) -> UnchangedOrReason {
        let (shape, declared_or_key) = if self.path == ["f:metadata"] {
            // The schema of a CRD does not describe metadata, which all kinds have in common.
            (Shape::BuiltIn, DeclaredOrKey::Declared)
        } else {
            shape.field(name)
        };
        if owned.is_empty() {
            return self.check_leaf_unchanged(name, desired, live, shape);
        }
        let has_own_key = owned.contains_key(".");
        match (declared_or_key, has_own_key) {
            (DeclaredOrKey::Declared, true) => return Err(Reason::OwnedAsByUpdate(self.path_here())),
            (DeclaredOrKey::Key, false) => return Err(Reason::Unreadable(self.path_here())),
            (DeclaredOrKey::Unknown, true) => return Err(Reason::UnknownShape(self.path_here())),
            (DeclaredOrKey::Declared | DeclaredOrKey::Unknown, false) | (DeclaredOrKey::Key, true) => {}
        }
        match (desired, live) {
            (Value::Object(desired), Some(Value::Object(live))) => {
                self.compare_granular_map(desired, owned, live, shape)
            }
            (Value::Array(desired), Some(Value::Array(live))) => {
                self.compare_list_items(desired, owned, live, shape.items())
            }
            (Value::Object(_) | Value::Array(_), _) => Err(Reason::ValueDiffers(self.path_here())),
            // The manifest has one value in the place of the fields that our entry has.
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
    ) -> UnchangedOrReason {
        let ownership = match desired {
            // `{}` is recorded as a leaf whatever the type.
            Value::Object(fields) if fields.is_empty() => Ownership::Atomic,
            Value::Object(_) => shape.map_ownership(name, self.type_meta),
            Value::Array(_) => shape.list_ownership(name, self.type_meta),
            _ => Ownership::Atomic,
        };
        match ownership {
            Ownership::Granular => return Err(Reason::FieldAdded(self.path_here())),
            Ownership::Unknown => return Err(Reason::UnknownShape(self.path_here())),
            Ownership::Atomic => {}
        }
        if live == Some(desired) || self.merge_of_empty_keeps_live_value(name, desired, live, shape) {
            return Ok(());
        }
        let field = self.field_with_kind(self.container_name(), name);
        let written_differently = match (shape, live) {
            (Shape::BuiltIn, Some(live)) => server_writes_as::server_writes_as(desired, live, field),
            (Shape::BuiltIn, None) => self.is_built_in && server_writes_as::server_leaves_out(desired, field),
            (Shape::Schema(schema, _), Some(live)) => {
                server_writes_as::equals_with_schema_defaults(desired, live, schema)
            }
            (Shape::Schema(..), None) | (Shape::Deduced | Shape::Unknown, _) => false,
        };
        if written_differently {
            self.check_not_shared(self.path.iter().copied())
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
        let is_null_or_empty_map = match desired {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        let ownership = match live {
            Some(Value::Object(fields)) if is_null_or_empty_map && !fields.is_empty() => {
                shape.map_ownership(name, self.type_meta)
            }
            Some(Value::Array(items)) if desired.is_null() && !items.is_empty() => {
                shape.list_ownership(name, self.type_meta)
            }
            _ => return false,
        };
        ownership == Ownership::Granular
    }

    /// Compares a field of the manifest that our entry does not have. Unlike for other fields, `path` ends at the map
    /// that the field is in.
    fn compare_unowned_field(
        &mut self,
        name: &str,
        desired: &'a Value,
        live: Option<&'a Value>,
        shape: Shape<'a>,
    ) -> UnchangedOrReason {
        match self.path.as_slice() {
            [] => match name {
                "apiVersion" | "kind" => return Ok(()),
                "metadata" => return Err(Reason::NotOwnedByUs),
                "status" if self.server_keeps_live_status(desired, live) => {
                    return self.check_sole_applier(name);
                }
                _ => {}
            },
            ["f:metadata"] if METADATA_NEVER_RECORDED.contains(&name) => {
                return if live == Some(desired) {
                    Ok(())
                } else {
                    Err(Reason::ValueDiffers(self.path_below(name)))
                };
            }
            _ => {}
        }
        let (field_shape, declared_or_key) = shape.field(name);
        let is_empty_associative_list = desired.as_array().is_some_and(Vec::is_empty)
            && declared_or_key == DeclaredOrKey::Declared
            && field_shape.list_ownership(name, self.type_meta) == Ownership::Granular;
        if is_empty_associative_list {
            return self.check_empty_associative_list(name, desired, live);
        }
        // A built-in kind may take a map of empty lists for an absent one.
        if !self.is_built_in && leaves_no_trace_when_applied(name, desired, live, shape, self.type_meta) {
            return Ok(());
        }
        Err(Reason::FieldAdded(self.path_below(name)))
    }

    /// Compares an empty associative list, which our entry does not have because there is nothing in it to own.
    fn check_empty_associative_list(
        &self,
        name: &str,
        desired: &Value,
        live: Option<&Value>,
    ) -> UnchangedOrReason {
        let field = self.field_with_kind(last_field_name(&self.path), name);
        match live {
            Some(Value::Array(_)) => Ok(()),
            None if self.is_built_in && server_writes_as::server_leaves_out(desired, field) => {
                let key = format!("f:{name}");
                self.check_not_shared(self.path.iter().copied().chain([key.as_str()]))
            }
            _ => Err(Reason::ValueDiffers(self.path_below(name))),
        }
    }

    /// Returns whether the server replaces this status by the live one.
    fn server_keeps_live_status(&self, desired: &Value, live: Option<&Value>) -> bool {
        if self.status_ignored {
            return server_writes_as::is_blank_status(desired, self.type_meta);
        }
        let live = live.and_then(Value::as_object);
        desired.as_object().is_some_and(Map::is_empty)
            && live.is_some_and(|live| !live.is_empty())
            && self.entries.has_subresource_status()
    }

    /// Accepts a value that the server writes in another way, if no other manager's entry has the
    /// path: an apply would change that entry.
    fn check_not_shared<'p>(&self, path: impl Iterator<Item = &'p str> + Clone) -> UnchangedOrReason {
        if self.entries.others_have(&path) {
            return Err(Reason::SharedField(format_readable_path(path)));
        }
        Ok(())
    }

    /// Accepts a value of a field that no entry has, if no other manager has applied.
    fn check_sole_applier(&self, name: &str) -> UnchangedOrReason {
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
        let keys_above = self.path.len().saturating_sub(1);
        last_field_name(&self.path[..keys_above])
    }

    pub(super) fn path_here(&self) -> String {
        format_readable_path(self.path.iter().copied())
    }

    fn path_below(&self, name: &str) -> String {
        let key = format!("f:{name}");
        format_readable_path(self.path.iter().copied().chain([key.as_str()]))
    }
}

/// Returns the name of the last field of a path; keys of list items are skipped.
fn last_field_name<'a>(path: &[&'a str]) -> &'a str {
    path.iter()
        .rev()
        .find_map(|key| key.strip_prefix("f:"))
        .unwrap_or_default()
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
    let (field_shape, declared_or_key) = shape.field(name);
    if !matches!(field_shape, Shape::Schema(..)) || declared_or_key != DeclaredOrKey::Declared {
        return false;
    }
    match (desired, live) {
        (Value::Array(desired), Some(Value::Array(_))) => {
            desired.is_empty() && field_shape.list_ownership(name, type_meta) == Ownership::Granular
        }
        (Value::Object(desired), Some(Value::Object(live))) => {
            !desired.is_empty()
                && field_shape.map_ownership(name, type_meta) == Ownership::Granular
                && desired.iter().all(|(name, desired)| {
                    leaves_no_trace_when_applied(name, desired, live.get(name), field_shape, type_meta)
                })
        }
        _ => false,
    }
}
