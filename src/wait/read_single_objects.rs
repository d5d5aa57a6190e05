//! Reads single objects: those without the set's label, and those that may have lost it.

use std::sync::Arc;

use http::StatusCode;

use super::follow::Follow;
use super::{Lookup, ObservedStatus, Target};
use crate::compare::status::OthersOfKind;
use crate::read::{self, ListTarget, Selector, WHOLE_OBJECTS};

impl Follow<'_> {
    /// Reads one object by its name. `others` says whether other objects of its kind have a status.
    pub(super) async fn read_object(&self, target: &Target, others: OthersOfKind) -> ObservedStatus {
        match read::read_object(self.waiting.server, &target.resource, &target.key).await {
            Ok(Some(object)) => self.judge_object(&object, target, others),
            Ok(None) => ObservedStatus::Absent,
            Err(error)
                if error.has_status_code(StatusCode::NOT_FOUND) && target.lookup == Lookup::LabelThenName =>
            {
                self.find_in_served_version(target, others).await
            }
            Err(error) => ObservedStatus::Unread(error.kind.to_string()),
        }
    }

    /// Looks for an object whose path the server does not know in the version in which it serves the kind now.
    async fn find_in_served_version(&self, target: &Target, others: OthersOfKind) -> ObservedStatus {
        let place = ListTarget {
            resource: Arc::clone(&target.resource),
            namespace: target.key.namespace.clone(),
        };
        let selector = Selector::new("", WHOLE_OBJECTS);
        let listed = read::list_in_served_version(self.waiting.server, &place, &selector, |object, _| {
            let is_target = object["metadata"]["name"] == *target.key.name;
            is_target.then(|| self.judge_object(object, target, others))
        });
        match listed.await {
            Ok(found) => found.into_iter().next().unwrap_or(ObservedStatus::Absent),
            Err(error) => ObservedStatus::Unread(error.to_string()),
        }
    }
}
