//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a whole set (`set`)
//! with its parent (`delete_parent_and_containers`). Both use `deletes`.
//!
//! What is looked at again, and when:
//!
//! - after a wait before prunes: all members (`judge_prunes_again`);
//! - before the first delete, and before the next one if a delete had to wait: owner references of what stays
//!   (`reread_dependents`), which are removed before the first delete (`remove_owner_references`);
//! - before the deletes of a step: what its namespaces and CRDs hold (`list_contents_again`);
//! - after a conflict: the object, and what it holds (`delete`); after a wait for a webhook: what it holds (`deletes`);
//! - before the parent's delete: the rest of the set (`execute/former_parent`).

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
