//! Deletes the parent of a set that `adopt`, `move` or `disband` has taken objects out of, or removes or narrows its
//! record.

use std::collections::BTreeSet;

use super::{JoinedSet, MembershipExecution};
use crate::event::{Ending, Event, Sink};
use crate::execute::deletion::report_parent_and_remains::{
    fail_if_kinds_unlisted, join_names, predict_disposition,
};
use crate::execute::deletion::set::record_field_managers;
use crate::execute::former_parent::list_what_is_left::{RemainingLister, TerminatingObjects};
use crate::execute::former_parent::{ParentAim, ParentOutcome, ParentRelease, ReleaseError};
use crate::execute::parent_record::begin::KnownParent;
use crate::execute::parent_record::requests::ParentWriting;
use crate::model::applyset::Record;
use crate::model::deletion_obstacles::describe_why_it_still_exists;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::ParentObject;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::plan::KeptObjects;
use crate::read::{self, ClusterState, METADATA_LIST, WHOLE_OBJECTS};

/// The failure of a run that was to end a set while another run has added members to it.
const CHANGED_BY_ANOTHER: &str =
    "the record is kept: another run or client has changed the set; run the same command again";

/// The set that objects leave.
pub struct LeftSet<'a> {
    /// The context for writing the set's parent.
    pub parent: ParentWriting<'a>,
    /// The parent as it was read.
    pub former: &'a ParentObject,
    /// The state of the set when the plan was made.
    pub state: &'a ClusterState,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// The aim for the parent.
    pub aim: ParentAim,
    /// The reasons to keep the set that the plan has found; empty unless the whole set was to leave.
    pub obstacles: &'a Obstacles,
}

/// The reasons to keep a set whose members were all to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obstacles {
    /// Members that do not leave the set.
    pub members: Vec<Live>,
    /// A member of the new set that names the old parent as its owner.
    pub owned: Option<ObjectKey>,
    /// The kinds of the record whose members a list may not show.
    pub unlisted: Record,
}

impl LeftSet<'_> {
    /// Deletes the parent once objects have left its set, or removes its record. If the parent is kept as the parent,
    /// puts the record that it has to get into `record_to_leave`. A dry run only reports.
    pub(super) async fn end_on_left_parent(
        &self,
        execution: &MembershipExecution<'_>,
        known: &mut KnownParent,
        record_to_leave: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let is_dry = self.parent.writing.dry_run != DryRun::None;
        let released = match self.aim {
            // If all objects stay in the set, there is no reason to write the parent, and the run has not checked that
            // the user may write it.
            ParentAim::Narrow | ParentAim::Delete if execution.plan.takes_none() => Ok(Ending::Done),
            ParentAim::Delete if is_dry => self.report_predicted_disposition(sink).await,
            ParentAim::Narrow | ParentAim::RemoveRecord if is_dry => Ok(Ending::Done),
            _ => {
                self.write_left_parent(execution.joined.as_ref(), known, record_to_leave, sink)
                    .await
            }
        };
        match released {
            Ok(Ending::Done) => self.report_why_set_is_kept(self.obstacles, sink),
            Ok(ending) => ending,
            Err(error) => {
                sink(Event::general_failure(error.to_string()));
                self.parent.interrupt.ending_after_failure()
            }
        }
    }

    /// Deletes the old parent, or removes or narrows its record. If another run has added a member, the old set is
    /// kept.
    async fn write_left_parent(
        &self,
        joined: Option<&JoinedSet<'_>>,
        known: &mut KnownParent,
        record_to_leave: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ReleaseError> {
        let kept_objects = KeptObjects::default();
        let release = ParentRelease {
            aim: self.aim,
            joined,
            listed: self.former.record_with(&self.state.observed.recorded),
            known,
            kept_objects: &kept_objects,
            remaining: RemainingLister {
                parent: self.parent,
                appliers: self.appliers,
                places: self.state.places.clone(),
                accept: match self.aim {
                    ParentAim::Delete => WHOLE_OBJECTS,
                    ParentAim::Narrow | ParentAim::RemoveRecord => METADATA_LIST,
                },
                // The run deletes no containers. The parent's namespace or CRD is a member like any other.
                parent_containers: Vec::new(),
                deleted: BTreeSet::new(),
                containers_of_kept: BTreeSet::new(),
                terminating_objects: match self.aim {
                    ParentAim::Delete => TerminatingObjects::Awaited,
                    ParentAim::Narrow | ParentAim::RemoveRecord => TerminatingObjects::Reported,
                },
            },
            unlisted: self.state.observed.record_to_keep.clone(),
            // Content from the set's manifests keeps the parent, too: these commands delete no data.
            managers_not_keeping_parent: record_field_managers(),
        };
        let parent = &self.parent.set.parent;
        let failure = match (release.carry_out(sink).await?, self.aim) {
            (ParentOutcome::Untouched, _) => return Ok(Ending::Interrupted),
            (ParentOutcome::Kept(kept), aim) => {
                *record_to_leave = Some(kept.record);
                let obstacles = Obstacles {
                    members: kept.found.remains_and_copies().cloned().collect(),
                    owned: kept.owned,
                    unlisted: self.state.observed.record_to_keep.clone(),
                };
                match aim {
                    ParentAim::Narrow => return Ok(Ending::Done),
                    ParentAim::RemoveRecord if obstacles.unlisted.is_empty() => {
                        self.warn_of_remaining_members(&obstacles.members, sink);
                        format!("{parent}: {CHANGED_BY_ANOTHER}")
                    }
                    ParentAim::RemoveRecord | ParentAim::Delete => {
                        return Ok(self.report_why_set_is_kept(&obstacles, sink));
                    }
                }
            }
            (ParentOutcome::Terminating(live), _) => format!(
                "{parent}: the old parent is still being deleted: {}",
                describe_why_it_still_exists(&live)
            ),
            (ParentOutcome::Gone | ParentOutcome::Ordinary, _) => return Ok(Ending::Done),
        };
        sink(Event::general_failure(failure));
        Ok(Ending::Incomplete)
    }

    /// Reports why the old set is kept: as a failure if the record has kinds whose members a list may not show, else as
    /// warnings.
    fn report_why_set_is_kept(&self, obstacles: &Obstacles, sink: &mut Sink<'_>) -> Ending {
        let parent = &self.parent.set.parent;
        self.warn_of_remaining_members(&obstacles.members, sink);
        if let Some(owned) = &obstacles.owned {
            sink(Event::Warning(format!(
                "{parent}: kept, because {owned} names it as its owner"
            )));
        }
        let is_dry = self.parent.writing.dry_run != DryRun::None;
        let consequence = match (self.aim, is_dry) {
            (ParentAim::RemoveRecord, false) => "the record was not removed",
            (ParentAim::RemoveRecord, true) => "the record would not be removed",
            (ParentAim::Narrow | ParentAim::Delete, false) => "the old set is kept",
            (ParentAim::Narrow | ParentAim::Delete, true) => "the old set would be kept",
        };
        fail_if_kinds_unlisted(parent, &obstacles.unlisted, consequence, sink)
    }

    fn warn_of_remaining_members(&self, members: &[Live], sink: &mut Sink<'_>) {
        if !members.is_empty() {
            let (parent, count) = (&self.parent.set.parent, counted(members.len(), "object"));
            let names = join_names(members);
            sink(Event::Warning(format!(
                "{parent}: the old set is kept with {count}: {names}"
            )));
        }
    }

    /// Reports what would become of the old parent if all its members left, and writes nothing.
    async fn report_predicted_disposition(&self, sink: &mut Sink<'_>) -> Result<Ending, ReleaseError> {
        let ParentWriting {
            server,
            set,
            resource,
            ..
        } = self.parent;
        if let Some(parent) = read::read_live_parent(server, resource, &set.parent).await? {
            let (_, event) = predict_disposition(set, &parent, &record_field_managers());
            sink(event);
        }
        Ok(Ending::Done)
    }
}
