//! The targets that `apply` and `delete` wait for, from the events of the run.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Action, Ending, Event, Remainder};
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::plan::Plan;
use crate::wait::{Goal, Outcome, Path, Target};

/// The objects that a run has deleted or applied.
#[derive(Default)]
pub struct Done {
    /// UIDs of deleted and pruned objects.
    deleted: BTreeSet<String>,
    /// UIDs of those that were gone at once.
    gone: BTreeSet<String>,
    /// UIDs of applied and unchanged objects.
    applied: BTreeMap<ObjectKey, String>,
}

impl Done {
    /// Records an event.
    pub fn note(&mut self, event: &Event) {
        let Event::Object(outcome) = event else { return };
        let Some(uid) = outcome.subject.uid.clone() else {
            return;
        };
        match outcome.action {
            Action::Deleted | Action::Pruned => {
                if outcome.remainder == Remainder::Nothing {
                    self.gone.insert(uid.clone());
                }
                self.deleted.insert(uid);
            }
            Action::Created | Action::Configured | Action::Recreated | Action::Unchanged => {
                self.applied.insert(outcome.subject.key(), uid);
            }
            Action::Released | Action::Adopted | Action::Skipped | Action::Failed => {}
        }
    }

    /// Returns whether the object is being deleted, by this run or before it.
    pub fn is_going(&self, live: &Live) -> bool {
        live.presence == Presence::Terminating || self.deleted.contains(&live.uid)
    }

    /// Returns the target of an object that is to be gone. One that terminates may lose its label before.
    pub fn gone(&self, live: &Live) -> Target {
        let path = if self.gone.contains(&live.uid) {
            Path::Label
        } else {
            Path::LabelThenName
        };
        gone(live, path)
    }

    /// Returns whether this run has deleted the object.
    pub fn has_deleted(&self, target: &Target) -> bool {
        target.uid.as_ref().is_some_and(|uid| self.deleted.contains(uid))
    }
}

/// Lists the members that `apply` waits for: all of the manifests, whether they changed or not.
pub fn members(desired: &Desired, done: &Done) -> Vec<Target> {
    let members = desired.members.iter().map(|member| Target {
        key: member.key.clone(),
        resource: member.resource.clone(),
        uid: done.applied.get(&member.key).cloned(),
        goal: Goal::Ready,
        path: Path::Label,
    });
    members.collect()
}

/// Lists the objects that `apply` waits for to be gone: what was pruned by this run or is still going
/// since an earlier one.
pub fn objects_being_deleted(plan: &Plan, done: &Done) -> Vec<Target> {
    let skipped = plan.skips.iter().map(|skip| &skip.live);
    let unwanted = plan.all_prunes().chain(skipped);
    let going = unwanted.filter(|live| done.is_going(live));
    going.map(|live| done.gone(live)).collect()
}

/// Returns the target of an object that is to be deleted.
pub fn gone(live: &Live, path: Path) -> Target {
    Target {
        key: live.key.clone(),
        resource: live.resource.clone(),
        uid: Some(live.uid.clone()),
        goal: Goal::Gone,
        path,
    }
}

/// Returns the ending of a run from that of its writes and the outcome of its wait.
pub fn ending(outcome: Outcome, ending: Ending) -> Ending {
    match outcome {
        Outcome::Arrived => ending,
        Outcome::Missed => Ending::Incomplete,
        Outcome::Interrupted => Ending::Interrupted,
    }
}
