//! Objects that existed when they were applied, and were not members: what each was right before.
//!
//! An apply over the version that was read shows it. After an apply without a version, the object is read in the
//! version before the write, which the server still has.

use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiErrorKind, query};
use crate::event::Action;
use crate::execute::Execution;
use crate::execute::members::apply::{MemberReply, written};
use crate::execute::members::apply_as_read::{AppliedAs, Expected};
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::message::Message;
use crate::plan::{LiveMembership, Risk};
use crate::read::METADATA_LIST;

/// The set of an object right before it was written.
#[derive(Debug, PartialEq, Eq)]
enum Before {
    /// It did not exist.
    Absent,
    /// It was a member of this set.
    InThisSet,
    /// It existed, and was not in a set.
    InNoSet,
    /// It was a member of the set with this id.
    OfSet(String),
}

impl Execution<'_> {
    /// Turns the outcome into a failure if the object belonged to another set when it was applied, and marks it if it
    /// was in no set.
    pub(super) async fn judge_existing(
        &self,
        object: &DesiredObject,
        applied: &AppliedAs,
        reply: &mut MemberReply,
    ) {
        let is_saved = self.plan.preconditions.for_object(&object.key).lock().is_some();
        let may_take = self.policy.take_ownership == Risk::Allowed;
        let before = match (&applied.membership, &applied.expected) {
            (LiveMembership::OfAnotherSet | LiveMembership::Terminating, _)
            | (LiveMembership::Member { .. }, Expected::Version(_)) => return,
            (LiveMembership::Member { .. }, _) if is_saved || may_take => return,
            (LiveMembership::NotAMember, Expected::Version(_)) => Ok(Before::InNoSet),
            (LiveMembership::NotAMember, _) if is_saved || may_take => Ok(Before::InNoSet),
            (LiveMembership::Member { .. } | LiveMembership::NotAMember, _) => {
                let Ok(written) = written(&applied.reply) else {
                    return;
                };
                let (uid, version) = (written.metadata.uid, written.metadata.resource_version);
                self.before_write(object, &uid, &version).await
            }
        };
        let error = match before {
            Ok(Before::Absent | Before::InThisSet) => return,
            // An object that this run created while an answer was lost did not exist before.
            Ok(Before::InNoSet) if reply.outcome.action == Action::Created => return,
            Ok(Before::InNoSet) => {
                return self.mark_taken_in(object, &applied.reply, &mut reply.outcome);
            }
            Ok(Before::OfSet(id)) => taken_from(&id),
            Err(error) => unknown(&error.kind),
        };
        reply.outcome.action = Action::Failed;
        reply.outcome.error = Some(error.into());
    }

    /// Reads the object as it was right before it was written. `version` is the one after the write.
    ///
    /// # Errors
    ///
    /// The server cannot return that version, because it is compacted or invalid.
    async fn before_write(
        &self,
        object: &DesiredObject,
        uid: &str,
        version: &str,
    ) -> Result<Before, ApiError> {
        let collection = object.resource.path(object.key.namespace.as_deref(), None);
        let Some(version) = version_before(version) else {
            let reason = format!("resourceVersion {version:?} is not a number");
            return Err(ApiError::unreadable(collection, reason));
        };
        let path = format!(
            "{collection}?{}",
            query(&[
                ("fieldSelector", &format!("metadata.name={}", object.key.name)),
                ("resourceVersion", &version.to_string()),
                ("resourceVersionMatch", "Exact"),
            ])
        );
        let reply = self.server.get(&path, METADATA_LIST).await?;
        let list = reply.json_or_null();
        let items = match &list["items"] {
            Value::Array(items) => items.as_slice(),
            // Go writes an empty slice as null.
            Value::Null if list["metadata"]["resourceVersion"].is_string() => &[],
            _ => return Err(ApiError::unreadable(path, "it is not a list")),
        };
        let mut found = items.iter().map(|item| &item["metadata"]);
        let Some(metadata) = found.find(|metadata| metadata["uid"] == *uid) else {
            return Ok(Before::Absent);
        };
        Ok(match metadata["labels"][PART_OF_LABEL].as_str() {
            None => Before::InNoSet,
            Some(id) if id == self.set.id.as_str() => Before::InThisSet,
            Some(id) => Before::OfSet(id.to_owned()),
        })
    }
}

/// Returns the version right before a write: a resourceVersion is the number of the change in the
/// store. `None` if it is not a number.
fn version_before(version: &str) -> Option<u64> {
    version.parse::<u64>().ok()?.checked_sub(1)
}

/// The error of an object that was taken from the set with this id.
fn taken_from(id: &str) -> Message {
    Message::new(format!(
        "taken from another set ({id}), which added it during this run"
    ))
    .with_hint("remove it from the manifests of one of the two sets, then apply both")
}

/// The error of an object that was applied and may have been a member of another set before.
fn unknown(error: &ApiErrorKind) -> Message {
    Message::new(format!("it may belong to another set: {error}")).with_hint(AGAIN)
}

const AGAIN: &str = "run the same command again";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_before_a_write_is_that_of_the_change_before_it() {
        for (version, before) in [("8", Some(7)), ("0", None), ("", None), ("abc", None)] {
            assert_eq!(version_before(version), before, "{version}");
        }
    }
}
