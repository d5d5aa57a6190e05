//! Field ownership (`metadata.managedFields`): the names under which the fields of members and
//! parents are owned, and its migration from client-side to server-side apply.
//!
//! Pure: metadata in, a patch or an object out.

mod applyset_metadata;
mod creator;
mod fields_to_take;
mod managed_fields;
mod managers;
mod merge_patch;
mod migration;
mod owned_fields;
mod owners_of_invalid_fields;
mod replicas;
mod stale_fields;
mod unusable_versions;

pub use applyset_metadata::with_applyset_metadata;
pub use creator::{Creator, creator};
pub use fields_to_take::manifest_to_restore;
pub use managed_fields::{annotation_writers, content_writers, was_created_by};
pub(in crate::compare) use managed_fields::{apply_entry, entries, is_apply_of};
pub use managers::{
    APPLIERS, CLIENT_SIDE_APPLY, FOREIGN_PARENT_FIELD_MANAGER, KUBECTL_FIELD_MANAGER,
    KUBECTL_PARENT_FIELD_MANAGER, MEMBER_FIELD_MANAGER, PARENT_FIELD_MANAGER, member_field_manager,
    parent_field_manager,
};
pub use merge_patch::merge_patch;
pub use migration::{
    Former, LastApplied, has_client_side_apply, has_string_data, migrate_managed_fields,
    migrate_secret_managed_fields, migration_patch, replacement_patch, secret_migration_patch,
};
pub use owned_fields::{
    applied_version, fields_applied, fields_applied_by, fields_of_all, manifest_of, needs_definition,
};
pub use owners_of_invalid_fields::only_others_own;
pub use replicas::{ReplicasPath, dropped_replicas};
pub use stale_fields::{own_manifest, without_stale_fields};
pub use unusable_versions::{names_other_version, without_unusable_versions};

/// The annotation with the last manifest of client-side apply.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
