//! Deletes objects, each only as it was judged: objects removed from the manifests (`prune`), or a whole set (`set`)
//! with its parent (`delete_parent_and_containers`). Both use `deletes`.
//!
//! What is read again, and when:
//!
//! - right before the first delete, and before each delete if what was read last is outdated (`execute/freshness`): all
//!   members, their owner references, and the parent (`judge_again`). Owner references to pruned objects are removed
//!   before the first delete (`remove_owner_references`);
//! - before the deletes of a step, and with the members from then on: what its namespaces and CRDs hold
//!   (`list_contents_again`);
//! - after a conflict: the object, and what it holds (`delete`);
//! - before the parent's delete: the rest of the set (`execute/former_parent`).

pub mod delete;
mod delete_parent_and_containers;
mod delete_results;
pub mod deletes;
pub mod judge_again;
pub mod list_contents_again;
pub mod prune;
pub mod remove_owner_references;
pub mod report_parent_and_remains;
pub mod set;

use std::collections::{BTreeMap, HashSet};

use self::delete::{DeleteContext, DeletePurpose};
use crate::event::Action;
use crate::execute::Execution;
use crate::model::containers::Contents;
use crate::model::identity::ObjectKey;
use crate::plan::{Judge, Plan};

impl<'a> Execution<'a> {
    /// Returns the contents that namespaces and CRDs had when the plan judged their deletion.
    pub fn contents_when_planned(&self) -> &'a BTreeMap<ObjectKey, Contents> {
        &self.state.observed.contents
    }

    /// Creates the judge of the deletes of `plan`. `desired_uids` are the UIDs of the objects that the run has applied.
    pub fn judge_of_deletes(&self, plan: &Plan, desired_uids: HashSet<String>) -> Judge<'a> {
        let contents = self.contents_when_planned();
        Judge::for_plan(self.set, self.policy, self.desired, contents, plan, desired_uids)
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
