//! Writes the part-of label of live objects, and the ownership of their fields if it moves to our field manager.
//! Nothing else of the objects changes.
//!
//! One write changes the label and the ownership of fields of an object, so the object is always in exactly one set,
//! and its fields never move without its label. The write has the resourceVersion that was judged as a precondition; an
//! object that has changed since is judged again. An object that leaves another set, or whose fields move, is written
//! in a dry run first: an admission webhook may remove the new label, and then nothing of the object must change.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::Judge;
use crate::cluster::apiserver::{ApiError, ApiRequest, ApiServer, Patch, UnreachableWebhook};
use crate::event::{Action, Event, Interrupt, ObjectOutcome, Sink, Subject};
use crate::execute::WaitNotes;
use crate::execute::label_in_answer::label_error_in;
use crate::execute::members::reply::MemberReply;
use crate::execute::reread::{GONE_ALREADY, is_answer_about};
use crate::execute::schedule::drive::Driver;
use crate::execute::unusable_versions::managed_fields_without_unusable_versions;
use crate::model::applyset::{ApplySetId, PART_OF_LABEL};
use crate::model::label_selector::LabelSelector;
use crate::model::live::{Live, Tracking};
use crate::model::message::Message;
use crate::model::object::to_yaml_safe_json;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::{FieldOwnership, MembershipChange, MembershipKeepReason};
use crate::read::{self, METADATA};

/// Limit of how often an object is judged that keeps changing. It is high, because controllers write the status of busy
/// objects several times a second.
const MAX_JUDGEMENTS: usize = 20;

/// Context for writing part-of labels.
pub struct LabelWriter<'a> {
    pub server: &'a ApiServer,
    pub interrupt: &'a Interrupt,
    pub writing: &'a WriteSettings,
    /// The id of the set that the objects join, which is the value of the label; `None` removes the label.
    pub part_of: Option<&'a ApplySetId>,
    /// The new `metadata.managedFields` of objects whose fields move, by UID.
    pub moved_fields: &'a BTreeMap<String, Value>,
    /// The action that is reported for an object whose label was written.
    pub done: Action,
    /// The label selector by which the user selected the objects, if the user gave one. An object that has changed must
    /// still match it.
    pub selector: Option<&'a str>,
    /// Judges an object that has changed since it was read, by the rules of the plan.
    pub judge: &'a Judge<'a>,
}

impl LabelWriter<'_> {
    /// Writes the labels of all these objects, within the concurrency limit. Returns how many of them failed.
    pub async fn write_all_and_count_failed(&self, objects: &[Live], sink: &mut Sink<'_>) -> usize {
        let mut failed = 0;
        let notes = WaitNotes::default();
        let (patience, most) = (self.writing.webhook_patience.at_end, self.writing.concurrency);
        let mut driver = Driver::new(self.server, self.interrupt, &notes, patience, most);
        let take_reply = |reply: MemberReply, sink: &mut Sink<'_>| {
            failed += usize::from(reply.outcome.action == Action::Failed);
            sink(Event::Object(reply.outcome));
        };
        let items = objects.iter().map(|live| (&live.key, live));
        driver
            .run_independent(items, take_reply, sink, async |live| self.write(live).await)
            .await;
        failed
    }

    /// Writes the label of one object, and judges the object again as long as other clients change it first.
    async fn write(&self, live: &Live) -> MemberReply {
        let subject = Subject::from_live(live);
        if self.writing.dry_run == DryRun::Client {
            return self.done_reply(subject);
        }
        let mut current = live.clone();
        let mut fields = match self.moved_fields.get(&live.uid) {
            Some(fields) => FieldOwnership::Moved(fields.clone()),
            None => FieldOwnership::Kept,
        };
        for _ in 0..MAX_JUDGEMENTS {
            fields = match self.replace_unusable_versions(&current, fields).await {
                Ok(fields) => fields,
                Err(error) => return MemberReply::failed(subject, error.kind.to_object_message()),
            };
            match self.write_unless_label_is_dropped(&current, &fields).await {
                Ok(LabelAnswer::Written) => return self.done_reply(subject),
                Ok(LabelAnswer::LabelChanged(error)) => return MemberReply::failed(subject, error),
                Ok(LabelAnswer::OfAnotherObject) => {}
                Err(error) if error.is_missing_object() => return skipped_reply(subject, GONE_ALREADY),
                Err(error) if error.has_status_code(StatusCode::CONFLICT) => {}
                Err(error) => {
                    // Only a run that writes may start the webhook, so a dry run does not wait for it.
                    let is_dry_run = self.writing.dry_run != DryRun::None;
                    return MemberReply {
                        webhook: UnreachableWebhook::from_error(&error).filter(|_| !is_dry_run),
                        ..MemberReply::failed(subject, error.kind.to_object_message())
                    };
                }
            }
            let object = match read::read_metadata(self.server, &live.resource, &live.key).await {
                Ok(Some(object)) => object,
                Ok(None) => return skipped_reply(subject, GONE_ALREADY),
                Err(error) => return MemberReply::failed(subject, error.kind.to_object_message()),
            };
            current = match Live::from_object(&object, &live.resource) {
                Some(fresh) if fresh.uid == live.uid => fresh,
                _ => return skipped_reply(subject, GONE_ALREADY),
            };
            fields = match (self.judge)(&object, &current) {
                MembershipChange::Write(_) if !self.is_selected(&object) => {
                    let reason = MembershipKeepReason::NotSelected;
                    return skipped_reply(subject, &changed_during_run_message(&reason));
                }
                MembershipChange::Write(fields) => fields,
                // An earlier attempt of this write was carried out although its answer was lost, or another run has
                // written the same label.
                MembershipChange::Settled => return self.done_reply(subject),
                MembershipChange::Keep(reason) => {
                    return skipped_reply(subject, &changed_during_run_message(&reason));
                }
                MembershipChange::OfAnotherSet(id) => {
                    let error = format!("it became a member of another set ({id}) during the run");
                    return MemberReply::failed(subject, error);
                }
            };
        }
        MemberReply::failed(
            subject,
            "too many conflicting updates; run the same command again",
        )
    }

    /// Returns the reply about an object whose label was written.
    fn done_reply(&self, subject: Subject) -> MemberReply {
        MemberReply::from_outcome(ObjectOutcome::new(subject, self.done))
    }

    /// Writes the label. If the object leaves another set or its fields move, sends a dry run first, and does not write
    /// the label if the dry run's answer does not show it.
    async fn write_unless_label_is_dropped(
        &self,
        live: &Live,
        fields: &FieldOwnership,
    ) -> Result<LabelAnswer, ApiError> {
        let loses_set_or_fields = live.part_of.is_some() || *fields != FieldOwnership::Kept;
        if self.part_of.is_some() && loses_set_or_fields && self.writing.dry_run == DryRun::None {
            // Any other failure of the dry run is ignored here: the write fails, too, and reports it.
            let predicted = self.send(live, fields, DryRun::Server).await;
            if let Ok(LabelAnswer::LabelChanged(_)) = predicted {
                return predicted;
            }
        }
        self.send(live, fields, self.writing.dry_run).await
    }

    async fn send(
        &self,
        live: &Live,
        fields: &FieldOwnership,
        dry_run: DryRun,
    ) -> Result<LabelAnswer, ApiError> {
        let request = self.label_request(live, fields, dry_run);
        let reply = self.server.send(request).await?;
        if !is_answer_about(&reply, live) {
            return Ok(LabelAnswer::OfAnotherObject);
        }
        let error = label_error_in(&reply, self.part_of.map(ApplySetId::as_str));
        Ok(error.map_or(LabelAnswer::Written, LabelAnswer::LabelChanged))
    }

    /// Returns the ownership of fields. In `metadata.managedFields`, the version of the resource replaces each version
    /// in which the server cannot read the object: because of one such entry, the server would drop all entries.
    async fn replace_unusable_versions(
        &self,
        live: &Live,
        fields: FieldOwnership,
    ) -> Result<FieldOwnership, ApiError> {
        if live.tracking != Tracking::OnInOtherVersions {
            return Ok(fields);
        }
        let metadata = match &fields {
            FieldOwnership::Moved(entries) => json!({"managedFields": entries}),
            FieldOwnership::Kept => {
                match read::read_metadata(self.server, &live.resource, &live.key).await? {
                    Some(mut object) if is_unchanged(&object, live) => object["metadata"].take(),
                    // The object has changed, so the precondition of the write fails, and the object is judged again.
                    Some(_) | None => return Ok(fields),
                }
            }
        };
        let rewritten =
            managed_fields_without_unusable_versions(self.server, &metadata, &live.resource).await?;
        Ok(rewritten.map_or(fields, FieldOwnership::Moved))
    }

    /// Returns whether an object still has the labels by which the user selected it. The server has accepted the selector.
    fn is_selected(&self, object: &Value) -> bool {
        let selector = self.selector.and_then(|text| LabelSelector::parse(text).ok());
        selector.is_none_or(|selector| selector.matches_json(object.pointer("/metadata/labels")))
    }

    fn label_request(&self, live: &Live, fields: &FieldOwnership, dry_run: DryRun) -> ApiRequest {
        let (patch, force, body) = match (self.part_of, live.tracking) {
            (Some(id), Tracking::Off) => (Patch::Apply, Some(("force", "true")), build_apply_body(live, id)),
            (Some(_), Tracking::On | Tracking::OnInOtherVersions) | (None, _) => {
                (Patch::Merge, None, self.build_merge_patch_body(live, fields))
            }
        };
        let path = live.resource.path_of(&live.key);
        let mut parameters = vec![("fieldManager", self.writing.field_manager.as_str())];
        parameters.extend(force);
        parameters.extend(dry_run.parameter());
        ApiRequest::patch(&path, &parameters, METADATA, patch, body)
    }

    /// Returns the body of a merge patch: it creates `metadata.labels` if there are none, removes keys that are null,
    /// and replaces lists.
    ///
    /// Server-side apply cannot do the same. It does not remove a label that another manager owns, too; and an apply of
    /// the label alone would remove every other field that the same manager has applied before.
    fn build_merge_patch_body(&self, live: &Live, fields: &FieldOwnership) -> Bytes {
        let value = self.part_of.map_or(Value::Null, |id| json!(id.as_str()));
        let mut patch = json!({"metadata": {
            "uid": live.uid,
            "resourceVersion": live.resource_version,
            "labels": {PART_OF_LABEL: value},
        }});
        if let FieldOwnership::Moved(fields) = fields {
            patch["metadata"]["managedFields"] = fields.clone();
        }
        Bytes::from(patch.to_string())
    }
}

/// Returns the body of an apply of the label alone, for an object without `metadata.managedFields`. Such an object is
/// applied, because the server would not record the manager of a patch: the label would then look like a copied one.
fn build_apply_body(live: &Live, id: &ApplySetId) -> Bytes {
    to_yaml_safe_json(&json!({
        "apiVersion": live.resource.api_version(),
        "kind": live.resource.kind,
        "metadata": {
            "name": live.key.name,
            "uid": live.uid,
            "resourceVersion": live.resource_version,
            "labels": {PART_OF_LABEL: id.as_str()},
        },
    }))
}

/// The answer to the write of a label.
enum LabelAnswer {
    /// The object has the label as it was written.
    Written,
    /// The answer lacks the label or shows another value of it, for this reason.
    LabelChanged(Message),
    /// The answer is about another object with the same name.
    OfAnotherObject,
}

/// Returns whether `object` is the live object in the version that was judged.
fn is_unchanged(object: &Value, live: &Live) -> bool {
    let metadata = &object["metadata"];
    metadata["uid"] == *live.uid && metadata["resourceVersion"] == *live.resource_version
}

/// Returns the reply about an object that is not written, for this reason.
fn skipped_reply(subject: Subject, reason: &str) -> MemberReply {
    MemberReply::from_outcome(ObjectOutcome::new_with_reason(subject, Action::Skipped, reason))
}

fn changed_during_run_message(reason: &MembershipKeepReason) -> String {
    format!("it changed during the run: {reason}")
}
