//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a whole set (`set`)
//! with its parent (`delete_parent_and_containers`). Both carry out their deletes by `deletes`.

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
