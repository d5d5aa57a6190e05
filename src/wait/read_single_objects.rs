//! Reads single objects: those without the set's label, and those that may have lost it.

use serde_json::Value;

use super::follow::{Follow, Group};
use super::{Lookup, ObservedStatus, Target};
use crate::compare::status::OthersOfKind;
use crate::model::applyset::PART_OF_LABEL;
use crate::read;

impl Follow<'_> {
    /// Reads one object by its name. `others` says whether other objects of its kind have a status. An object without
    /// the set's label counts as absent if only its label leads to it, as in a list.
    pub(super) async fn read_object(&self, target: &Target, others: OthersOfKind) -> ObservedStatus {
        match read::read_object(self.server, &target.resource, &target.key).await {
            Ok(Some(object)) if target.lookup == Lookup::Label && !self.is_member(&object) => {
                ObservedStatus::Absent
            }
            Ok(Some(object)) => self.judge_object(&object, target, others),
            Ok(None) => ObservedStatus::Absent,
            Err(error) => ObservedStatus::Unread(error.kind.to_string()),
        }
    }

    /// Returns the status of an object that a list or watch by the set's label does not show. It may have lost the
    /// label while it is being deleted, and then still exists.
    pub(super) async fn read_unlisted_object(&self, group: &Group, target: &Target) -> ObservedStatus {
        match group.lookup {
            Lookup::LabelThenName => self.read_object(target, group.others_of_kind()).await,
            Lookup::Label | Lookup::Name => ObservedStatus::Absent,
        }
    }

    fn is_member(&self, object: &Value) -> bool {
        object["metadata"]["labels"][PART_OF_LABEL] == self.id.as_str()
    }
}
