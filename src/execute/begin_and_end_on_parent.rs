//! Begins and ends a run of `apply` on the parent.

use std::collections::HashSet;

use super::parent_record::RunOnParent;
use super::parent_record::begin::KnownParent;
use super::{Execution, ParentWriteError, RunState};
use crate::error::{Error, ErrorKind};
use crate::event::{Ending, Event, Sink};
use crate::model::applyset::Record;
use crate::model::message::Message;
use crate::model::set::ParentObject;
use crate::model::write_settings::Exclusive;
use crate::plan::Refusal;

impl Execution<'_> {
    /// Writes the parent before the first member, if the run has to. Returns the parent, or how the run ends if it was
    /// not written.
    pub(super) async fn begin_on_parent_if_needed(
        &self,
        sink: &mut Sink<'_>,
    ) -> Result<Result<KnownParent, Ending>, ParentWriteError> {
        if let Some(parent) = self.parent()
            && !self.has_to_write_parent_first(parent)
        {
            return Ok(Ok(KnownParent::from_read(parent.clone())));
        }
        let run = self.build_running_entry_of_apply().await;
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
            // The run has already applied members, the prerequisites. So it reports the error and ends as incomplete,
            // as after any write that fails, instead of ending as a run that has written nothing.
            Err(error)
                if self.parent().is_none()
                    && !self.plan.prerequisites.is_empty()
                    && !error.is_only_because_of_other_run() =>
            {
                sink(Event::general_failure(error.to_string()));
                Ok(Err(Ending::Incomplete))
            }
            begun => begun,
        }
    }

    /// Returns the record to leave after a run in which everything was done. If the record cannot be determined,
    /// reports the error and returns `None`.
    async fn determine_record_after(
        &self,
        settled_uids: &HashSet<String>,
        sink: &mut Sink<'_>,
    ) -> Option<Record> {
        if self.plan.record_after == self.plan.record_during {
            return Some(self.plan.record_after.clone());
        }
        match self.wait_and_determine_exact_record(settled_uids, sink).await {
            Ok(exact) => Some(exact),
            Err(error) => {
                sink(Event::general_failure(error.to_string()));
                None
            }
        }
    }

    /// Returns whether the run has to write the parent before anything else: for what the plan needs, or because it
    /// applies the parent's manifest with `--exclusive`. (The write with which a run begins fails if another run has
    /// begun since the plan was made.) A run that only narrows the record need not begin.
    pub(super) fn has_to_write_parent_first(&self, parent: &ParentObject) -> bool {
        let is_exclusive = self.writing.exclusive != Exclusive::No;
        (is_exclusive && self.desired.parent.is_some())
            || self
                .plan
                .has_to_begin_on(parent, self.set, self.writing, self.server.now())
    }

    /// Applies the parent's own manifest. A failure is only reported, because the record is written already. But if the
    /// parent was deleted or replaced, no record would cover what the run writes: returns how the run ends.
    pub(super) async fn apply_parent_manifest(
        &self,
        run: &mut RunOnParent<'_>,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) -> Option<Ending> {
        let known = run.known.as_mut()?;
        let sink = &mut run.changes.counting_sink(sink);
        let version_before = known.parent.resource_version.clone();
        let parent = self.parent_writing();
        let Err(error) = parent.apply_manifest(known, &self.plan.preconditions, sink).await else {
            self.report_parent_if_configured(&version_before, known, sink);
            return None;
        };
        run_state.applied.failed += 1;
        sink(Event::general_failure(error.to_string()));
        match parent.read().await {
            Ok(Some(found)) if found.uid == known.parent.uid => None,
            Ok(_) | Err(_) => Some(self.interrupt.ending_after_failure()),
        }
    }

    /// Ends the run on the parent. `settled_uids_if_all_done` are the UIDs of the members that the run has applied or
    /// left unchanged; `None` if something was not done, so that the record is not narrowed.
    pub(super) async fn end_on_parent(
        &self,
        run: &mut RunOnParent<'_>,
        ending: Ending,
        settled_uids_if_all_done: Option<&HashSet<String>>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let Some(known) = &mut run.known else {
            return ending;
        };
        let exact = match settled_uids_if_all_done {
            // Another run was at work, so this record is not written; the run warns of that.
            Some(_) if known.is_shared => Some(self.plan.record_after.clone()),
            Some(settled_uids) => self.determine_record_after(settled_uids, sink).await,
            None => None,
        };
        let ending = match settled_uids_if_all_done {
            Some(_) if exact.is_none() => Ending::Incomplete,
            _ => ending,
        };
        if known.run.is_none() && run.changes.has_changes() {
            // The run has only applied the manifest of the parent, for which it does not begin. Its entry is made now.
            known.run = Some(self.build_running_entry_of_apply().await);
        }
        run.end(exact.as_ref(), ending, sink).await
    }
}

impl From<ParentWriteError> for Error {
    fn from(error: ParentWriteError) -> Self {
        let text = error.to_string();
        match &error {
            ParentWriteError::Refused(refusals) => {
                let mut messages = Refusal::messages(refusals);
                let kind = if error.is_only_because_of_other_run() {
                    ErrorKind::OtherRunBegan
                } else {
                    messages.insert(0, Message::new(text.as_str()));
                    ErrorKind::Outdated
                };
                Self::from_messages(kind, messages).with_summary_for_documents(text)
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
