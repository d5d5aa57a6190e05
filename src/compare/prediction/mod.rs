//! Predicts what a server-side apply makes of an object, from the live object alone: for users who may only read, and
//! for applies of which no dry run shows the result.
//!
//! It follows structured-merge-diff v6 (`merge/update.go`, `Apply`): the manifest is merged into the live object;
//! what our manager has applied before, and no manager owns any more, is removed; and a value that changes is in
//! conflict with each other manager that owns it. The types are the same as in change detection: a table for built-in
//! kinds, the definition of a custom resource, and otherwise what managedFields show.
//!
//! Only the server knows the rest: defaults of built-in kinds, validation, admission, and conversion between versions.
//! So a prediction is shown, or sent to the server as a dry run, and never decides alone what is written.

mod given_up_fields;
mod merge;
mod owners;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Value};

use super::changes::{CrdVersion, fill_in_schema_defaults, is_status_ignored};
use super::ignore::ManagedFieldsEntries;
use super::ownership::{KUBECTL_FIELD_MANAGER, LAST_APPLIED, entries, is_apply_of};
use super::typed_place::TypedPlace;
use crate::model::built_in_kinds::TypeMeta;
use merge::{Fields, Merge, Path};
pub use owners::PredictedConflict;
use owners::{FieldOwners, managed_fields_before_first_apply};

/// An object as an apply would leave it if no field were in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictedApply {
    /// The object, with its managedFields.
    pub object: Value,
    /// The fields that the apply changes although other managers own them.
    pub conflicts: Vec<PredictedConflict>,
    /// The reason why an apply may have another result; `None` if the types and owners are known.
    pub doubt: Option<Doubt>,
    /// True if the apply removes fields that our manager owns and the manifest lacks.
    pub gives_up_fields: bool,
}

/// The reason why a prediction may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// managedFields name another version of the API, in which fields may have other paths.
    OtherVersion,
    /// The types are not known, and decide how maps and lists are merged.
    UnknownTypes,
    /// The server writes what is sent into the annotation of client-side apply.
    AnnotationOfClientSideApply,
    /// The run takes the fields of a former owner, such as client-side apply, which has recorded defaults of the server
    /// as its own. They seem to be given up, and the server sets them again.
    DefaultsOfFormerOwner,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherVersion => "the object's managed fields were written in another API version",
            Self::UnknownTypes => "the types of the object's fields are not known",
            Self::AnnotationOfClientSideApply => "the server rewrites the annotation of client-side apply",
            Self::DefaultsOfFormerOwner => {
                "the former owner of the object's fields has recorded the server's defaults as its own, so they may be shown as removed"
            }
        })
    }
}

/// Predicts an apply of `manifest` by `manager`. `live` is the whole live object, read in the API version of the
/// manifest, and `definition` is that version of the CRD of a custom resource.
pub fn predict_apply(
    live: &Value,
    manifest: &Value,
    manager: &str,
    definition: Option<CrdVersion<'_>>,
) -> PredictedApply {
    let place = TypedPlace::new(manifest, definition);
    let api_version = &manifest["apiVersion"];
    let live_fields = live.as_object().cloned().unwrap_or_default();
    let mut metadata = live["metadata"].clone();
    if entries(&metadata).is_empty() {
        let all_fields = Merge::default()
            .merge_fields(
                &Fields::new(),
                &live_fields,
                place,
                &ManagedFieldsEntries::default(),
            )
            .1;
        metadata["managedFields"] = managed_fields_before_first_apply(api_version, all_fields);
    }
    let mut merge = Merge::default();
    let entries_before = ManagedFieldsEntries::read(&metadata, manager);
    let desired = remove_ignored_status(manifest, definition);
    let (object, applied_fields) = merge.merge_fields(&live_fields, &desired, place, &entries_before);
    let mut object = Value::Object(object);
    let owners = FieldOwners::new(&metadata, manager, applied_fields);
    let removed_paths = given_up_fields::remove(&mut object, &owners, place);
    object["metadata"]["managedFields"] =
        owners.managed_fields_after_apply(api_version, &merge.changed, &removed_paths);
    if let Some(definition) = definition {
        fill_in_schema_defaults(&mut object, definition.schema());
    }
    PredictedApply {
        doubt: find_doubt(&metadata, manager, api_version, &merge, &removed_paths),
        conflicts: owners.conflicts(&merge.changed),
        gives_up_fields: !removed_paths.is_empty(),
        object,
    }
}

/// Finds the doubt that the object itself shows. The caller adds [`Doubt::DefaultsOfFormerOwner`].
fn find_doubt(
    metadata: &Value,
    manager: &str,
    api_version: &Value,
    merge: &Merge,
    removed_paths: &[Path],
) -> Option<Doubt> {
    // Entries of others matter only if something changes.
    let is_same = merge.changed.is_empty() && removed_paths.is_empty();
    if entries(metadata)
        .iter()
        .filter(|entry| entry["apiVersion"] != *api_version)
        .any(|entry| !is_same || is_apply_of(entry, manager))
    {
        Some(Doubt::OtherVersion)
    } else if manager == KUBECTL_FIELD_MANAGER && metadata["annotations"].get(LAST_APPLIED).is_some() {
        Some(Doubt::AnnotationOfClientSideApply)
    } else {
        merge.has_unknown_type.then_some(Doubt::UnknownTypes)
    }
}

/// Returns an object as the server creates it from a manifest, without the defaults of built-in kinds.
pub fn predict_creation(manifest: &Value, definition: Option<CrdVersion<'_>>) -> Value {
    let mut object = Value::Object(remove_ignored_status(manifest, definition));
    if let Some(definition) = definition {
        fill_in_schema_defaults(&mut object, definition.schema());
    }
    object
}

/// Returns the fields of a manifest, without a status that can only be written through its subresource.
fn remove_ignored_status(manifest: &Value, definition: Option<CrdVersion<'_>>) -> Map<String, Value> {
    let mut fields = manifest.as_object().cloned().unwrap_or_default();
    if is_status_ignored(TypeMeta::from_object(manifest), definition.as_ref()) {
        fields.remove("status");
    }
    fields
}
