//! Applies members: one server-side apply for each, and the interpretation of its answer.
//!
//! `apply` sends a member; each other file handles one special case.

pub(crate) mod apply;
pub(crate) mod apply_as_read;
pub(crate) mod apply_with_live_fields;
mod before_write;
pub(crate) mod conflict;
mod exported_fields;
pub(crate) mod held_by_prune;
pub(crate) mod message_of_invalid_object;
pub(crate) mod message_of_rejected_manifest;
pub(crate) mod migrate;
pub(crate) mod not_recreated;
pub(crate) mod recreate;
pub(crate) mod reply;
pub(crate) mod taken_in;
mod until_gone;
