//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a whole set (`set`)
//! with its parent (`delete_parent_and_containers`). Both use `deletes`.
//!
//! What is looked at again, and when:
//!
//! - after a wait before prunes: all members (`list_members_and_judge_prunes`);
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
pub mod report_parent_and_remains;
pub mod reread_dependents;
pub mod set;

use std::collections::{BTreeMap, HashSet};

use self::delete::{DeleteContext, DeletePurpose};
use crate::event::Action;
use crate::execute::Execution;
use crate::model::containers::Contents;
use crate::model::identity::ObjectKey;
use crate::plan::{Dependents, Judge};

impl Execution<'_> {
    /// Returns the contents that namespaces and CRDs had when the plan judged their deletion.
    pub fn contents_when_planned(&self) -> &BTreeMap<ObjectKey, Contents> {
        &self.state.observed.contents
    }

    /// Creates the judge of the deletes. `dependents` are the dependents of the objects to delete, `desired_uids` the
    /// UIDs of the objects that the run has applied.
    pub fn deletion_judge(&self, dependents: &Dependents, desired_uids: HashSet<String>) -> Judge<'_> {
        let mut judge = Judge::for_plan(
            self.set,
            self.policy,
            self.desired,
            self.contents_when_planned(),
            self.plan,
            desired_uids,
        );
        judge.replace_dependents(dependents);
        judge
    }

    /// Returns the context for deletes that `judge` allows. `done` is the action reported for a deleted object.
    pub fn delete_context<'j>(&'j self, done: Action, judge: &'j Judge<'j>) -> DeleteContext<'j> {
        DeleteContext {
            server: self.server,
            judge,
            writing: self.writing,
            done,
            purpose: DeletePurpose::Removal,
            preconditions: &self.plan.preconditions,
        }
    }
}
