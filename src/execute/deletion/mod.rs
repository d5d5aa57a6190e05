//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a whole set (`set`)
//! with its parent (`parent`). Both use `deletes`.

pub(crate) mod delete;
mod delete_parent_and_containers;
pub(crate) mod deletes;
mod judge_prunes_again;
pub(crate) mod list_contents_again;
pub(crate) mod parent;
pub(crate) mod prune;
pub(crate) mod remove_owner_references;
pub(crate) mod report;
pub(crate) mod reread_dependents;
pub(crate) mod set;
pub(crate) mod wait_until_members_are_gone;
