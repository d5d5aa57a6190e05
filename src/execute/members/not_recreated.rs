//! The reasons why an object that was chosen is not recreated, with their hints.

use crate::cluster::apiserver::{ApiError, Status, UnreachableWebhook};
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::model::message::Message;
use crate::plan::RecreationObstacle;

const KEEP: &str = "keep the old value, or give the object another name";

/// The reason why an object that was chosen is not recreated. Nothing of it was deleted.
pub enum NotRecreated {
    /// Another client has changed, replaced or deleted it since the update.
    Changed(&'static str),
    /// Its creation was not answered with `AlreadyExists`.
    NotCreatable(String),
    /// The rules for deletes keep it.
    Obstacle(RecreationObstacle),
    /// The object, or an object that it owns, could not be read.
    Unread(String),
    /// The user stopped the run.
    Interrupted,
    /// Its delete failed, or a rule now keeps it.
    Undeleted(String),
    /// The webhook that judges its creation or its delete cannot be called yet.
    Unreachable(UnreachableWebhook, String),
    /// An admission policy or webhook denies a request.
    Denied(String),
    /// The user lacks the permission for a request.
    Forbidden {
        /// The failure.
        reason: String,
        permission: String,
    },
}

impl NotRecreated {
    /// The reason of a dry run of the creation that failed.
    pub fn not_creatable(object: &DesiredObject, error: &ApiError) -> Self {
        let reason = format!("a dry run of its creation failed: {}", error.kind);
        if let Some(webhook) = UnreachableWebhook::from_error(error) {
            return Self::Unreachable(webhook, reason);
        }
        Self::of_request(object, "create", reason, Self::NotCreatable)
    }

    /// The reason of a read that failed.
    pub fn get_failed(object: &DesiredObject, error: &ApiError) -> Self {
        Self::of_request(object, "get", error.kind.to_string(), Self::Unread)
    }

    /// The reason of a delete that failed.
    pub fn delete_failed(object: &DesiredObject, reason: String) -> Self {
        Self::of_request(object, "delete", reason, Self::Undeleted)
    }

    /// Returns the missing permission for this `verb`, if the request failed for that.
    fn of_request(
        object: &DesiredObject,
        verb: &str,
        reason: String,
        otherwise: impl FnOnce(String) -> Self,
    ) -> Self {
        let status = Status {
            message: reason.clone(),
            ..Status::default()
        };
        if status.is_denied_by_admission() {
            return Self::Denied(reason);
        }
        if !status.is_denied_by_authorization() {
            return otherwise(reason);
        }
        let kind = GroupKind::new(&object.resource.group, &object.resource.plural);
        let namespace = object.key.namespace.as_ref();
        let place = namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
        Self::Forbidden {
            reason,
            permission: format!("{verb} {kind}{place}"),
        }
    }

    /// Returns the webhook that could not be called, so that the recreation is tried again later.
    pub fn webhook(&self) -> Option<&UnreachableWebhook> {
        match self {
            Self::Unreachable(webhook, _) => Some(webhook),
            _ => None,
        }
    }

    /// Adds the reason to the message about the refused update.
    pub fn explain(self, refused: Message) -> Message {
        let (reason, hint) = match self {
            Self::Changed(reason) => (reason.to_owned(), "run the same command again".to_owned()),
            Self::NotCreatable(reason) | Self::Denied(reason) => (reason, KEEP.to_owned()),
            Self::Obstacle(obstacle) => (obstacle.to_string(), obstacle.hint()),
            Self::Unread(reason) | Self::Undeleted(reason) | Self::Unreachable(_, reason) => {
                (reason, "run the same command again".to_owned())
            }
            Self::Forbidden { reason, permission } => (
                reason,
                format!("ask a cluster administrator for permission to {permission}, or keep the old value"),
            ),
            Self::Interrupted => return refused,
        };
        let message = refused.with_details([format!("not recreated: {reason}")]);
        message.with_only_hint(hint)
    }
}
