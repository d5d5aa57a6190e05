//! What a run reports of objects that it does not send, of its parent, and of what it has planned.

use std::collections::{BTreeSet, HashMap};

use super::parent::Known;
use super::{Applied, Execution, Sink, detach, member, prune};
use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::identity::ObjectKey;
use crate::manifest::Position;
use crate::plan::{Skip, SkipReason};
use crate::wording::counted;

impl Execution<'_> {
    /// What becomes of each object of the plan if the run ends before it.
    pub(super) fn planned(&self) -> Vec<ObjectOutcome> {
        let applies = self
            .plan
            .prerequisites
            .iter()
            .chain(self.plan.waves.iter().flatten());
        let applied = applies.map(|apply| {
            let object = &self.desired.members[apply.index];
            ObjectOutcome {
                source: Some(object.position.clone()),
                ..ObjectOutcome::new(
                    Subject::new(&object.key, &object.resource, member::uid(&apply.standing)),
                    Action::Skipped,
                )
            }
        });
        let pruned = self.plan.prunes.iter().flatten().map(prune::untouched);
        self.unchanged()
            .chain(applied)
            .chain(self.skipped())
            .chain(pruned)
            .collect()
    }

    /// Tells what its own manifest made of the parent, which had this resourceVersion before.
    pub(super) fn tell_parent(&self, version: &str, known: &Known, sink: &mut Sink<'_>) {
        let action = match self.parent {
            _ if self.desired.parent.is_none() => return,
            None => Action::Created,
            Some(_) if known.resource_version != version => Action::Configured,
            Some(_) => return,
        };
        sink(Event::Parent(self.set.parent.clone(), action));
    }

    pub(super) fn tell_unchanged(&self, applied: &mut Applied, sink: &mut Sink<'_>) {
        let attached = self.attached();
        for outcome in self.unchanged() {
            applied.uids.extend(outcome.subject.uid.clone());
            if !attached.contains(&outcome.subject.key()) {
                sink(Event::Object(outcome));
            }
        }
    }

    /// Tells what becomes of the objects that are not sent and have owners that go, of which
    /// these were `detached`.
    pub(super) fn tell_attached(&self, detached: &BTreeSet<ObjectKey>, sink: &mut Sink<'_>) {
        let attached = self.attached();
        for mut outcome in self.unchanged() {
            let key = outcome.subject.key();
            if !attached.contains(&key) {
                continue;
            }
            if detached.contains(&key) {
                outcome.action = Action::Configured;
                detach::OWNERS_REMOVED.clone_into(&mut outcome.reason);
            }
            sink(Event::Object(outcome));
        }
    }

    pub(super) fn attached(&self) -> BTreeSet<&ObjectKey> {
        let planned = self.plan.dependants.detachments.iter();
        planned.map(|detachment| &detachment.dependant.key).collect()
    }

    /// The outcomes of the objects that are not sent.
    pub(super) fn unchanged(&self) -> impl Iterator<Item = ObjectOutcome> {
        let members = self.desired.members.iter();
        let positions: HashMap<&ObjectKey, &Position> =
            members.map(|object| (&object.key, &object.position)).collect();
        self.plan.unchanged.iter().map(move |live| ObjectOutcome {
            source: positions.get(&live.key).copied().cloned(),
            ..ObjectOutcome::new(
                Subject::new(&live.key, &live.resource, Some(&live.uid)),
                Action::Unchanged,
            )
        })
    }

    /// The outcomes of the objects that left the manifests and are kept, each for its own reason.
    pub(super) fn skipped(&self) -> impl Iterator<Item = ObjectOutcome> {
        let has_reason = |skip: &&Skip| skip.reason != SkipReason::PruningDisabled;
        self.plan
            .skips
            .iter()
            .filter(has_reason)
            .map(|skip| ObjectOutcome {
                reason: skip.reason.to_string(),
                ..prune::untouched(&skip.live)
            })
    }

    pub(super) fn tell_skips(&self, sink: &mut Sink<'_>) {
        for outcome in self.skipped() {
            sink(Event::Object(outcome));
        }
        let is_unpruned = |skip: &&Skip| skip.reason == SkipReason::PruningDisabled;
        let unpruned = self.plan.skips.iter().filter(is_unpruned).count();
        if unpruned > 0 {
            sink(Event::Warning(format!(
                "{} that left the manifests stay, because of --prune=false",
                counted(unpruned, "object")
            )));
        }
    }
}
