//! The reasons why the run does not recreate an object that the user chose to recreate, with their hints.

use crate::cluster::apiserver::{ApiError, Status, UnreachableWebhook};
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::model::message::Message;
use crate::plan::RecreationObstacle;

const HINT_TO_KEEP: &str = "keep the old value, or give the object another name";

/// The reason why an object is not recreated, and its hint. The run has deleted neither the object nor anything that it
/// owns.
pub struct NotRecreated {
    reason: String,
    hint: String,
    /// The webhook that could not be called, if that is the reason: the recreation is then tried again later.
    pub webhook: Option<UnreachableWebhook>,
}

impl NotRecreated {
    /// Creates a reason that another run may not have: the object has changed, or a request failed.
    pub fn in_this_run(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: "run the same command again".to_owned(),
            webhook: None,
        }
    }

    /// Creates the reason that a webhook, which judges the creation or the delete, cannot be called yet.
    pub fn until_webhook_answers(webhook: UnreachableWebhook, reason: impl Into<String>) -> Self {
        Self {
            webhook: Some(webhook),
            ..Self::in_this_run(reason)
        }
    }

    /// Creates the reason that the rules for deletes keep the object.
    pub fn from_obstacle(obstacle: &RecreationObstacle) -> Self {
        Self {
            hint: obstacle.hint(),
            ..Self::in_this_run(obstacle.to_string())
        }
    }

    /// Returns the reason if a dry run of the creation failed.
    pub fn from_creation_dry_run_error(object: &DesiredObject, error: &ApiError) -> Self {
        let reason = format!("a dry run of its creation failed: {}", error.kind);
        if let Some(webhook) = UnreachableWebhook::from_error(error) {
            return Self::until_webhook_answers(webhook, reason);
        }
        Self::for_failed_request(object, "create", reason, |reason| Self {
            hint: HINT_TO_KEEP.to_owned(),
            ..Self::in_this_run(reason)
        })
    }

    /// Returns the reason if a read failed.
    pub fn from_read_error(object: &DesiredObject, error: &ApiError) -> Self {
        Self::for_failed_request(object, "get", error.kind.to_string(), Self::in_this_run)
    }

    /// Returns the reason if the delete failed.
    pub fn from_delete_error(object: &DesiredObject, reason: String) -> Self {
        Self::for_failed_request(object, "delete", reason, Self::in_this_run)
    }

    /// Returns the reason if a request with this `verb` failed; `otherwise` creates it unless admission denied the
    /// request or the user lacks the permission. Only the words in `reason` show that, since a delete passes on no more
    /// than the text of its error.
    fn for_failed_request(
        object: &DesiredObject,
        verb: &str,
        reason: String,
        otherwise: impl FnOnce(String) -> Self,
    ) -> Self {
        let status = Status {
            message: reason.clone(),
            ..Status::default()
        };
        let hint = if status.is_denied_by_admission() {
            HINT_TO_KEEP.to_owned()
        } else if status.is_denied_by_authorization() {
            let kind = GroupKind::new(&object.resource.group, &object.resource.plural);
            let namespace = object.key.namespace.as_ref();
            let place = namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
            format!(
                "ask a cluster administrator for permission to {verb} {kind}{place}, or keep the old value"
            )
        } else {
            return otherwise(reason);
        };
        Self {
            hint,
            ..Self::in_this_run(reason)
        }
    }

    /// Returns the message about the refused update, with the reason and its hint.
    pub fn into_refused_update_message(self, refused: Message) -> Message {
        let message = refused.with_details([format!("not recreated: {}", self.reason)]);
        message.with_only_hint(self.hint)
    }
}
