//! Objects that existed although the plan expected them to be new: determines their set right before
//! this run wrote them.
//!
//! A watch by the part-of label that begins before the first of these writes shows each of them: as
//! ADDED if the object had no such label before the write, else as MODIFIED. That is one request for
//! each kind and namespace. Objects that the watch shows as MODIFIED or not at all are read one by one,
//! in the version before the write, which the server still has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster::apiserver::{ApiError, ApiErrorKind, Change, query};
use crate::event::Action;
use crate::execute::Execution;
use crate::execute::members::apply::MemberReply;
use crate::execute::members::taken_by_concurrent_run;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::message::Message;
use crate::plan::TakeOwnership;
use crate::read::{self, ListTarget, ListTargets, METADATA, METADATA_LIST, Selector};

/// Time limit for a watch to show completed writes; usually it takes milliseconds.
const WATCHED: Duration = Duration::from_secs(5);
/// The additional time for the network.
const ON_THE_WAY: Duration = Duration::from_secs(2);

/// An object that existed when it was written.
#[derive(Debug, Clone, Copy)]
struct ExistingObject<'a> {
    object: &'a DesiredObject,
    uid: &'a str,
    /// The version after the write.
    version: &'a str,
}

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
    /// Makes failures of those replies whose objects were another set's when they were written, and
    /// marks those that were in no set. Each reply comes with the index of its object, and the version
    /// after the write.
    pub(crate) async fn judge_found(&self, replies: &mut [(usize, MemberReply)]) {
        if self.policy.take_ownership == TakeOwnership::Allowed {
            // Their sets are not read; when the plan was made they were not in a set.
            for (_, reply) in replies {
                self.judge_before(Before::InNoSet, reply);
            }
            return;
        }
        let mut befores = {
            let found: Vec<ExistingObject> = replies
                .iter()
                .filter_map(|(index, reply)| {
                    Some(ExistingObject {
                        object: &self.desired.members[*index],
                        uid: reply.outcome.subject.uid.as_deref()?,
                        version: &reply.found.as_ref()?.version,
                    })
                })
                .collect();
            self.befores(&found).await
        };
        for (index, reply) in replies {
            match befores.remove(&self.desired.members[*index].key) {
                None => self.judge_before(Before::InNoSet, reply),
                Some(Ok(before)) => self.judge_before(before, reply),
                Some(Err(error)) => fail(reply, taken_by_concurrent_run::unknown(&error.kind)),
            }
        }
    }

    fn judge_before(&self, before: Before, reply: &mut MemberReply) {
        match (before, &reply.found) {
            // An object that this run created while an answer was lost did not exist before.
            (Before::InNoSet, Some(found))
                if !matches!(reply.outcome.action, Action::Created | Action::Recreated) =>
            {
                self.mark_taken_in(found, &mut reply.outcome);
            }
            (Before::Absent | Before::InThisSet | Before::InNoSet, _) => {}
            (Before::OfSet(id), _) => fail(reply, taken_by_concurrent_run::taken_from(&id)),
        }
    }

    /// Determines the sets of the objects, except those that a watch shows to have been in no set.
    async fn befores(&self, found: &[ExistingObject<'_>]) -> BTreeMap<ObjectKey, Result<Before, ApiError>> {
        let mut kinds: BTreeMap<&GroupKind, Vec<ExistingObject>> = BTreeMap::new();
        for one in found {
            kinds.entry(&one.object.key.group_kind).or_default().push(*one);
        }
        // A single object takes one request in any case.
        let many = kinds.values().filter(|found| found.len() > 1);
        let watched = stream::iter(many.flat_map(|found| places(found)))
            .map(|(place, found)| async move { free(self, &place, &found).await })
            .buffer_unordered(self.writing.concurrency);
        let free: BTreeSet<ObjectKey> = watched.map(stream::iter).flatten().collect().await;
        let left = found.iter().filter(|one| !free.contains(&one.object.key));
        stream::iter(left)
            .map(|one| async { (one.object.key.clone(), self.before_write(*one).await) })
            .buffer_unordered(self.writing.concurrency)
            .collect()
            .await
    }

    /// Reads the object as it was right before it was written.
    ///
    /// # Errors
    ///
    /// The server cannot return that version, because it is compacted or invalid.
    async fn before_write(&self, found: ExistingObject<'_>) -> Result<Before, ApiError> {
        let ExistingObject { object, uid, version } = found;
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
        let list: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
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

fn fail(reply: &mut MemberReply, error: Message) {
    reply.outcome.action = Action::Failed;
    reply.outcome.error = Some(error.into());
}

/// Returns the version right before a write: a resourceVersion is the number of the change in the
/// store. `None` if it is not a number.
fn version_before(version: &str) -> Option<u64> {
    version.parse::<u64>().ok()?.checked_sub(1)
}

/// Divides objects of one kind among the collections that show them all.
fn places<'a>(found: &[ExistingObject<'a>]) -> Vec<(ListTarget, Vec<ExistingObject<'a>>)> {
    let mut places = ListTargets::default();
    for one in found {
        places.add_resources([Arc::clone(&one.object.resource)]);
        places.namespaces.extend(one.object.key.namespace.clone());
    }
    let collections = places.lists(places.cheapest_reach()).into_iter();
    let divided = collections.map(|place| {
        let is_inside =
            |one: &&ExistingObject| place.namespace.is_none() || place.namespace == one.object.key.namespace;
        let inside = found.iter().filter(is_inside).copied().collect();
        (place, inside)
    });
    divided.collect()
}

/// Returns those objects of one collection that a watch shows to have been in no set. If the watch
/// fails, the others remain undetermined.
async fn free(run: &Execution<'_>, place: &ListTarget, found: &[ExistingObject<'_>]) -> Vec<ObjectKey> {
    let mut seen = Vec::new();
    let _ = timeout(WATCHED + ON_THE_WAY, look(run, place, found, &mut seen)).await;
    seen
}

async fn look(
    run: &Execution<'_>,
    place: &ListTarget,
    found: &[ExistingObject<'_>],
    seen: &mut Vec<ObjectKey>,
) -> Result<(), ApiErrorKind> {
    let mut left: BTreeMap<(String, String), &ObjectKey> = found
        .iter()
        .map(|one| ((one.uid.to_owned(), one.version.to_owned()), &one.object.key))
        .collect();
    let versions = found.iter().filter_map(|one| version_before(one.version));
    let Some(first) = versions.min() else {
        return Ok(());
    };
    let selector = Selector {
        labels: PART_OF_LABEL.to_owned(),
        accept: METADATA,
    };
    let watch = read::changes(run.server, place, &selector, &first.to_string(), WATCHED).await;
    let mut watch = watch.map_err(|error| *error.kind)?;
    while let Some(event) = watch.next().await {
        let event = event?;
        let text = |field: &str| {
            event.object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let Some(key) = left.remove(&(text("uid"), text("resourceVersion"))) else {
            continue;
        };
        if event.change == Change::Added {
            seen.push(key.clone());
        }
        if left.is_empty() {
            break;
        }
    }
    Ok(())
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
