//! Begins and ends a run of `apply` on the parent.

use std::collections::HashSet;

use super::parent_record::begin::Known;
use super::parent_record::run::RunOnParent;
use super::{Execution, ParentWriteError, RunState, Sink};
use crate::error::{Error, ErrorKind};
use crate::event::{Ending, Event};
use crate::model::applyset::Record;
use crate::model::history_annotation::Run;
use crate::model::message::Message;
use crate::model::set::ParentObject;
use crate::model::write_settings::Exclusive;
use crate::plan::Refusal;

impl Execution<'_> {
    /// Begins the run on the parent if it may write a member. Returns the parent, or how the run ends without it.
    pub(super) async fn begin(&self, sink: &mut Sink<'_>) -> Result<Result<Known, Ending>, ParentWriteError> {
        if let Some(parent) = self.parent()
            && !self.writes_members(parent)
        {
            return Ok(Ok(Known::read(parent.clone())));
        }
        let run = self.entry_under_way().await;
        if self.interrupt.is_requested() {
            return Ok(Err(Ending::Interrupted));
        }
        let begun = self
            .parent_writing()
            .begin_unless_stopped(self.parent().cloned(), &self.plan.record_during, run, sink)
            .await;
        match begun {
            Err(ParentWriteError::NotServed(_)) if self.interrupt.is_requested() => {
                Ok(Err(Ending::Interrupted))
            }
            // Members have been written already: that is a failure of writing.
            Err(error)
                if self.parent().is_none()
                    && !self.plan.prerequisites.is_empty()
                    && !error.is_of_another_run() =>
            {
                sink(Event::failure(error.to_string()));
                Ok(Err(Ending::Incomplete))
            }
            begun => begun,
        }
    }

    /// Returns the record to leave after a run in which everything was done; `None` if it could not be determined,
    /// which is reported.
    async fn exact_or_reported(&self, settled: &HashSet<String>, sink: &mut Sink<'_>) -> Option<Record> {
        if self.plan.record_after == self.plan.record_during {
            return Some(self.plan.record_after.clone());
        }
        match self.exact_record(settled, sink).await {
            Ok(exact) => Some(exact),
            Err(error) => {
                sink(Event::failure(error.to_string()));
                None
            }
        }
    }

    /// Returns whether the run may write a member, or writes the record for another reason than to narrow it. The
    /// manifest of the parent is a reason for a run that is to be alone.
    pub(super) fn writes_members(&self, parent: &ParentObject) -> bool {
        let is_alone = self.writing.exclusive != Exclusive::No;
        self.plan.applies() + self.plan.deletions() > 0
            || (is_alone && self.desired.parent.is_some())
            || !parent.has_record(&self.set.tooling, &self.plan.record_during)
    }

    /// Applies the parent's own manifest, and begins again if the parent is not there any more.
    ///
    /// # Errors
    ///
    /// The run could not begin again.
    pub(super) async fn write_own_manifest(
        &self,
        run: &mut RunOnParent<'_>,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let (Some(known), entry) = (&mut run.known, &run.entry) else {
            return Ok(());
        };
        let sink = &mut entry.counting_sink(sink);
        let version = known.parent.resource_version.clone();
        let parent = self.parent_writing();
        let Err(error) = parent.apply_manifest(known, &self.plan.preconditions, sink).await else {
            self.report_parent(&version, known, sink);
            return Ok(());
        };
        run_state.applied.failed += 1;
        sink(Event::failure(error.to_string()));
        match known.run.clone() {
            Some(run) if !parent.is_there(&known.parent.uid).await? => {
                self.begin_again(known, run, sink).await
            }
            _ => Ok(()),
        }
    }

    /// Ends the run on the parent. `settled` are the UIDs of the members that it has applied or left as they are, if
    /// all was done.
    pub(super) async fn end(
        &self,
        run: &mut RunOnParent<'_>,
        ending: Ending,
        settled: Option<&HashSet<String>>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let Some(known) = &mut run.known else {
            return ending;
        };
        let exact = match settled {
            Some(settled) if !known.is_shared => self.exact_or_reported(settled, sink).await,
            _ => None,
        };
        let ending = match settled {
            Some(_) if exact.is_none() && !known.is_shared => Ending::Incomplete,
            _ => ending,
        };
        if known.run.is_none() && run.entry.has_changes() {
            // It has written the manifest of the parent and nothing else.
            known.run = Some(self.entry_under_way().await);
        }
        run.end(exact.as_ref(), ending, sink).await
    }

    /// Records what this run may write on the parent that has taken the place of the one that is known.
    pub(super) async fn begin_again(
        &self,
        known: &mut Known,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let parent = self.parent_writing();
        let found = parent.read().await?;
        let begun = parent.begin(found, &self.plan.record_during, run, sink).await?;
        *known = Known {
            is_shared: true,
            ..begun
        };
        Ok(())
    }
}

impl From<ParentWriteError> for Error {
    fn from(error: ParentWriteError) -> Self {
        let text = error.to_string();
        match &error {
            ParentWriteError::Refused(refusals) => {
                let mut messages = Refusal::messages(refusals);
                let kind = if error.is_of_another_run() {
                    ErrorKind::OtherRun
                } else {
                    messages.insert(0, Message::new(text.as_str()));
                    ErrorKind::Outdated
                };
                Self::from_messages(kind, messages).with_summary(text)
            }
            ParentWriteError::Request(request) => {
                let kind = match request.status().map(|status| status.code) {
                    Some(401) => ErrorKind::Cluster,
                    Some(403) => ErrorKind::Forbidden,
                    _ => ErrorKind::Failed,
                };
                Self::new(kind, text).with_hint(request.hint())
            }
            ParentWriteError::Changed(_) => Self::new(ErrorKind::Failed, text).with_hint(
                "exempt the ApplySet labels and annotations of the set's parent from the policy or webhook, then run `kubectl applyset verify SET --fix`",
            ),
            _ => Self::new(ErrorKind::Failed, text).with_hint("run the same command again"),
        }
    }
}
