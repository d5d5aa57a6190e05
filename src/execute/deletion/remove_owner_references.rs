//! Removes owner references to pruned objects from desired or kept objects: otherwise the garbage collector would
//! delete these after their owners are pruned.
//!
//! Each write has the UID and resourceVersion that were read as preconditions, and changes only owner references; an
//! object that has changed by then is read again. A run that ends before it prunes the owners leaves the other objects
//! without owner references. That does no harm: the next run would remove these references, too.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiRequest, Patch, UnreachableWebhook};
use crate::event::{Event, Sink};
use crate::execute::Execution;
use crate::execute::label_in_answer::label_error_in;
use crate::execute::reread::{is_answer_about_uid, reread};
use crate::execute::schedule::drive::{Driver, WriteAnswer};
use crate::model::identity::ObjectKey;
use crate::model::live::Presence;
use crate::model::message::Message;
use crate::model::text::first_names_and_more;
use crate::model::write_settings::DryRun;
use crate::plan::{Dependent, Dependents, Detachment, Judge};
use crate::read::METADATA;

/// Limit of attempts to write an object that other clients keep writing.
const MAX_ATTEMPTS: usize = 20;

/// The reason of the action `configured` for an object of which only owner references change.
pub const OWNERS_REMOVED: &str = "owner references to pruned objects are removed";

/// Warns of the objects that the garbage collector keeps because of these detachments.
fn warn_of_detached_objects<'d>(
    detachments: impl Iterator<Item = &'d Detachment>,
    judge: &Judge<'_>,
    dry_run: DryRun,
    sink: &mut Sink<'_>,
) {
    let mut kept = detachments
        .map(|detachment| &detachment.dependent)
        .filter(|dependent| !judge.is_parent_deleted_last(dependent))
        .map(|dependent| &dependent.key)
        .peekable();
    if kept.peek().is_none() {
        return;
    }
    let verb = match dry_run {
        DryRun::None => "removed",
        DryRun::Client | DryRun::Server => "would remove",
    };
    sink(Event::Warning(format!(
        "{verb} owner references to pruned objects, so the garbage collector keeps: {}",
        first_names_and_more(kept)
    )));
}

impl Execution<'_> {
    /// Warns of the objects that the garbage collector would keep because of the detachments of the plan.
    pub fn warn_of_predicted_detachments(&self, sink: &mut Sink<'_>) {
        let judge = self.judge_of_deletes(self.plan, HashSet::new());
        let detachments = self.plan.dependents.detachments.iter();
        let allowed = detachments.filter(|detachment| judge.may_detach(detachment));
        warn_of_detached_objects(allowed, &judge, self.writing.dry_run, sink);
    }

    /// Returns the detachments that are needed to delete these owners. A saved plan allows only the detachments that it
    /// names.
    pub(super) fn needed_detachments(
        &self,
        dependents: &Dependents,
        owners: &BTreeSet<&ObjectKey>,
    ) -> Vec<Detachment> {
        let is_saved_plan = self.plan.preconditions.is_of_saved_plan();
        let detachments = dependents.detachments.iter();
        let needed =
            detachments.filter(|detachment| detachment.pruned.iter().any(|key| owners.contains(key)));
        let allowed = needed
            .filter(|detachment| !is_saved_plan || self.plan.dependents.includes_detachment(detachment));
        allowed.cloned().collect()
    }

    /// Carries out the detachments that the judge allows, and returns the objects that were detached. They
    /// are noted in the judge, too, which refuses to delete an owner as long as an object is attached to it.
    pub(super) async fn carry_out_allowed_detachments<'d>(
        &self,
        detachments: &'d [Detachment],
        judge: &mut Judge<'_>,
        driver: &mut Driver<'_>,
        sink: &mut Sink<'_>,
    ) -> BTreeSet<ObjectKey> {
        let allowed: Vec<&Detachment> = detachments
            .iter()
            .filter(|detachment| judge.may_detach(detachment))
            .collect();
        let mut detached = Vec::new();
        let items = allowed
            .iter()
            .map(|detachment| (&detachment.dependent.key, *detachment));
        let take_answer = |answer: DetachAnswer<'d>, sink: &mut Sink<'_>| match answer.error {
            None => detached.push(answer.detachment),
            Some(reason) => {
                let key = &answer.detachment.dependent.key;
                sink(Event::general_failure(
                    reason.with_subject_prefix(format_args!("{key}: ")),
                ));
            }
        };
        driver
            .run_independent(items, take_answer, sink, async |detachment: &&'d Detachment| {
                self.detach(detachment).await
            })
            .await;
        for detachment in &detached {
            judge.note_owner_reference_removed(detachment);
        }
        warn_of_detached_objects(detached.iter().copied(), judge, self.writing.dry_run, sink);
        let keys = detached.iter().map(|detachment| &detachment.dependent.key);
        keys.cloned().collect()
    }

    /// Removes the owner references of one detachment.
    async fn detach<'d>(&self, detachment: &'d Detachment) -> DetachAnswer<'d> {
        let mut dependent = detachment.dependent.clone();
        for _ in 0..MAX_ATTEMPTS {
            let Some(operations) = build_operations(&dependent, detachment) else {
                return DetachAnswer::done(detachment);
            };
            let request = self.patch_request(&dependent, &operations);
            match self.server.send(request).await {
                Ok(reply) if is_answer_about_uid(&reply, &dependent.uid) => {
                    let answer = reply.json_or_null();
                    if without_owners(&answer, detachment) != answer {
                        let reason =
                            "the server put them back; an admission policy or webhook may be the cause";
                        return DetachAnswer::failed(detachment, removal_error(&reason));
                    }
                    let Some(error) = label_error_in(&reply, dependent.part_of.as_deref()) else {
                        return DetachAnswer::done(detachment);
                    };
                    let error = error.with_subject_prefix("owner references were removed, but ");
                    return DetachAnswer::failed(detachment, error);
                }
                // The answer is about another object, so this object is read again.
                Ok(_) => {}
                // An object that is gone needs no detachment.
                Err(error) if error.is_missing_object() => return DetachAnswer::done(detachment),
                Err(error) if error.has_status_code(StatusCode::CONFLICT) => {}
                Err(error) => {
                    return DetachAnswer {
                        webhook: UnreachableWebhook::from_error(&error),
                        ..DetachAnswer::failed(detachment, removal_error(&error.kind))
                    };
                }
            }
            match reread(self.server, &dependent.key, &dependent.resource).await {
                Err(error) => return DetachAnswer::failed(detachment, removal_error(&error.kind)),
                Ok(Some(fresh)) if fresh.uid == dependent.uid && fresh.presence == Presence::Present => {
                    dependent = Dependent::from_live(&fresh);
                }
                Ok(Some(fresh))
                    if fresh.presence == Presence::Present
                        && fresh
                            .owners
                            .iter()
                            .any(|owner| detachment.owners.contains(&owner.uid)) =>
                {
                    let reason = "another object with the same owner has taken its place";
                    return DetachAnswer::failed(detachment, removal_error(&reason));
                }
                // The object is gone, was replaced by one without these owners, or is being deleted: it needs no
                // detachment.
                Ok(_) => return DetachAnswer::done(detachment),
            }
        }
        DetachAnswer::failed(detachment, removal_error(&"too many conflicting updates"))
    }

    fn patch_request(&self, dependent: &Dependent, operations: &Value) -> ApiRequest {
        let path = dependent.resource.path_of(&dependent.key);
        let parameters = [("fieldManager", self.writing.field_manager.as_str())];
        ApiRequest::patch(&path, &parameters, METADATA, Patch::Json, operations.to_string())
    }
}

/// The answer to removing the owner references of one object.
struct DetachAnswer<'d> {
    detachment: &'d Detachment,
    /// The reason why the detachment failed; `None` if the owner references are removed, or need not be.
    error: Option<Message>,
    /// The webhook that could not be called, if that is why the detachment failed.
    webhook: Option<UnreachableWebhook>,
}

impl<'d> DetachAnswer<'d> {
    fn done(detachment: &'d Detachment) -> Self {
        Self {
            detachment,
            error: None,
            webhook: None,
        }
    }

    fn failed(detachment: &'d Detachment, error: Message) -> Self {
        Self {
            error: Some(error),
            ..Self::done(detachment)
        }
    }
}

impl WriteAnswer for DetachAnswer<'_> {
    fn unreachable_webhook(&self) -> Option<&UnreachableWebhook> {
        self.webhook.as_ref()
    }
}

fn removal_error(reason: &dyn fmt::Display) -> Message {
    format!("owner references could not be removed: {reason}").into()
}

/// Returns the operations of a JSON patch that removes the owners of `detachment` from exactly the object that was
/// read; `None` if the object has none of these owners. The patch also writes the UID and the resourceVersion that were
/// read: if the object has others by then, the server answers with a conflict.
fn build_operations(dependent: &Dependent, detachment: &Detachment) -> Option<Value> {
    // From the last index to the first: each removal shifts the references behind it.
    let indices: Vec<usize> = (0..dependent.owners.len())
        .rev()
        .filter(|index| detachment.owners.contains(&dependent.owners[*index]))
        .collect();
    if indices.is_empty() {
        return None;
    }
    let mut operations = vec![
        json!({"op": "replace", "path": "/metadata/uid", "value": dependent.uid}),
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": dependent.resource_version}),
    ];
    if indices.len() == dependent.owners.len() {
        operations.push(json!({"op": "remove", "path": "/metadata/ownerReferences"}));
    } else {
        operations.extend(indices.iter().map(|index| {
            let path = format!("/metadata/ownerReferences/{index}");
            json!({"op": "remove", "path": path})
        }));
    }
    Some(Value::Array(operations))
}

/// Returns the object without the owner references that this detachment removes.
pub fn without_owners(object: &Value, detachment: &Detachment) -> Value {
    let mut object = object.clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else { return object };
    if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| {
            let uid = owner["uid"].as_str();
            uid.is_none_or(|uid| !detachment.owners.contains(uid))
        });
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixtures::live;

    fn detachment(owners: &[&str], pruned: &[&str]) -> Detachment {
        let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(|&text| text.to_owned()).collect() };
        let mut dependent = Dependent::from_live(&live("ConfigMap", Some("shop"), "b"));
        dependent.owners = texts(owners);
        Detachment {
            dependent,
            owners: texts(pruned).into_iter().collect(),
            pruned: BTreeSet::new(),
        }
    }

    #[test]
    fn only_the_owners_that_go_are_removed_and_only_from_what_was_read() {
        let paths = |owners: &[&str], pruned: &[&str]| -> Option<Vec<String>> {
            let detachment = detachment(owners, pruned);
            let operations = build_operations(&detachment.dependent, &detachment)?;
            let operations = operations.as_array()?.clone();
            assert_eq!(operations[0]["value"], *detachment.dependent.uid);
            assert_eq!(operations[1]["value"], *detachment.dependent.resource_version);
            let removals = operations.iter().filter(|operation| operation["op"] == "remove");
            Some(
                removals
                    .map(|operation| operation["path"].as_str().unwrap_or_default().to_owned())
                    .collect(),
            )
        };
        let at = |indices: &[usize]| -> Option<Vec<String>> {
            let path = |index| format!("/metadata/ownerReferences/{index}");
            Some(indices.iter().map(path).collect())
        };
        assert_eq!(paths(&["x"], &["a"]), None);
        assert_eq!(paths(&[], &["a"]), None);
        assert_eq!(paths(&["a", "x", "b"], &["a", "b"]), at(&[2, 0]));
        let all = Some(vec!["/metadata/ownerReferences".to_owned()]);
        assert_eq!(paths(&["a", "b"], &["a", "b", "c"]), all);
    }

    #[test]
    fn a_prediction_lacks_the_owners_that_go() {
        let object = |owners: Value| json!({"metadata": {"name": "b", "ownerReferences": owners}});
        let both = object(json!([{"uid": "a"}, {"uid": "x"}]));
        let one = detachment(&["a", "x"], &["a"]);
        assert_eq!(without_owners(&both, &one), object(json!([{"uid": "x"}])));
        let all = detachment(&["a", "x"], &["a", "x"]);
        assert_eq!(without_owners(&both, &all), json!({"metadata": {"name": "b"}}));
    }
}
