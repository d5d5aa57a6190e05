//! Applies members: one server-side apply for each, and what its answer says.
//!
//! `apply` sends a member; the other files each know one way in which that is more than a
//! request and an answer.

pub(crate) mod apply;
pub(crate) mod conflict;
pub(crate) mod contested;
pub(crate) mod creation;
pub(crate) mod found;
pub(crate) mod invalid;
pub(crate) mod migrate;
pub(crate) mod parent_metadata;
pub(crate) mod refused;
pub(crate) mod taken_in;
pub(crate) mod webhooks;
