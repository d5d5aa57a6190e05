//! Narrows the record: a look for members without their label, a write with the version that was read before
//! the list of members as its precondition, and a second list after it.

use futures_util::future::try_join;

use super::requests::{Known, ParentWriteError, ParentWriting, Written};
use super::{ATTEMPTS, OVERTAKEN, is_up_to_date};
use crate::event::Event;
use crate::execute::Sink;
use crate::model::applyset::Record;
use crate::model::applyset::parent::annotations;
use crate::model::live::Live;
use crate::read::{self, ListError, ListTarget, ListTargets};

/// The record before it is narrowed.
#[derive(Clone, Copy)]
pub(crate) struct Wide<'a> {
    /// The record.
    pub(crate) record: &'a Record,
    /// The collections that it covers.
    pub(crate) places: &'a ListTargets,
}

/// Outcome of narrowing the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrowed {
    /// It is the target, and what leads to members without their label.
    Done,
    /// It was for a moment, and is wide again: another run has added a member outside of it.
    Widened,
    /// It is the one that another run has written.
    Overtaken,
    /// It is unchanged: the user stopped the run before the write.
    Interrupted,
}

impl ParentWriting<'_> {
    /// Narrows the record to `target`, which comes from a list that began after `known` was read or
    /// written. What leads to members without their label stays recorded. `second_look` returns the record of
    /// members that the first list did not show. If `target` does not cover them, or they cannot be read, the
    /// record becomes `wide` again.
    pub(crate) async fn narrow<E: From<ParentWriteError>>(
        &self,
        known: &mut Known,
        target: &Record,
        Wide { record: wide, places }: Wide<'_>,
        second_look: impl AsyncFnOnce() -> Result<Record, E>,
        sink: &mut Sink<'_>,
    ) -> Result<Narrowed, E> {
        let target = &target.union(&self.unlabeled(places, target, sink).await?);
        if known.records(&annotations(&self.set.tooling, target)) {
            self.ensure_covers(known, wide, sink).await?;
            return Ok(Narrowed::Done);
        }
        let written = self.write_narrow(known, target, sink).await?;
        if written != Narrowed::Done {
            return Ok(written);
        }
        match second_look().await {
            Ok(found) if target.covers(&found) => Ok(Narrowed::Done),
            Ok(found) => {
                sink(Event::Warning(OVERTAKEN.to_owned()));
                self.ensure_covers(known, &wide.union(&found), sink).await?;
                Ok(Narrowed::Widened)
            }
            // Members that cannot be listed must not be forgotten.
            Err(error) => {
                self.ensure_covers(known, wide, sink).await?;
                Err(error)
            }
        }
    }

    /// Finds members without their label in the collections that the record is about to lose, warns of them, and
    /// returns their record: nothing else leads to them.
    async fn unlabeled(
        &self,
        places: &ListTargets,
        target: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<Record, ParentWriteError> {
        let parent = &self.set.parent;
        let found = self.members_without_label(places, target).await;
        let found = found.map_err(|(_, error)| ParentWriteError::Unwatched(error))?;
        if !found.is_empty() {
            let consequence = format!(
                "what leads there stays recorded until no such object is left; see `kubectl applyset verify {}`",
                parent.argument()
            );
            let warning = read::warning_of_unlabeled(&found, &consequence);
            sink(Event::Warning(warning));
        }
        Ok(Record::of(found.iter().map(|live| &live.key), parent))
    }

    /// Lists members without their label in those of these collections that `target` does not cover.
    pub(super) async fn members_without_label(
        &self,
        places: &ListTargets,
        target: &Record,
    ) -> Result<Vec<Live>, (ListTarget, ListError)> {
        let concurrency = self.writing.concurrency;
        let look = async |places| read::members_without_label(self.server, places, concurrency).await;
        let [kinds, namespaces] = &places.outside(target, self.set.parent.namespace.as_deref());
        let (mut found, more) = try_join(look(kinds), look(namespaces)).await?;
        found.extend(more);
        Ok(found)
    }

    /// Writes `target` over the record that is `known`. A write that failed only because another
    /// field of the parent changed is sent again.
    async fn write_narrow(
        &self,
        known: &mut Known,
        target: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<Narrowed, ParentWriteError> {
        let target = annotations(&self.set.tooling, target);
        for _ in 0..ATTEMPTS {
            if self.interrupt.is_requested() {
                return Ok(Narrowed::Interrupted);
            }
            if let Written::Done(narrow) = self.write_record(&known.resource_version, &target, sink).await? {
                known.resource_version = narrow.resource_version;
                known.all = narrow.all;
                return Ok(Narrowed::Done);
            }
            let Some(found) = self.read().await? else { break };
            // The write succeeded, and its answer was lost.
            let is_written = is_up_to_date(&found, &target);
            if !is_written && !is_up_to_date(&found, &known.annotations) {
                break;
            }
            known.resource_version = found.resource_version;
            known.all = found.annotations;
            if is_written {
                return Ok(Narrowed::Done);
            }
        }
        Ok(Narrowed::Overtaken)
    }
}
