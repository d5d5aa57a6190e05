//! Reports the members that a run does not write, because they are unchanged or kept; also how the run changed the
//! parent, and the results to expect if the run ends early.

use std::collections::BTreeSet;

use crate::event::{Action, Event, ObjectOutcome, Sink, Subject};
use crate::execute::deletion::{delete, remove_owner_references};
use crate::execute::parent_record::begin::KnownParent;
use crate::execute::{Applied, Execution};
use crate::model::identity::ObjectKey;
use crate::model::text::counted;
use crate::plan::{Apply, ReasonToKeep};

impl Applied {
    /// Reports a member that was not sent, or that its apply did not change. A member from which the plan removes owner
    /// references is held: it is reported once these are removed or kept.
    pub(super) fn report_or_hold_unchanged_member(&mut self, outcome: ObjectOutcome, sink: &mut Sink<'_>) {
        if self.to_detach.contains(&outcome.subject.key()) {
            self.held.push(outcome);
        } else {
            sink(Event::Object(outcome));
        }
    }

    /// Reports those held members that the run has `detached` from their owners.
    pub(super) fn report_detached(&mut self, detached: &BTreeSet<ObjectKey>, sink: &mut Sink<'_>) {
        for outcome in self
            .held
            .extract_if(.., |outcome| detached.contains(&outcome.subject.key()))
        {
            sink(Event::Object(ObjectOutcome {
                action: Action::Configured,
                reason: remove_owner_references::OWNERS_REMOVED.to_owned(),
                ..outcome
            }));
        }
    }

    /// Reports the members that are still held as unchanged.
    pub(super) fn report_held(&mut self, sink: &mut Sink<'_>) {
        self.held
            .drain(..)
            .for_each(|outcome| sink(Event::Object(outcome)));
    }
}

impl Execution<'_> {
    /// Returns an outcome for each object of the plan: the result to report if the run ends before it reaches the
    /// object.
    pub(super) fn outcomes_if_ended_early(&self) -> Vec<ObjectOutcome> {
        let applies = self.plan.all_applies();
        let applied = applies.map(|apply| self.skipped_outcome_of_apply(apply));
        let pruned = self
            .plan
            .all_prunes()
            .map(|live| delete::skipped_outcome(live, ""));
        self.unchanged_outcomes()
            .chain(applied)
            .chain(self.kept_outcomes())
            .chain(pruned)
            .collect()
    }

    /// Returns the outcome of an object that is not applied, without a reason.
    pub(super) fn skipped_outcome_of_apply(&self, apply: &Apply) -> ObjectOutcome {
        let object = &self.desired.members[apply.index];
        ObjectOutcome {
            source: Some(object.position.clone()),
            ..ObjectOutcome::new(self.subject_of(apply), Action::Skipped)
        }
    }

    /// Returns the object that this apply is about, with the UID of a member.
    pub(super) fn subject_of(&self, apply: &Apply) -> Subject {
        let object = &self.desired.members[apply.index];
        Subject::new(
            &object.key,
            &object.resource,
            apply.live_membership.uid_of_member(),
        )
    }

    /// Reports that the parent was configured by its own manifest, if the apply of the manifest has changed the
    /// parent's resourceVersion. The creation of a parent was reported when it happened.
    pub(super) fn report_parent_if_configured(
        &self,
        version_before: &str,
        known: &KnownParent,
        sink: &mut Sink<'_>,
    ) {
        let has_existed = self.parent().is_some();
        let has_manifest = self.desired.parent.is_some();
        if has_existed && has_manifest && known.parent.resource_version != version_before {
            sink(Event::Parent(self.set.parent.clone(), Action::Configured));
        }
    }

    /// Reports the members that the plan found unchanged.
    pub(super) fn report_unchanged(&self, applied: &mut Applied, sink: &mut Sink<'_>) {
        for outcome in self.unchanged_outcomes() {
            applied.uids.extend(outcome.subject.uid.clone());
            applied.report_or_hold_unchanged_member(outcome, sink);
        }
    }

    /// Returns the outcomes of the unchanged members.
    pub(super) fn unchanged_outcomes(&self) -> impl Iterator<Item = ObjectOutcome> {
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
    pub(super) fn kept_outcomes(&self) -> impl Iterator<Item = ObjectOutcome> {
        let skips = self.plan.reported_skips();
        skips.map(|skip| delete::skipped_outcome(&skip.live, skip.reason.to_string()))
    }

    /// Reports the kept objects that were removed from the manifests.
    pub(super) fn report_kept_objects(&self, sink: &mut Sink<'_>) {
        for outcome in self.kept_outcomes() {
            sink(Event::Object(outcome));
        }
        self.warn_if_pruning_is_disabled(sink);
    }

    /// Warns of objects that are kept only because of `--prune=false`.
    pub(super) fn warn_if_pruning_is_disabled(&self, sink: &mut Sink<'_>) {
        let skips = self.plan.skips.iter();
        let unpruned = skips
            .filter(|skip| skip.reason == ReasonToKeep::PruningDisabled)
            .count();
        if unpruned > 0 {
            sink(Event::Warning(format!(
                "{} kept that are not in the manifests (--prune=false)",
                counted(unpruned, "object")
            )));
        }
    }
}
