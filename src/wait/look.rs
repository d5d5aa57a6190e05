//! Reads single objects: those without the label of the set, and those that the label does not show any more.

use serde_json::Value;

use super::follow::{Follow, Group};
use super::{ObservedStatus, Path, Target};
use crate::compare::status::Others;
use crate::read::{self, WHOLE_OBJECTS};

impl Follow<'_> {
    /// Reads one object.
    pub(super) async fn read_object(&self, target: &Target, others: Others) -> ObservedStatus {
        let key = &target.key;
        let path = target.resource.path_of(key);
        match self.server.get(&path, WHOLE_OBJECTS).await {
            Ok(reply) => match reply.json::<Value>() {
                Ok(object) => self.observe(&object, target, others),
                Err(error) => ObservedStatus::Unread(error.to_string()),
            },
            Err(error) => match read::is_absent(self.server, &target.resource, &error).await {
                Ok(true) => ObservedStatus::Absent,
                Ok(false) | Err(_) => ObservedStatus::Unread(error.kind.to_string()),
            },
        }
    }

    /// Returns the status of an object that the label does not show. An object that loses its label while it is being
    /// deleted still exists.
    pub(super) async fn status_without_label(&self, group: &Group, target: &Target) -> ObservedStatus {
        match group.path {
            Path::LabelThenName => self.read_object(target, group.others()).await,
            Path::Label | Path::Name => ObservedStatus::Absent,
        }
    }
}
