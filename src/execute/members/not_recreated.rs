//! The reasons why the run does not recreate an object that the user chose to recreate, with their hints.

use crate::cluster::apiserver::{ApiError, UnreachableWebhook};
use crate::model::message::Message;
use crate::plan::RecreationObstacle;

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

    /// Creates the reason that a request failed: that does not change by itself if the user lacks a permission, or if
    /// admission denies the request.
    pub fn from_failed_request(reason: impl Into<String>) -> Self {
        Self {
            hint: "remove the cause, or keep the old value".to_owned(),
            ..Self::in_this_run(reason)
        }
    }

    /// Returns the reason if a dry run of the creation failed.
    pub fn from_creation_dry_run_error(error: &ApiError) -> Self {
        let reason = format!("a dry run of its creation failed: {}", error.kind);
        match UnreachableWebhook::from_error(error) {
            Some(webhook) => Self::until_webhook_answers(webhook, reason),
            None => Self::from_failed_request(reason),
        }
    }

    /// Returns the message about the refused update, with the reason and its hint.
    pub fn into_refused_update_message(self, refused: Message) -> Message {
        let message = refused.with_details([format!("not recreated: {}", self.reason)]);
        message.with_only_hint(self.hint)
    }
}
