//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a whole set (`set`)
//! with its parent. Both use `deletes`. `parent` sees to the parent of every set that objects leave, also by `move` and
//! `disband`.

pub mod delete;
mod delete_parent_and_containers;
pub mod deletes;
mod judge_prunes_again;
pub mod list_contents_again;
pub mod prune;
pub mod remove_owner_references;
pub mod report;
pub mod reread_dependents;
pub mod set;
