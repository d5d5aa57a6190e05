//! What a prediction from the live object alone says, and what the server answers.

use kubectl_applyset::internals::{CrdVersion, predict_apply};
use serde_json::{Value, json};

use super::US;
use super::case::contents;
use super::server::Answer;

/// What the server changes or refuses, and the prediction does not show. Needless changes are not counted: only the
/// server knows its defaults.
pub(crate) fn hidden_by_prediction(
    manifest: &Value,
    live: &Value,
    definition: Option<CrdVersion<'_>>,
    force: bool,
    answer: &Answer,
) -> Option<&'static str> {
    // An item of a LIST has no kind.
    let mut live = live.clone();
    for field in ["apiVersion", "kind"] {
        live[field] = manifest[field].clone();
    }
    let predicted = predict_apply(&live, manifest, US, definition);
    let is_same_object = answer.body["metadata"]["uid"] == live["metadata"]["uid"];
    // The garbage collector takes its finalizers off an object that is being deleted, at any time.
    if live["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    if answer.succeeded() && is_same_object {
        let [before, ours, theirs] = [&live, &predicted.object, &answer.body].map(visible);
        return (ours == before && theirs != before).then_some("a change");
    }
    let causes = answer.body["details"]["causes"].as_array().into_iter().flatten();
    let is_conflict = causes
        .map(|cause| &cause["reason"])
        .any(|reason| reason == "FieldManagerConflict");
    (!force && is_conflict && predicted.conflicts.is_empty()).then_some("a conflict")
}

/// What a person sees of an object. The generation counts writes, and controllers write the status in the meantime.
fn visible(object: &Value) -> Value {
    let mut object = contents(object);
    object["status"] = json!(null);
    for field in ["managedFields", "generation"] {
        object["metadata"][field] = json!(null);
    }
    object
}
