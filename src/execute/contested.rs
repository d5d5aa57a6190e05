//! Objects that this run and that of another set took at the same time.
//!
//! Two runs can both list an object as a member of no set, and then both apply it. They have one
//! field manager, so neither conflicts with the other, and the part-of label is that of the later
//! one. Its apply is answered 200 instead of 201. So is the apply of an object that was there
//! before and in no set; which of both it was tells the object as it was right before the write,
//! which the server still has. One LIST of one object reads that, and only after such an answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::member::WrittenMetadata;
use super::{Execution, Sink};
use crate::apiserver::{ApiError, ApiErrorKind, query};
use crate::applyset::PART_OF_LABEL;
use crate::desired::DesiredObject;
use crate::event::Event;
use crate::identity::ObjectKey;
use crate::message::Message;
use crate::observe::{self, Live, METADATA_LIST, Places, Selector};

/// Whose an object was right before it was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// It was in no set, in this one, or not there.
    Free,
    /// It was a member of the set with this id.
    OfSet(String),
}

impl Execution<'_> {
    /// Reads the object as it was before the write that was answered with `written`.
    ///
    /// # Errors
    ///
    /// The server does not say, because that version is gone or was never one.
    pub(super) async fn before_write(
        &self,
        object: &DesiredObject,
        written: &WrittenMetadata,
    ) -> Result<Before, ApiError> {
        let collection = object.resource.path(object.key.namespace.as_deref(), None);
        // A resourceVersion is the number of the change in the store, so the one before it
        // is the state in which the write found everything.
        let version = written.resource_version.parse::<u64>().ok();
        let Some(version) = version.and_then(|version| version.checked_sub(1)) else {
            let reason = format!(
                "its resourceVersion {:?} is not a number",
                written.resource_version
            );
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
        let part_of = items.iter().find_map(|item| {
            let metadata = item
                .get("metadata")
                .filter(|metadata| metadata["uid"] == written.uid)?;
            metadata["labels"][PART_OF_LABEL].as_str()
        });
        Ok(match part_of {
            Some(id) if id != self.set.id.as_str() => Before::OfSet(id.to_owned()),
            _ => Before::Free,
        })
    }

    /// Reports the objects among `found` that the run of another set has taken since this run
    /// applied them, and returns how many there are. One LIST for each kind and place.
    ///
    /// `found` are members that were there, and in no set, when this run applied them.
    pub(super) async fn report_taken(&self, found: &BTreeSet<ObjectKey>, sink: &mut Sink<'_>) -> usize {
        if found.is_empty() || self.interrupt.is_requested() {
            return 0;
        }
        let mut places = Places::default();
        let objects = self.desired.members.iter();
        for object in objects.filter(|object| found.contains(&object.key)) {
            places.add_resources([Arc::clone(&object.resource)]);
            places.namespaces.extend(object.key.namespace.clone());
        }
        let selector = Selector {
            labels: format!("{PART_OF_LABEL},{PART_OF_LABEL}!={}", self.set.id),
            accept: METADATA_LIST,
        };
        let concurrency = self.writing.concurrency;
        match observe::members(self.server, &places, &selector, concurrency, Live::of).await {
            Ok(others) => {
                let taken = others.iter().filter(|live| found.contains(&live.key));
                let mut count = 0;
                for live in taken {
                    count += 1;
                    let id = live.part_of.as_deref().unwrap_or_default();
                    sink(Event::failure(format!(
                        "{}: another set ({id}) took it after this run applied it",
                        live.key
                    )));
                }
                count
            }
            Err((place, error)) => {
                let plural = &place.resource.plural;
                let text = format!("{plural}: cannot tell whether another set took any of them: {error}");
                sink(Event::failure(Message::new(text).with_hint(AGAIN)));
                1
            }
        }
    }
}

/// The error of an object that was taken from the set with this id.
pub(super) fn taken_from(id: &str) -> Message {
    Message::new(format!(
        "it became a member of another set ({id}) while this run was applying it, and this run took it"
    ))
    .with_hint("keep it in the manifests of only one of the two sets, then apply both")
}

/// The error of an object that was applied and may have been a member of another set before.
pub(super) fn unknown(error: &ApiErrorKind) -> Message {
    Message::new(format!(
        "cannot tell whether it was a member of another set: {error}"
    ))
    .with_hint(AGAIN)
}

const AGAIN: &str = "run the same command again";
