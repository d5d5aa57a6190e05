//! Applies members: one server-side apply for each, and the interpretation of its answer.
//!
//! `apply` applies a member, `send_apply` sends it; each other file handles one special case.

pub mod apply;
pub mod apply_as_read;
pub mod apply_with_live_fields;
mod exported_fields;
mod former_membership;
pub mod managers_to_take_from;
pub mod message_of_conflict;
pub mod message_of_invalid_object;
pub mod message_of_rejected_manifest;
pub mod migrate_managed_fields;
pub mod not_recreated;
pub mod recreate;
pub mod reply;
pub mod send_apply;
pub mod taken_in;
