//! Compares live objects with their manifests: unchanged or not, differences, field ownership and
//! status.

pub mod changes;
pub mod diff;
pub mod drift;
mod field_paths;
pub mod ignore;
pub mod manifest_from_live_object;
pub mod nulls_and_pruned_fields;
pub mod ownership;
pub mod prediction;
pub mod rule_file;
pub mod status;
mod typed_place;
