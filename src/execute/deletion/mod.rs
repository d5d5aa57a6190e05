//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a
//! whole set (`set`) with its parent (`parent`).

pub(crate) mod contents;
pub(crate) mod dependents;
pub(crate) mod detach;
mod finish;
mod judge_prunes_again;
pub(crate) mod object;
pub(crate) mod parent;
pub(crate) mod prune;
pub(crate) mod remaining;
pub(crate) mod report;
pub(crate) mod set;
