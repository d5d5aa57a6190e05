//! Removes owner references from desired or kept objects, so that the garbage collector does not
//! delete them after their owners.
//!
//! Each write is bound to the object that was read, and changes nothing else of it; an object that has
//! changed by then is read again. A run that ends before it deletes the owners leaves objects without
//! them, as the next run would.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiRequest, Patch, UnreachableWebhook};
use crate::event::Event;
use crate::execute::label_in_answer::label_error_in;
use crate::execute::reread::{is_about, reread};
use crate::execute::schedule::drive::{Driver, WriteAnswer};
use crate::execute::{Execution, Sink};
use crate::model::identity::ObjectKey;
use crate::model::live::Presence;
use crate::model::message::Message;
use crate::model::text::listed;
use crate::model::write_settings::DryRun;
use crate::plan::{Dependent, Detachment, Judge};
use crate::read::METADATA;

/// Attempts to write an object that other clients write at the same time.
const ATTEMPTS: usize = 20;

/// The reason why an otherwise unchanged object is configured.
pub const OWNERS_REMOVED: &str = "owner references to pruned objects are removed";

/// Names the objects that stay because of these detachments.
pub fn warn_of_kept<'d>(
    detachments: impl Iterator<Item = &'d Detachment>,
    judge: &Judge<'_>,
    dry_run: DryRun,
    sink: &mut Sink<'_>,
) {
    let mut kept = detachments
        .map(|detachment| &detachment.dependent)
        .filter(|dependent| !judge.goes_last(dependent))
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
        listed(kept)
    )));
}

impl Execution<'_> {
    /// Detaches those of these objects that may be detached, and returns them. The judge gets them, too: an object that
    /// is still attached keeps its owners from being deleted.
    pub(in crate::execute) async fn detach_all<'d>(
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
        let answered = |answer: Detached<'d>, sink: &mut Sink<'_>| match answer.error {
            None => detached.push(answer.detachment),
            Some(reason) => {
                let key = &answer.detachment.dependent.key;
                sink(Event::failure(reason.with_prefix(format_args!("{key}: "))));
            }
        };
        let writing = driver.run_independent(items, answered, sink, async |detachment: &&'d Detachment| {
            self.detach(detachment).await
        });
        writing.await;
        for detachment in &detached {
            judge.note_owner_reference_removed(detachment);
        }
        warn_of_kept(detached.iter().copied(), judge, self.writing.dry_run, sink);
        let keys = detached.iter().map(|detachment| &detachment.dependent.key);
        keys.cloned().collect()
    }

    async fn detach<'d>(&self, detachment: &'d Detachment) -> Detached<'d> {
        let ended = |error: Option<Message>| Detached {
            detachment,
            error,
            webhook: None,
        };
        let mut dependent = detachment.dependent.clone();
        for _ in 0..ATTEMPTS {
            let Some(operations) = operations(&dependent, detachment) else {
                return ended(None);
            };
            let request = self.request(&dependent, &operations);
            match self.server.send(request).await {
                Ok(reply) if is_about(&reply, &dependent.uid) => {
                    let error = label_error_in(&reply, dependent.part_of.as_deref());
                    return ended(
                        error.map(|error| error.with_prefix("owner references were removed, but ")),
                    );
                }
                // The answer is about another object.
                Ok(_) => {}
                // An object that does not exist any more cannot be lost.
                Err(error) if error.is_missing_object() => return ended(None),
                Err(error) if error.is(StatusCode::CONFLICT) => {}
                Err(error) => {
                    return Detached {
                        webhook: UnreachableWebhook::from_error(&error),
                        ..ended(Some(unremoved(&error.kind)))
                    };
                }
            }
            match reread(self.server, &dependent.key, &dependent.resource).await {
                Err(error) => return ended(Some(unremoved(&error.kind))),
                Ok(Some(fresh)) if fresh.uid == dependent.uid && fresh.presence == Presence::Present => {
                    dependent = Dependent::from_live(&fresh);
                }
                // It is another object, or is being deleted.
                Ok(_) => return ended(None),
            }
        }
        ended(Some(unremoved(&"too many conflicting updates")))
    }

    fn request(&self, dependent: &Dependent, operations: &Value) -> ApiRequest {
        let path = dependent.resource.path_of(&dependent.key);
        let parameters = [("fieldManager", self.writing.field_manager.as_str())];
        let body = Bytes::from(operations.to_string());
        ApiRequest::patch(&path, &parameters, METADATA, Patch::Json, body)
    }
}

/// The answer to removing the owner references of one object.
struct Detached<'d> {
    detachment: &'d Detachment,
    /// The reason why they are still there.
    error: Option<Message>,
    /// Set if a webhook could not be called.
    webhook: Option<UnreachableWebhook>,
}

impl WriteAnswer for Detached<'_> {
    fn webhook(&self) -> Option<&UnreachableWebhook> {
        self.webhook.as_ref()
    }
}

fn unremoved(reason: &dyn fmt::Display) -> Message {
    format!("owner references could not be removed: {reason}").into()
}

/// Returns the operations that remove the deleted owners from exactly the object that was read; `None`
/// if it has none of them. With another UID or resourceVersion the server answers with a conflict.
fn operations(dependent: &Dependent, detachment: &Detachment) -> Option<Value> {
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

/// Returns the object without the owner references that are removed.
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

    fn detachment(owners: &[&str], going: &[&str]) -> Detachment {
        let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(|&text| text.to_owned()).collect() };
        let mut dependent = Dependent::from_live(&live("ConfigMap", Some("shop"), "b"));
        dependent.owners = texts(owners);
        Detachment {
            dependent,
            owners: texts(going).into_iter().collect(),
            pruned: BTreeSet::new(),
        }
    }

    #[test]
    fn only_the_owners_that_go_are_removed_and_only_from_what_was_read() {
        let paths = |owners: &[&str], going: &[&str]| -> Option<Vec<String>> {
            let detachment = detachment(owners, going);
            let operations = operations(&detachment.dependent, &detachment)?;
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
