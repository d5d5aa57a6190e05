//! `metav1.Status`, the API server's error, and its layout in messages.

use std::fmt;

use serde::Deserialize;
use serde_json::Deserializer;

use super::UnreachableWebhook;
use super::hide_sent_secret_values::SecretValues;
use crate::model::message::Message;

/// The words of the server for a request that the user has no permission for.
const DENIED_BY_AUTHORIZATION: &str = " is forbidden: User ";

/// The words of the server for a denial by a webhook, and by a policy.
const DENIED_BY_ADMISSION: [&str; 2] = [" denied the request", " denied request: "];

/// The parts of `metav1.Status` that decisions and messages need.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `Conflict`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// The object and the causes.
    pub details: StatusDetails,
}

impl Status {
    /// Hides the values of a Secret in all texts.
    pub(super) fn hide_secret_values(&mut self, values: &SecretValues) {
        self.message = values.hide(&self.message);
        // A conflict holds no values, and its manager may have the name of one.
        let causes = self.details.causes.iter_mut();
        for cause in causes.filter(|cause| !cause.is_field_conflict()) {
            cause.message = values.hide(&cause.message);
        }
    }

    /// Returns whether the user lacks the permission. The words of the message decide, because webhooks and quotas
    /// answer with the same code (403) and reason.
    pub fn is_denied_by_authorization(&self) -> bool {
        self.message.contains(DENIED_BY_AUTHORIZATION)
    }

    /// Returns whether an admission policy or webhook denies the request, by the words of the message. It would deny
    /// the same request again.
    pub fn is_denied_by_admission(&self) -> bool {
        DENIED_BY_ADMISSION
            .iter()
            .any(|words| self.message.contains(words))
    }

    /// Returns whether fields belong to another field manager.
    pub fn is_field_conflict(&self) -> bool {
        self.field_conflicts().next().is_some()
    }

    /// Returns the fields that belong to other field managers.
    pub fn field_conflicts(&self) -> impl Iterator<Item = &StatusCause> {
        self.details
            .causes
            .iter()
            .filter(|cause| cause.is_field_conflict())
    }

    /// Returns the fields at fault. A cause with the field `<nil>` is left out: the server adds it to say that it has
    /// not checked all rules.
    pub fn causes_with_field(&self) -> impl Iterator<Item = &StatusCause> {
        self.details.causes.iter().filter(|cause| cause.field != "<nil>")
    }

    /// Returns the message. If it lists several fields at fault, returns a message with one detail for each field
    /// instead.
    pub fn explain(&self) -> Message {
        if self.reason != "Invalid" || self.details.causes.len() < 2 {
            return self.group_if_cause_is_shared(Message::new(self.to_string()));
        }
        let causes = self.causes_with_field();
        Message::new("invalid fields")
            .with_details(causes.map(|cause| format!("{}: {}", cause.field, join_lines(&cause.message))))
    }

    /// Puts a message about one object into the group of messages with the same cause, if that cause probably concerns
    /// other objects, too.
    pub(super) fn group_if_cause_is_shared(&self, message: Message) -> Message {
        let is_namespace_missing = self.reason == "NotFound" && self.message.starts_with("namespaces \"");
        match self.message.split_once(DENIED_BY_AUTHORIZATION) {
            Some((_, denied)) => message.in_group(format!("forbidden: User {denied}")),
            None if is_namespace_missing || UnreachableWebhook::from_status(self).is_some() => {
                message.in_group(self.to_string())
            }
            None => message,
        }
    }
}

impl fmt::Display for Status {
    /// The message on one line: admission webhooks answer with whole paragraphs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join_lines(&self.message))
    }
}

/// Joins the lines of a text by blanks.
fn join_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// `metav1.StatusDetails`.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusDetails {
    /// Name of the object; empty if the path itself is unknown to the server.
    pub name: String,
    /// One entry for each field at fault.
    pub causes: Vec<StatusCause>,
}

/// `metav1.StatusCause`.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct StatusCause {
    /// Machine-readable reason, such as `FieldManagerConflict`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// The field, in the path syntax of the server.
    pub field: String,
}

impl StatusCause {
    /// The reason of a field that belongs to another field manager.
    pub const FIELD_CONFLICT: &str = "FieldManagerConflict";

    /// Returns whether the field belongs to another field manager.
    pub fn is_field_conflict(&self) -> bool {
        self.reason == Self::FIELD_CONFLICT
    }

    /// Returns the manager that owns a field in conflict as the server writes it: in quotes, and with the subresource
    /// through which it wrote the field. The message is `conflict with OWNER using VERSION` if the manager has updated
    /// the field, and `conflict with OWNER` if it has applied it.
    pub fn owner_as_written(&self) -> &str {
        let owner = self
            .message
            .strip_prefix("conflict with ")
            .unwrap_or(&self.message);
        owner
            .split_once("\" using ")
            .map_or(owner, |(name, _)| &owner[..=name.len()])
    }

    /// Returns the name of the manager that owns a field in conflict; `None` if it cannot be read.
    pub fn manager(&self) -> Option<String> {
        let quoted = self.message.strip_prefix("conflict with ")?;
        Deserializer::from_str(quoted).into_iter().next()?.ok()
    }

    /// Returns whether the owner of a field in conflict has applied it, and not updated it.
    pub fn is_applied_by_owner(&self) -> bool {
        self.manager().is_some() && !self.message.contains("\" using ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_field_is_read_from_the_message_of_a_conflict() {
        for (message, owner, manager, is_applied) in [
            ("conflict with \"helm\"", "\"helm\"", Some("helm"), true),
            ("conflict with \"ci\" using apps/v1", "\"ci\"", Some("ci"), false),
            (
                "conflict with \"kcm\" with subresource \"scale\" using apps/v1 at 2026-01-01T00:00:00Z",
                "\"kcm\" with subresource \"scale\"",
                Some("kcm"),
                false,
            ),
            (
                "conflict with \"deploy using x\" using v1",
                "\"deploy using x\"",
                Some("deploy using x"),
                false,
            ),
            (
                "conflict with \"say \\\"hi\\\"\"",
                "\"say \\\"hi\\\"\"",
                Some("say \"hi\""),
                true,
            ),
            ("something else", "something else", None, false),
            ("", "", None, false),
        ] {
            let cause = StatusCause {
                message: message.to_owned(),
                ..StatusCause::default()
            };
            let read = (
                cause.owner_as_written(),
                cause.manager(),
                cause.is_applied_by_owner(),
            );
            assert_eq!(read, (owner, manager.map(str::to_owned), is_applied), "{message}");
        }
    }
}
