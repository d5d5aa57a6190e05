//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a
//! whole set (`set`) with its parent (`parent`).

pub(crate) mod contents;
mod delete_parent_and_containers;
pub(crate) mod detach;
mod judge_prunes_again;
pub(crate) mod object;
pub(crate) mod parent;
pub(crate) mod prune;
pub(crate) mod report;
pub(crate) mod reread_dependents;
pub(crate) mod set;
pub(crate) mod wait_until_members_are_gone;
