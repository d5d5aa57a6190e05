//! Finds out to which set an object belonged right before it was applied: it may have been taken from another set, or
//! taken in from no set.
//!
//! If the apply carried the version that the run has read, the membership that was read still counts. After an apply
//! without a version, the run reads the object once more, in its state right before the write: the server keeps that
//! state for some minutes.

use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiErrorKind, encode_query};
use crate::event::Action;
use crate::execute::Execution;
use crate::execute::members::apply::MemberReply;
use crate::execute::members::apply_as_read::{AppliedAs, Expected};
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::message::Message;
use crate::plan::{LiveMembership, Risk, Seen};
use crate::read::METADATA_LIST;

const HINT: &str = "run the same command again";

/// The membership of an object right before it was written.
#[derive(Debug, PartialEq, Eq)]
enum FormerMembership {
    /// The object did not exist.
    Absent,
    /// The object was a member of this set.
    ThisSet,
    /// The object existed, and was in no set.
    NoSet,
    /// The object was a member of the set with this id.
    OtherSet(String),
}

impl Execution<'_> {
    /// Turns the outcome into a failure if the object belonged to another set when it was applied, and marks the
    /// outcome as taken in if the object was in no set.
    pub(super) async fn correct_outcome_by_former_membership(
        &self,
        object: &DesiredObject,
        applied: &AppliedAs,
        reply: &mut MemberReply,
    ) {
        // If the apply carried a version, which the run has read or a saved plan has, the object was still as it was
        // judged. If the user allows the run to take objects from other sets, it may have taken this one from any set.
        let may_take = self.policy.take_ownership == Risk::Allowed;
        let is_judged = matches!(applied.expected, Expected::Version(_)) || may_take;
        let before = match &applied.membership {
            LiveMembership::OfAnotherSet { .. } | LiveMembership::Terminating => return,
            LiveMembership::Member { .. } if is_judged => return,
            LiveMembership::NotAMember if is_judged => Ok(FormerMembership::NoSet),
            LiveMembership::Member { .. } | LiveMembership::NotAMember => {
                let written = Seen::from_uid_and_version(&applied.reply.json_or_null());
                self.read_former_membership(object, &written).await
            }
        };
        let error = match before {
            Ok(FormerMembership::Absent | FormerMembership::ThisSet) => return,
            // An earlier attempt of this run has created the object, and its answer was lost.
            Ok(FormerMembership::NoSet) if reply.outcome.action == Action::Created => return,
            Ok(FormerMembership::NoSet) => {
                return self.mark_taken_in_or_failed(object, &applied.reply, &mut reply.outcome);
            }
            Ok(FormerMembership::OtherSet(id)) => error_of_object_taken_from_set(&id),
            // The object may have been taken from another set, so it fails.
            Err(error) => error_of_unknown_membership(&error.kind),
        };
        reply.outcome.fail(error);
    }

    /// Reads to which set an object belonged right before it was `written`.
    ///
    /// # Errors
    ///
    /// The server cannot return that version, because it is compacted or invalid.
    async fn read_former_membership(
        &self,
        object: &DesiredObject,
        written: &Seen,
    ) -> Result<FormerMembership, ApiError> {
        let collection = object.resource.path(object.key.namespace.as_deref(), None);
        let Some(version_before) = version_before(&written.resource_version) else {
            let reason = format!("resourceVersion {:?} is not a number", written.resource_version);
            return Err(ApiError::for_invalid_answer(collection, reason));
        };
        let path = format!(
            "{collection}?{}",
            encode_query(&[
                ("fieldSelector", &format!("metadata.name={}", object.key.name)),
                ("resourceVersion", &version_before.to_string()),
                ("resourceVersionMatch", "Exact"),
            ])
        );
        let reply = self.server.get(&path, METADATA_LIST).await?;
        let list = reply.json_or_null();
        let items = match &list["items"] {
            Value::Array(items) => items.as_slice(),
            // Go writes an empty slice as null.
            Value::Null if list["metadata"]["resourceVersion"].is_string() => &[],
            _ => return Err(ApiError::for_invalid_answer(path, "it is not a list")),
        };
        let mut found = items.iter().map(|item| &item["metadata"]);
        let Some(metadata) = found.find(|metadata| metadata["uid"] == *written.uid) else {
            return Ok(FormerMembership::Absent);
        };
        Ok(match metadata["labels"][PART_OF_LABEL].as_str() {
            None => FormerMembership::NoSet,
            Some(id) if id == self.set.id.as_str() => FormerMembership::ThisSet,
            Some(id) => FormerMembership::OtherSet(id.to_owned()),
        })
    }
}

/// Returns the version right before the write that made `version`; `None` if `version` is not a number. A
/// resourceVersion is the number of a change in etcd, which counts the changes of all objects.
fn version_before(version: &str) -> Option<u64> {
    version.parse::<u64>().ok()?.checked_sub(1)
}

/// Returns the error of an object that was taken from the set with this id.
fn error_of_object_taken_from_set(id: &str) -> Message {
    Message::new(format!(
        "taken from another set ({id}), which added it during this run"
    ))
    .with_hint("remove it from the manifests of one of the two sets, then apply both")
}

/// Returns the error of an object that was applied and may have been a member of another set before.
fn error_of_unknown_membership(error: &ApiErrorKind) -> Message {
    Message::new(format!("it may belong to another set: {error}")).with_hint(HINT)
}

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
