//! Reads single objects: those without the set's label, and those that may have lost it.

use serde_json::Value;

use super::follow::{Follow, Group};
use super::{Lookup, ObservedStatus, Target};
use crate::compare::status::OthersOfKind;
use crate::read::{self, WHOLE_OBJECTS};

impl Follow<'_> {
    /// Reads one object by its name. `others` says whether other objects of its kind have a status.
    pub(super) async fn read_object(&self, target: &Target, others: OthersOfKind) -> ObservedStatus {
        let key = &target.key;
        let path = target.resource.path_of(key);
        match self.server.get(&path, WHOLE_OBJECTS).await {
            Ok(reply) => match reply.json::<Value>() {
                Ok(object) => self.judge_object(&object, target, others),
                Err(error) => ObservedStatus::Unread(error.to_string()),
            },
            Err(error) => match read::is_absent(self.server, &target.resource, &error).await {
                Ok(true) => ObservedStatus::Absent,
                Ok(false) | Err(_) => ObservedStatus::Unread(error.kind.to_string()),
            },
        }
    }

    /// Returns the status of an object that a list or watch by the set's label does not show. It may have lost the
    /// label while it is being deleted, and then still exists.
    pub(super) async fn read_without_label(&self, group: &Group, target: &Target) -> ObservedStatus {
        match group.lookup {
            Lookup::LabelThenName => self.read_object(target, group.others_of_kind()).await,
            Lookup::Label | Lookup::Name => ObservedStatus::Absent,
        }
    }
}
