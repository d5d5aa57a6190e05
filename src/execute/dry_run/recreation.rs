//! Predicts members that a run would delete and create again.
//!
//! The server cannot create a member in a dry run, because it exists. So a dry run creates the same object under
//! another name, which shows what the member would be, with all defaults.

use serde_json::{Value, json};

use super::Prediction;
use super::answer::parse_object;
use crate::cluster::apiserver::ApiError;
use crate::compare::prediction::predict_creation;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Execution;
use crate::execute::deletion::delete::CANNOT_BE_DELETED;
use crate::execute::members::not_recreated::NotRecreated;
use crate::manifest::desired::DesiredObject;
use crate::model::built_in_kinds::is_built_in;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::plan::claims_after_recreation;
use crate::read;

/// The end of the name under which an object is created in a dry run. No live object has such a name.
const STAND_IN_SUFFIX: &str = "-0recreated0";
/// The longest name that every kind allows, in bytes.
const LONGEST_NAME: usize = 63;

impl Execution<'_> {
    /// Predicts the recreation of an object whose update was refused with `update_error`. `refusal_message` is the
    /// message about that error.
    ///
    /// # Errors
    ///
    /// The message about the refused update, with the reason why the run would not recreate the object.
    pub(super) async fn predict_recreation(
        &self,
        object: &DesiredObject,
        subject: Subject,
        update_error: &ApiError,
        refusal_message: Message,
    ) -> Result<Prediction, Message> {
        let reason = refusal_message.text.clone();
        let old = match self
            .judge_recreation(object, subject.uid.as_deref(), update_error)
            .await
        {
            Ok(old) => old,
            Err(not_recreated) => return Err(not_recreated.into_refused_update_message(refusal_message)),
        };
        if let Some(denial) = self.find_denial_of_deletion(&old.live).await {
            let reason = format!("{CANNOT_BE_DELETED}{}", denial.kind);
            return Err(
                NotRecreated::from_failed_request(reason).into_refused_update_message(refusal_message)
            );
        }
        let live = read::read_object(self.server, &object.resource, &object.key)
            .await
            .map_err(|error| {
                NotRecreated::from_failed_request(error.kind.to_string())
                    .into_refused_update_message(refusal_message)
            })?;
        Ok(self.predict_recreated(object, subject, live, reason).await)
    }

    /// Predicts an object that is being deleted, and that the run would create once it is gone.
    pub(super) async fn predict_recreation_of_terminating(
        &self,
        object: &DesiredObject,
        subject: Subject,
    ) -> Prediction {
        match read::read_object(self.server, &object.resource, &object.key).await {
            Ok(live) => self.predict_recreated(object, subject, live, String::new()).await,
            Err(error) => self.unread_prediction(subject, &error),
        }
    }

    async fn predict_recreated(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        live: Option<Value>,
        reason: String,
    ) -> Prediction {
        let predicted = self.predict_creation(object, live.as_ref()).await;
        // The UID of the new object is not known.
        subject.uid = None;
        let mut outcome = ObjectOutcome::new_with_reason(subject, Action::Recreated, reason);
        if let Some(live) = &live {
            outcome.claims = claims_after_recreation(object, live);
        }
        Prediction {
            live,
            predicted: Some(predicted),
            ..Prediction::from_outcome(outcome)
        }
    }

    /// Returns the object as the server would create it; if the dry run fails or cannot be sent, as an apply
    /// would leave the live object. UID, creation time and status are those of the live object, so that they do not show as
    /// differences.
    async fn predict_creation(&self, object: &DesiredObject, live: Option<&Value>) -> Value {
        let name = stand_in_name(&object.key.name);
        let mut metadata = object.object.metadata();
        metadata.insert("name".to_owned(), json!(name));
        let stand_in = object.with_object(object.object.with_metadata(&metadata));
        // An aggregated API may ignore `dryRun`, and would then really create the stand-in.
        let may_be_sent = !self.has_unknown_value(object)
            && self.writing.dry_run != DryRun::Client
            && is_built_in(&object.resource.api_version(), &object.resource.kind);
        let reply = if may_be_sent {
            let request = self.creation_dry_run_request(&stand_in);
            self.server.send(request).await.ok()
        } else {
            None
        };
        let Some(mut created) = reply.as_ref().and_then(parse_object) else {
            return match live {
                Some(live) => self.predict_apply_of_owned(live, object, None).object,
                None => predict_creation(&object.object.value(), None),
            };
        };
        let nothing = json!({});
        let live = live.unwrap_or(&nothing);
        let uid_of = |object: &Value| object.pointer("/metadata/uid")?.as_str().map(str::to_owned);
        replace_in_string_values(&mut created, &name, &object.key.name);
        if let (Some(new), Some(old)) = (uid_of(&created), uid_of(live)) {
            replace_in_string_values(&mut created, &new, &old);
        }
        copy_metadata_field(live, &mut created, "creationTimestamp");
        match live.get("status") {
            Some(status) => created["status"] = status.clone(),
            None => created.as_object_mut().into_iter().for_each(|fields| {
                fields.remove("status");
            }),
        }
        created
    }
}

fn copy_metadata_field(from: &Value, to: &mut Value, field: &str) {
    if let Some(value) = from["metadata"].get(field) {
        to["metadata"][field] = value.clone();
    }
}

/// Returns a name that no object has. It is valid if `name` is: it has at most 63 bytes, which every kind allows, or at
/// most as many as `name`.
fn stand_in_name(name: &str) -> String {
    let room = LONGEST_NAME.max(name.len()) - STAND_IN_SUFFIX.len();
    let end = (0..=room.min(name.len()))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    let stem = &name[..end.unwrap_or_default()];
    format!("{}{STAND_IN_SUFFIX}", stem.trim_end_matches(['-', '.']))
}

/// Replaces `old` by `new` wherever a string in the value contains it. Names of fields stay.
fn replace_in_string_values(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text.contains(old) => *text = text.replace(old, new),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| replace_in_string_values(item, old, new)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| replace_in_string_values(field, old, new)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_as_valid_as_the_name() {
        let long = "a".repeat(63);
        let longer = format!("{}.b", "a".repeat(200));
        for (name, expected) in [
            ("web", "web-0recreated0".to_owned()),
            (long.as_str(), format!("{}-0recreated0", "a".repeat(51))),
            (
                "x-".repeat(31).as_str(),
                format!("{}x-0recreated0", "x-".repeat(25)),
            ),
            (longer.as_str(), format!("{}-0recreated0", "a".repeat(190))),
        ] {
            assert_eq!(stand_in_name(name), expected);
        }
    }

    #[test]
    fn names_are_replaced_wherever_they_are() {
        let mut value = json!({"a": [{"b": "x-web-1"}], "web-1": 1, "c": "web"});
        replace_in_string_values(&mut value, "web-1", "web");
        assert_eq!(value, json!({"a": [{"b": "x-web"}], "web-1": 1, "c": "web"}));
    }
}
