//! Objects that this run and that of another set took at the same time.
//!
//! Two runs can both list an object as a member of no set, and then both apply it. They have one
//! field manager, so neither conflicts with the other, and the part-of label is that of the later
//! one. Its apply is answered 200 instead of 201. So is the apply of an object that was there
//! before and in no set; `existing_despite_plan` distinguishes the two.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::apiserver::ApiErrorKind;
use crate::event::Event;
use crate::execute::{Execution, Sink};
use crate::model::applyset::PART_OF_LABEL;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::read::{self, ListTargets, METADATA_LIST, Selector};

impl Execution<'_> {
    /// Reports the objects among `found` that the run of another set has taken since this run
    /// applied them, and returns how many there are. One LIST for each kind and place.
    ///
    /// `found` are members that existed outside of any set when this run applied them.
    pub(crate) async fn report_taken(&self, found: &BTreeSet<ObjectKey>, sink: &mut Sink<'_>) -> usize {
        if found.is_empty() || self.interrupt.is_requested() {
            return 0;
        }
        let mut places = ListTargets::default();
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
        match read::members(self.server, &places, &selector, concurrency, Live::from_object).await {
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
                let text = format!("{plural}: another set may have taken some of them: {error}");
                sink(Event::failure(Message::new(text).with_hint(AGAIN)));
                1
            }
        }
    }
}

/// The error of an object that was taken from the set with this id.
pub(crate) fn taken_from(id: &str) -> Message {
    Message::new(format!(
        "taken from another set ({id}), which added it during this run"
    ))
    .with_hint("remove it from the manifests of one of the two sets, then apply both")
}

/// The error of an object that has become a member of the set with this id, and was not applied.
pub(crate) fn joined(id: &str) -> Message {
    Message::new(format!(
        "not applied: it became a member of another set ({id}) during the run"
    ))
    .with_hint("remove it from the manifests of one of the two sets")
}

/// The error of an object that was applied and may have been a member of another set before.
pub(crate) fn unknown(error: &ApiErrorKind) -> Message {
    Message::new(format!("it may belong to another set: {error}")).with_hint(AGAIN)
}

const AGAIN: &str = "run the same command again";
