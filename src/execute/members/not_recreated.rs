//! The reasons why the run does not recreate an object that the user chose to recreate, with their hints.

use crate::cluster::apiserver::{ApiError, Status, UnreachableWebhook};
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::model::message::Message;
use crate::plan::RecreationObstacle;

const HINT_TO_KEEP: &str = "keep the old value, or give the object another name";

/// The reason why an object is not recreated. The run has deleted neither the object nor anything that it owns.
pub enum NotRecreated {
    /// Another client has changed, replaced or deleted the object since the update.
    Changed(&'static str),
    /// A dry run of the object's creation was not answered with `AlreadyExists`.
    NotCreatable(String),
    /// The rules for deletes keep the object.
    Obstacle(RecreationObstacle),
    /// The object, or an object that it owns, could not be read.
    Unread(String),
    /// The user stopped the run.
    Interrupted,
    /// The delete failed, or a rule now keeps the object.
    Undeleted(String),
    /// The webhook that judges the creation or the delete cannot be called yet.
    Unreachable {
        webhook: UnreachableWebhook,
        /// The error of the request.
        reason: String,
    },
    /// An admission policy or webhook denies a request.
    Denied(String),
    /// The user lacks the permission for a request.
    Forbidden {
        /// The error of the request.
        reason: String,
        /// The missing permission, such as `delete deployments.apps in namespace shop`.
        permission: String,
    },
}

impl NotRecreated {
    /// Returns the reason if a dry run of the creation failed.
    pub fn from_creation_dry_run_error(object: &DesiredObject, error: &ApiError) -> Self {
        let reason = format!("a dry run of its creation failed: {}", error.kind);
        if let Some(webhook) = UnreachableWebhook::from_error(error) {
            return Self::Unreachable { webhook, reason };
        }
        Self::for_failed_request(object, "create", reason, Self::NotCreatable)
    }

    /// Returns the reason if a read failed.
    pub fn from_read_error(object: &DesiredObject, error: &ApiError) -> Self {
        Self::for_failed_request(object, "get", error.kind.to_string(), Self::Unread)
    }

    /// Returns the reason if the delete failed.
    pub fn from_delete_error(object: &DesiredObject, reason: String) -> Self {
        Self::for_failed_request(object, "delete", reason, Self::Undeleted)
    }

    /// Returns the reason if a request with this `verb` failed: `Denied` if admission denied it, `Forbidden` if the
    /// user lacks the permission, and `otherwise` in all other cases. Only the words in `reason` show which it is,
    /// since a delete passes on no more than the text of its error.
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

    /// Returns the webhook that could not be called, if that is the reason: the recreation is then tried again later.
    pub fn unreachable_webhook(&self) -> Option<&UnreachableWebhook> {
        match self {
            Self::Unreachable { webhook, .. } => Some(webhook),
            _ => None,
        }
    }

    /// Returns the message about the refused update, with the reason and its hint.
    pub fn into_refused_update_message(self, refused: Message) -> Message {
        let (reason, hint) = match self {
            Self::Changed(reason) => (reason.to_owned(), "run the same command again".to_owned()),
            Self::NotCreatable(reason) | Self::Denied(reason) => (reason, HINT_TO_KEEP.to_owned()),
            Self::Obstacle(obstacle) => (obstacle.to_string(), obstacle.hint()),
            Self::Unread(reason) | Self::Undeleted(reason) | Self::Unreachable { reason, .. } => {
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
