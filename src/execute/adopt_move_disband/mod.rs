//! Takes live objects into a set, moves them to another, or releases them. The record is widened first,
//! then labels are written, and the record is narrowed last: an interrupted run leaves no member
//! outside of a record.
//!
//! `plan` decides which objects are taken; `relabel` writes single labels. The parent of the set that objects join is
//! written in this file, the parent of the set that they leave in `left_set`.

mod left_set;
mod relabel;

pub use left_set::{LeftSet, Obstacles};
use relabel::LabelWriter;
use serde_json::Value;

use crate::event::{Action, Ending, Event, ObjectOutcome, Phase, Sink, Subject};
use crate::execute::deletion::delete::skipped_outcome;
use crate::execute::history;
use crate::execute::parent_record::RunOnParent;
use crate::execute::parent_record::begin::KnownParent;
use crate::execute::parent_record::requests::{ParentWriteError, ParentWriting};
use crate::model::applyset::Record;
use crate::model::history_annotation::RunOperation;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::model::write_settings::DryRun;
use crate::plan::{MembershipChange, MembershipPlan, MembershipSkip};
use crate::read::{ClusterState, ListError, ListTargets, METADATA_LIST, list_labeled_objects};

/// A judgement of an object, as it is in the cluster now.
pub type Judge<'a> = dyn Fn(&Value, &Live) -> MembershipChange + 'a;

/// Context for carrying out a plan of `adopt`, `move` or `disband`.
pub struct MembershipExecution<'a> {
    /// The set that the objects join; `None` in `disband`, which releases them.
    pub joined: Option<JoinedSet<'a>>,
    /// The set that the objects leave; `None` in `adopt`, which takes objects that are in no set.
    pub left: Option<LeftSet<'a>>,
    pub plan: &'a MembershipPlan,
    /// The label selector by which the user selected the objects, if the user gave one.
    pub selector: Option<&'a str>,
    /// Judges an object that has changed since it was read, by the rules of the plan.
    pub judge: Box<Judge<'a>>,
}

/// The set that objects join.
#[derive(Clone, Copy)]
pub struct JoinedSet<'a> {
    /// The context for writing the set's parent.
    pub parent: ParentWriting<'a>,
    /// The state of the set when the plan was made.
    pub state: &'a ClusterState,
    /// The record that the parent gets before the first label is written. It covers the members that the set has and
    /// the objects that join it.
    pub record: &'a Record,
}

impl JoinedSet<'_> {
    /// Finds what the parent of the left set owns in this set, which the members have joined: a member, or the parent.
    /// The garbage collector would delete it together with the old parent. The owner reference may have been added since
    /// the plan.
    pub async fn find_object_owned_by_parent(
        &self,
        left: &Set,
        scope_of_left_set: &ListTargets,
    ) -> Result<Option<ObjectKey>, ListError> {
        let ParentWriting {
            server, set, writing, ..
        } = self.parent;
        for targets in self.list_recorded_scopes_after_move(scope_of_left_set) {
            let members = list_labeled_objects(server, set, &targets, writing.concurrency, METADATA_LIST)
                .await
                .map_err(|(_, error)| error)?;
            if let Some(live) = members
                .iter()
                .find(|live| left.is_parent_among_owners(&live.owners))
            {
                return Ok(Some(live.key.clone()));
            }
        }
        let found = self.parent.read().await.map_err(ListError::Request)?;
        let is_owned = found.is_some_and(|found| left.is_parent_among_owners(&found.owners));
        Ok(is_owned.then(|| set.parent.clone()))
    }

    /// Returns the recorded part of the scope of the set that members have left (`scope_of_left_set`), and of this
    /// set's own scope. They are not merged: that would add the kinds of one in the namespaces of the other, which need
    /// not be listed, and which the user may not be allowed to list.
    fn list_recorded_scopes_after_move(&self, scope_of_left_set: &ListTargets) -> Vec<ListTargets> {
        let [left, joined] =
            [scope_of_left_set, &self.state.places].map(|targets| self.restrict_to_record(targets));
        if left.covers(&joined) {
            vec![left]
        } else {
            vec![left, joined]
        }
    }

    fn restrict_to_record(&self, targets: &ListTargets) -> ListTargets {
        let Self { parent, record, .. } = self;
        let own = parent.set.parent.namespace.as_ref();
        let kinds = &record.group_kinds;
        let resources = targets.resources.iter();
        let namespaces = targets.namespaces.iter();
        ListTargets {
            resources: resources
                .filter(|resource| kinds.contains(&resource.group_kind()))
                .cloned()
                .collect(),
            namespaces: namespaces
                .filter(|name| record.additional_namespaces.contains(*name) || own == Some(*name))
                .cloned()
                .collect(),
        }
    }
}

impl MembershipExecution<'_> {
    /// Writes the labels of the objects, and the parents before and after the labels.
    ///
    /// # Errors
    ///
    /// The parent of the set that the objects join cannot be written, or the parent of the set that they leave has
    /// changed into one that this run may not write. No label is written in either case.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        self.announce_parents_and_objects(sink);
        let ending = match &self.left {
            None => self.join_and_relabel(sink).await?,
            Some(left) => self.relabel_and_leave(left, sink).await?,
        };
        // A run that was to take objects and takes none fails: a script would next apply the set that the objects
        // should have joined, although they are still where they were.
        let has_failed = ending == Ending::Done && self.plan.takes_none();
        let Some(joined) = self.joined.filter(|_| has_failed) else {
            return Ok(ending);
        };
        let joined = &joined.parent.set.parent;
        sink(Event::general_failure(match &self.left {
            None => format!("{joined}: nothing to adopt"),
            Some(left) => format!("{}: nothing to move to {joined}", left.parent.set.parent),
        }));
        Ok(Ending::Incomplete)
    }

    fn operation(&self) -> RunOperation {
        match (&self.joined, &self.left) {
            (None, _) => RunOperation::Disband,
            (Some(_), None) => RunOperation::Adopt,
            (Some(_), Some(_)) => RunOperation::Move,
        }
    }

    /// Announces the parents and the objects of the plan, each object with the outcome that it has if the run ends
    /// before it reaches the object.
    fn announce_parents_and_objects(&self, sink: &mut Sink<'_>) {
        for parent in self.parents() {
            sink(parent.announcement());
        }
        let changes = self.plan.changes.iter().map(|live| skipped_outcome(live, ""));
        sink(Event::Planned(
            outcomes_of_unwritten_objects(self.plan).chain(changes).collect(),
        ));
    }

    /// Returns the parent of the set that the objects join, if they join one, and that of the set that they leave, if they
    /// leave one.
    pub fn parents(&self) -> impl Iterator<Item = &ParentWriting<'_>> {
        let joined = self.joined.iter().map(|joined| &joined.parent);
        joined.chain(self.left.iter().map(|left| &left.parent))
    }

    /// Writes the labels within a run on the parent of the set that the objects leave.
    async fn relabel_and_leave(
        &self,
        left: &LeftSet<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ParentWriteError> {
        let (former, recorded) = (left.former.clone(), &left.state.observed.recorded);
        let known = if self.plan.changes.is_empty() {
            KnownParent::from_read_to_take_out(former)
        } else {
            let operation = self.operation();
            left.parent
                .try_to_begin_taking_out(former, recorded, operation, sink)
                .await?
        };
        let mut run = RunOnParent::new(left.parent, recorded, Some(known));
        let relabeled = run
            .count_changes_while_renewing(sink, async |sink| self.join_and_relabel(sink).await)
            .await;
        let mut exact = None;
        let ending = match (&mut run.known, &relabeled) {
            (Some(known), Ok(Ending::Done)) => left.end_on_left_parent(self, known, &mut exact, sink).await,
            (_, Ok(ending)) => *ending,
            (_, Err(_)) => left.parent.interrupt.ending_after_failure(),
        };
        let ending = run.end(exact.as_ref(), ending, sink).await;
        relabeled?;
        Ok(ending)
    }

    /// Writes the labels within a run on the parent of the set that the objects join, if they join one.
    async fn join_and_relabel(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        let Some(joined) = &self.joined else {
            return Ok(self.write_labels(sink).await);
        };
        let parent = joined.parent;
        if parent.interrupt.is_requested() {
            return Ok(Ending::Interrupted);
        }
        let begun = if parent.writing.dry_run == DryRun::None && self.has_to_write_joined_parent(joined) {
            let run = history::new_running_entry(parent.server, self.operation()).await;
            let current = joined.state.parent_object().cloned();
            match parent
                .begin_unless_stopped(current, joined.record, run, sink)
                .await?
            {
                Ok(known) => Some(known),
                Err(ending) => return Ok(ending),
            }
        } else {
            None
        };
        report_unwritten_objects(self.plan, sink);
        let mut run = RunOnParent::new(parent, joined.record, begun);
        let ending = run
            .count_changes_while_renewing(sink, async |sink| self.write_labels(sink).await)
            .await;
        Ok(run.end(None, ending, sink).await)
    }

    /// Returns whether the run has to write a label or the record. If it takes no object, it writes neither, so it does
    /// not create a parent for a set without members.
    fn has_to_write_joined_parent(&self, joined: &JoinedSet<'_>) -> bool {
        let tooling = &joined.parent.set.tooling;
        let is_recorded = joined
            .state
            .parent_object()
            .is_some_and(|parent| parent.has_tooling_and_record(tooling, joined.record));
        self.plan.has_member_after_run() && (!self.plan.changes.is_empty() || !is_recorded)
    }

    async fn write_labels(&self, sink: &mut Sink<'_>) -> Ending {
        // Both parents have the same server and settings.
        let Some(parent) = self.parents().next() else {
            return Ending::Done;
        };
        let (phase, done) = match self.joined {
            Some(_) => (Phase::Adopting, Action::Adopted),
            None => (Phase::Releasing, Action::Released),
        };
        sink(Event::Phase {
            phase,
            total: self.plan.changes.len(),
        });
        let writer = LabelWriter {
            server: parent.server,
            interrupt: parent.interrupt,
            writing: parent.writing,
            part_of: self.joined.as_ref().map(|joined| &joined.parent.set.id),
            moved_fields: &self.plan.moved_fields,
            done,
            selector: self.selector,
            judge: &*self.judge,
        };
        let failed = writer.write_all_and_count_failed(&self.plan.changes, sink).await;
        match failed + self.plan.count_not_found() {
            _ if parent.interrupt.is_requested() => Ending::Interrupted,
            0 => Ending::Done,
            _ => Ending::Incomplete,
        }
    }
}

/// Reports the objects of the plan whose label is not written: it is already correct, or they are kept as they are.
pub fn report_unwritten_objects(plan: &MembershipPlan, sink: &mut Sink<'_>) {
    for outcome in outcomes_of_unwritten_objects(plan) {
        sink(Event::Object(outcome));
    }
}

fn outcomes_of_unwritten_objects(plan: &MembershipPlan) -> impl Iterator<Item = ObjectOutcome> {
    let settled = plan.settled.iter();
    let settled = settled.map(|live| ObjectOutcome::new(Subject::from_live(live), Action::Unchanged));
    settled.chain(plan.skips.iter().map(outcome_of_skip))
}

fn outcome_of_skip(skip: &MembershipSkip) -> ObjectOutcome {
    let subject = Subject::new(&skip.key, &skip.resource, skip.uid.as_deref());
    if skip.is_failure() {
        return ObjectOutcome::from_error(subject, skip.reason.to_string());
    }
    ObjectOutcome::new_with_reason(subject, Action::Skipped, skip.reason.to_string())
}
