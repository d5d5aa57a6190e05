//! Reads the members again after a wait, which may have taken minutes, and judges the prunes of the plan again, by what
//! the members are now (`plan/prunes_judged_again`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::{Event, NotDone, ObjectOutcome};
use crate::execute::deletion::delete;
use crate::execute::deletion::deletes::{DeleteResults, Stopped};
use crate::execute::members::apply::OVERTAKEN;
use crate::execute::{Applied, Execution, Sink};
use crate::model::identity::GroupKind;
use crate::model::resource::Resource;
use crate::model::user_annotations::PruneOrder;
use crate::plan::{Plan, ReasonToKeep, Skip, StateAfterWait};
use crate::read::{ListTargets, WHOLE_OBJECTS, list_labeled_objects};

impl Execution<'_> {
    /// Lists the members once for each kind and namespace of the set, and returns the plan with its prunes judged
    /// again. Reports the prunes that are kept now.
    pub(super) async fn list_members_and_judge_prunes(
        &self,
        order: PruneOrder,
        applied: &Applied,
        pruned: &mut DeleteResults,
        sink: &mut Sink<'_>,
    ) -> Result<Plan, Stopped> {
        let total: usize = match order {
            PruneOrder::Regular => self.plan.count_prunes(),
            PruneOrder::Last => self.plan.last_prunes.iter().map(Vec::len).sum(),
        };
        if total == 0 {
            return Ok(self.plan.clone());
        }
        let places = self.scope_of_planned_objects();
        let concurrency = self.writing.concurrency;
        let listed = list_labeled_objects(self.server, self.set, &places, concurrency, WHOLE_OBJECTS).await;
        let members = match listed {
            Ok(members) => members,
            Err((place, error)) => {
                let place = &place.resource.plural;
                pruned.failed += total;
                sink(Event::general_failure(format!(
                    "{place}: members cannot be listed again after the wait: {error}; nothing more was pruned"
                )));
                sink(NotDone::event_for_all(
                    "not pruned: members cannot be listed again",
                ));
                return Err(Stopped);
            }
        };
        let judged_again = StateAfterWait {
            set: self.set,
            policy: self.policy,
            desired: self.desired,
            desired_uids: &applied.uids,
            contents: self.contents_when_planned(),
            members: &members,
        };
        // What the objects to prune are needed for may be gone.
        if let Some(left) = judged_again.desired_that_left().first() {
            pruned.failed += total;
            sink(Event::general_failure(format!(
                "{left} left the set during the wait, because another client deleted it or removed its label; \
                 nothing more was pruned"
            )));
            sink(NotDone::event_for_all(
                "not pruned: an object of the manifests left the set during the wait",
            ));
            return Err(Stopped);
        }
        let judged = judged_again.plan_with_prunes_judged_again(self.plan, order);
        // The warnings of the first plan were printed with that plan.
        let printed: BTreeSet<&String> = self.plan.edges.ignored.iter().collect();
        for warning in judged.edges.ignored.iter().filter(|text| !printed.contains(text)) {
            sink(Event::Warning(warning.clone()));
        }
        let planned_prunes: BTreeSet<&str> = self.plan.all_prunes().map(|live| live.uid.as_str()).collect();
        for skip in &judged.skips {
            if planned_prunes.contains(skip.live.uid.as_str()) {
                self.report_kept(skip, pruned, sink);
            }
        }
        Ok(judged)
    }

    /// Reports an object that the plan prunes and that is kept now. A run of a saved plan fails if the object itself
    /// has changed; it does not fail if the object is kept because of other objects.
    fn report_kept(&self, skip: &Skip, pruned: &mut DeleteResults, sink: &mut Sink<'_>) {
        let skipped = delete::skipped_outcome_without_reason(&skip.live);
        let is_kept_for_others = matches!(
            skip.reason,
            ReasonToKeep::Needed { .. }
                | ReasonToKeep::HoldsKept { .. }
                | ReasonToKeep::HoldsAnnotated { .. }
                | ReasonToKeep::HoldsParent
        );
        let outcome = if self.plan.preconditions.is_of_saved_plan() && !is_kept_for_others {
            pruned.failed += 1;
            ObjectOutcome::from_error(skipped.subject, OVERTAKEN.to_owned())
        } else {
            pruned.kept += 1;
            ObjectOutcome {
                reason: skip.reason.to_string(),
                ..skipped
            }
        };
        pruned.kept_objects.note_unless_deleted(&outcome);
        sink(Event::Object(outcome));
    }

    /// Returns the kinds and namespaces of desired objects, of prunes and of skipped objects. Each kind is listed in
    /// the version in which the plan read it, if the plan read it.
    fn scope_of_planned_objects(&self) -> ListTargets {
        let members = self.desired.members.iter();
        let desired = members.map(|object| (&object.key, &object.resource));
        let skips = self.plan.skips.iter().map(|skip| &skip.live);
        let leaving = self
            .plan
            .all_prunes()
            .chain(skips)
            .map(|live| (&live.key, &live.resource));
        let mut resources: BTreeMap<GroupKind, Arc<Resource>> = BTreeMap::new();
        let mut places = ListTargets::default();
        for (key, resource) in desired.chain(leaving) {
            places.namespaces.extend(key.namespace.clone());
            let kind = key.group_kind.clone();
            resources.entry(kind).or_insert_with(|| Arc::clone(resource));
        }
        for known in &self.state.places.resources {
            resources
                .entry(known.group_kind())
                .and_modify(|resource| *resource = Arc::clone(known));
        }
        places.add_resources_of_new_kinds(resources.into_values());
        places
    }
}
