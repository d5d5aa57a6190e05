//! Reports the objects that a run does not write, unchanged and kept members; also the parent, and the
//! planned results.

use std::collections::BTreeSet;

use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::execute::deletion::{delete, remove_owner_references};
use crate::execute::parent_record::begin::Known;
use crate::execute::{Applied, Execution, Sink};
use crate::model::identity::ObjectKey;
use crate::model::text::counted;
use crate::plan::{Risk, SkipReason};

impl Applied {
    /// Reports the held members: as configured if they are among `detached`, else as unchanged. Revises earlier reports
    /// of such members.
    pub(super) fn report_held(&mut self, detached: &BTreeSet<ObjectKey>, sink: &mut Sink<'_>) {
        let configured = |outcome: &ObjectOutcome| ObjectOutcome {
            action: Action::Configured,
            reason: remove_owner_references::OWNERS_REMOVED.to_owned(),
            ..outcome.clone()
        };
        let is_detached = |outcome: &ObjectOutcome| detached.contains(&outcome.subject.key());
        for outcome in self.held.drain(..) {
            if is_detached(&outcome) {
                sink(Event::Object(configured(&outcome)));
            } else {
                // What is pruned later may still own it.
                self.unchanged.push(outcome.clone());
                sink(Event::Object(outcome));
            }
        }
        // Their owners were not known when they were reported.
        self.unchanged.retain(|outcome| {
            let is_detached = is_detached(outcome);
            if is_detached {
                sink(Event::Revised {
                    before: outcome.action,
                    now: configured(outcome),
                });
            }
            !is_detached
        });
    }
}

impl Execution<'_> {
    /// Returns the outcome of each object of the plan if the run ends before it.
    pub(super) fn planned(&self) -> Vec<ObjectOutcome> {
        let applies = self.plan.all_applies();
        let applied = applies.map(|apply| {
            let object = &self.desired.members[apply.index];
            ObjectOutcome {
                source: Some(object.position.clone()),
                ..ObjectOutcome::new(
                    Subject::new(&object.key, &object.resource, apply.live_membership.uid()),
                    Action::Skipped,
                )
            }
        });
        let pruned = self.plan.all_prunes().map(delete::untouched);
        self.unchanged()
            .chain(applied)
            .chain(self.skipped())
            .chain(pruned)
            .collect()
    }

    /// Reports how its own manifest changed the parent, which had this resourceVersion before.
    pub(super) fn report_parent(&self, version: &str, known: &Known, sink: &mut Sink<'_>) {
        let action = match self.parent() {
            // The creation was reported when it happened.
            None => return,
            _ if self.desired.parent.is_none() => return,
            Some(_) if known.parent.resource_version != version => Action::Configured,
            Some(_) => return,
        };
        sink(Event::Parent(self.set.parent.clone(), action));
    }

    pub(super) fn report_unchanged(&self, applied: &mut Applied, sink: &mut Sink<'_>) {
        for outcome in self.unchanged() {
            applied.uids.extend(outcome.subject.uid.clone());
            self.report_unchanged_member(outcome, applied, sink);
        }
    }

    /// Reports a member that was not sent or not changed; later, if it may still be detached from its
    /// owners.
    pub(super) fn report_unchanged_member(
        &self,
        outcome: ObjectOutcome,
        applied: &mut Applied,
        sink: &mut Sink<'_>,
    ) {
        if applied.attached.contains(&outcome.subject.key()) {
            applied.held.push(outcome);
            return;
        }
        // Without a prune or a permission, none is detached.
        if self.plan.deletions() > 0 && self.may_detach_any() {
            applied.unchanged.push(outcome.clone());
        }
        sink(Event::Object(outcome));
    }

    /// Returns whether any owner reference may be removed in this run.
    fn may_detach_any(&self) -> bool {
        self.policy.data_loss == Risk::Allowed || !self.plan.accepted.is_empty()
    }

    /// Returns the outcomes of the unchanged members.
    pub(super) fn unchanged(&self) -> impl Iterator<Item = ObjectOutcome> {
        self.plan.unchanged.iter().map(|unchanged| {
            let object = &self.desired.members[unchanged.index];
            let subject = Subject::new(&object.key, &object.resource, Some(&unchanged.uid));
            ObjectOutcome {
                source: Some(object.position.clone()),
                ..ObjectOutcome::new(subject, Action::Unchanged)
            }
        })
    }

    /// Returns the outcomes of kept objects that were removed from the manifests, each with its reason.
    pub(super) fn skipped(&self) -> impl Iterator<Item = ObjectOutcome> {
        self.plan.reported_skips().map(|skip| ObjectOutcome {
            reason: skip.reason.to_string(),
            ..delete::untouched(&skip.live)
        })
    }

    pub(super) fn report_skips(&self, sink: &mut Sink<'_>) {
        for outcome in self.skipped() {
            sink(Event::Object(outcome));
        }
        self.warn_of_unpruned(sink);
    }

    pub(super) fn warn_of_unpruned(&self, sink: &mut Sink<'_>) {
        let skips = self.plan.skips.iter();
        let unpruned = skips
            .filter(|skip| skip.reason == SkipReason::PruningDisabled)
            .count();
        if unpruned > 0 {
            sink(Event::Warning(format!(
                "{} kept that are not in the manifests (--prune=false)",
                counted(unpruned, "object")
            )));
        }
    }
}
