//! Narrows the record at the end of `apply`, after a list of the scope that the record loses.
//!
//! Only the kinds and namespaces that the record is about to lose are listed.

use std::collections::{BTreeSet, HashSet};
use std::iter;
use std::time::Duration;

use super::OVERTAKEN;
use super::narrow::{Narrowed, Wide};
use super::requests::{Known, ParentWriteError};
use crate::event::{Ending, Event};
use crate::execute::labeled_objects::list_labeled_objects;
use crate::execute::reread::reread;
use crate::execute::{Execution, Sink};
use crate::model::applyset::Record;
use crate::model::identity::GroupKind;
use crate::model::live::{Live, Presence};
use crate::read::{ListError, ListTarget, ListTargets, METADATA_LIST};

/// Pauses between lists of objects that are being deleted: the server's own controllers finish within
/// them.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

impl Execution<'_> {
    /// Narrows the record to that of the plan and of objects that are not gone yet. If another run has
    /// written the record since, ensures only that nothing of this run is missing.
    ///
    /// `settled` are the UIDs of the members that this run has applied or left as they are.
    pub(crate) async fn narrow(
        &self,
        known: &mut Known,
        settled: &HashSet<String>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ParentWriteError> {
        let parent = self.parent_writing();
        let needed = &self.plan.record_during;
        // If another run has written the record, nothing is listed.
        let lingering = if known.overtaken {
            None
        } else {
            let found = self.look_for_others(settled).await?;
            (!found.has_newcomers()).then_some(found.lingering)
        };
        let Some(lingering) = lingering else {
            sink(Event::Warning(OVERTAKEN.to_owned()));
            parent.ensure_covers(known, needed, sink).await?;
            return Ok(Ending::Done);
        };
        let after = self.plan.record_after.union(&lingering);
        let second_look = async || self.look(settled).await.map(|found| found.newcomers);
        let wide = Wide {
            record: needed,
            places: &self.defined_places(),
        };
        match parent.narrow(known, &after, wide, second_look, sink).await? {
            Narrowed::Done | Narrowed::Widened => Ok(Ending::Done),
            // Everything else is done, and the record is wide enough.
            Narrowed::Interrupted => Ok(Ending::Interrupted),
            Narrowed::Overtaken => {
                sink(Event::Warning(OVERTAKEN.to_owned()));
                parent.ensure_covers(known, needed, sink).await?;
                Ok(Ending::Done)
            }
        }
    }

    /// Returns the record as a run leaves it in which nothing fails: it keeps the kinds of objects that lack their label.
    ///
    /// # Errors
    ///
    /// Something that the record would lose could not be listed.
    pub async fn predict_record(&self) -> Result<Record, (ListTarget, ListError)> {
        let after = &self.plan.record_after;
        let parent = self.parent_writing();
        let found = parent
            .members_without_label(&self.defined_places(), after)
            .await?;
        Ok(after.union(&Record::of(found.iter().map(|live| &live.key), &self.set.parent)))
    }

    /// Lists until deleted objects are gone, or until one has to wait for something slow.
    async fn look_for_others(&self, settled: &HashSet<String>) -> Result<Others, ParentWriteError> {
        let mut found = self.look(settled).await?;
        for pause in PAUSES {
            if found.has_newcomers() || found.lingering == Record::default() || self.interrupt.is_requested()
            {
                break;
            }
            tokio::time::sleep(pause).await;
            found = self.look(settled).await?;
        }
        Ok(found)
    }

    /// Finds objects in the scope that this run is about to remove from the record. An object of two
    /// groups is not a newcomer under its other name.
    async fn look(&self, settled: &HashSet<String>) -> Result<Others, ParentWriteError> {
        let mut others = Others::default();
        for places in self.places_to_leave() {
            let members = list_labeled_objects(
                self.server,
                self.set,
                &places,
                self.writing.concurrency,
                METADATA_LIST,
            )
            .await;
            let members = members.map_err(|(_, error)| ParentWriteError::Unwatched(error))?;
            let (present, terminating): (Vec<&Live>, Vec<&Live>) = members
                .iter()
                .partition(|live| live.presence == Presence::Present);
            let newcomers = present.iter().filter(|live| !settled.contains(&live.uid));
            let newcomers = Record::of(newcomers.map(|live| &live.key), &self.set.parent);
            others.newcomers = others.newcomers.union(&newcomers);
            // A list of metadata does not show what the deletion of a namespace waits for.
            let lingering = Record::of(terminating.iter().map(|live| &live.key), &self.set.parent);
            others.lingering = others.lingering.union(&lingering);
        }
        for definition in self.plan.all_prunes() {
            let Some(kind) = &definition.defines else { continue };
            let fresh = reread(self.server, &definition.key, &definition.resource).await;
            if fresh
                .map_err(|error| ParentWriteError::Unwatched(ListError::Request(error)))?
                .is_some()
            {
                let lingering = self.pruned_of(kind, definition);
                others.lingering = others.lingering.union(&lingering);
            }
        }
        Ok(others)
    }

    /// Returns the scope of a pruned definition and of the members of its kind. A definition stays
    /// until all objects of its kind are gone.
    fn pruned_of(&self, kind: &GroupKind, definition: &Live) -> Record {
        let pruned = self.plan.all_prunes();
        let skipped = self.plan.skips.iter().map(|skip| &skip.live);
        let of_kind = pruned.chain(skipped).filter(|live| live.key.group_kind == *kind);
        let keys = iter::once(&definition.key).chain(of_kind.map(|live| &live.key));
        Record::of(keys, &self.set.parent)
    }

    /// Returns the scope that the record loses: whole kinds, and namespaces of the remaining kinds.
    fn places_to_leave(&self) -> [ListTargets; 2] {
        let own = self.set.parent.namespace.as_deref();
        self.defined_places().outside(&self.plan.record_after, own)
    }

    /// Returns the scope without the kinds of pruned definitions: their objects are gone as soon as the definition
    /// is, and that is listed itself.
    fn defined_places(&self) -> ListTargets {
        let undefined: BTreeSet<&GroupKind> = self
            .plan
            .all_prunes()
            .filter_map(|live| live.defines.as_ref())
            .collect();
        let mut places = self.places.clone();
        places
            .resources
            .retain(|resource| !undefined.contains(&resource.group_kind()));
        places
    }
}

/// Members in the scope that a run is about to remove.
#[derive(Debug, Default)]
struct Others {
    /// The record of those that another run has added.
    newcomers: Record,
    /// The record of those that were deleted and are not gone yet.
    lingering: Record,
}

impl Others {
    fn has_newcomers(&self) -> bool {
        self.newcomers != Record::default()
    }
}
