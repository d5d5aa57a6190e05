//! Widens the record: before the first member is written, and whenever another run may have
//! narrowed it.

use http::StatusCode;

use super::requests::{Known, ParentWriteError, ParentWriting, Written, is_overtaken};
use super::{ATTEMPTS, is_up_to_date};
use crate::cluster::apiserver::ApiError;
use crate::event::{Action, Event};
use crate::execute::Sink;
use crate::model::applyset::Record;
use crate::model::applyset::parent::{ApplySetRecord, RecordedKinds, annotations};
use crate::model::parent_object::ParentObject;
use crate::plan::{self, ParentStatus};

impl ParentWriting<'_> {
    /// Widens the record of the parent, which was `current` when it was last read, to the union of what
    /// it says and `needed`; creates a parent that does not exist.
    pub(crate) async fn widen(
        &self,
        mut current: Option<ParentObject>,
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        let mut overtaken = false;
        for _ in 0..ATTEMPTS {
            let live_membership = plan::judge(self.set, current.as_ref())
                .and_then(|judged| judged.accepted(self.accepted))
                .map_err(ParentWriteError::Refused)?;
            let target = annotations(&self.set.tooling, &recorded(&live_membership).union(needed));
            let attempt = match &current {
                Some(parent) if is_up_to_date(parent, &target) => Written::Done(Known {
                    uid: parent.uid.clone(),
                    resource_version: parent.resource_version.clone(),
                    annotations: target.clone(),
                    all: parent.annotations.clone(),
                    overtaken: false,
                }),
                Some(parent) => self.write_record(&parent.resource_version, &target, sink).await?,
                None => {
                    let created = Box::pin(self.create(&target, sink)).await?;
                    if matches!(created, Written::Done(_)) {
                        sink(Event::Parent(self.set.parent.clone(), Action::Created));
                    }
                    created
                }
            };
            match attempt {
                Written::Done(known) => return Ok(Known { overtaken, ..known }),
                Written::Overtaken => {
                    let found = self.read().await?;
                    // No other run interfered if the record is the one to be written (the answer to our
                    // write was lost, or another run has the same scope), or still the one of the plan
                    // (only other fields of the parent changed).
                    let is_expected = |found: &ParentObject| {
                        let before = current.as_ref().map(|before| &before.reading);
                        is_up_to_date(found, &target) || before == Some(&found.reading)
                    };
                    overtaken |= !found.as_ref().is_some_and(is_expected);
                    current = found;
                }
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Reads the record and widens it if another run has narrowed it below `needed`.
    pub(crate) async fn ensure_covers(
        &self,
        known: &mut Known,
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let current = self.read().await?;
        let has_changed = !current
            .as_ref()
            .is_some_and(|parent| is_up_to_date(parent, &known.annotations));
        let latest = self.widen(current, needed, sink).await?;
        *known = Known {
            overtaken: known.overtaken || has_changed || latest.overtaken,
            ..latest
        };
        Ok(())
    }

    /// Ensures that the record covers `needed`, and writes an annotation beside it. Returns the outcome of
    /// the annotation.
    ///
    /// The write of the annotation is bound to the resourceVersion in which this run has last seen the
    /// record. If it succeeds, no other run has written the record since, and the record is not read again.
    pub(crate) async fn annotate_and_ensure_covers(
        &self,
        known: &mut Known,
        annotation: (&str, &str),
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<Annotated, ParentWriteError> {
        let annotated = if known.has_record() {
            match self.write_annotation(known, annotation).await {
                Ok(reply) => {
                    self.known(Ok(reply), &known.annotations)?;
                    return Ok(Annotated::Done);
                }
                Err(error) if is_overtaken(&error) || error.is(StatusCode::NOT_FOUND) => Annotated::Overtaken,
                Err(error) => Annotated::Failed(error),
            }
        } else {
            Annotated::Overtaken
        };
        self.ensure_covers(known, needed, sink).await?;
        Ok(annotated)
    }
}

/// Outcome of writing an annotation beside the record.
#[derive(Debug)]
pub(crate) enum Annotated {
    /// It is written.
    Done,
    /// It is not written: another client has changed or deleted the parent first.
    Overtaken,
    /// The write failed for another reason.
    Failed(ApiError),
}

/// Returns the record that another run has written since the plan.
fn recorded(live_membership: &ParentStatus) -> Record {
    match live_membership {
        ParentStatus::Recorded(ApplySetRecord {
            kinds: RecordedKinds::GroupKinds(group_kinds),
            additional_namespaces,
            ..
        }) => Record {
            group_kinds: group_kinds.clone(),
            additional_namespaces: additional_namespaces.clone(),
        },
        // The deprecated list was translated when the plan was made; no tool writes it today.
        ParentStatus::Recorded(_) | ParentStatus::New => Record::default(),
    }
}
