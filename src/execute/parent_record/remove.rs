//! Removes the record: deletes the parent, or removes the record from an object that is kept.
//!
//! Both writes have the resourceVersion that was read before the last list of members as their precondition, so they
//! fail if another run has begun since then. If a webhook cannot be called yet, the write is not sent again here:
//! `former_parent` lists the members again before it repeats the write.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::requests::{ParentWriting, is_conflict};
use crate::cluster::apiserver::{ApiError, ApiRequest, Patch};
use crate::event::StateAfterDelete;
use crate::execute::deletion::delete::{delete_request, read_state_after_delete};
use crate::execute::reread::is_answer_about;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::applyset::{ID_LABEL, PART_OF_LABEL};
use crate::model::expiry::is_own_key;
use crate::model::live::{Live, Presence};
use crate::model::set::ParentObject;
use crate::model::write_settings::DryRun;
use crate::read::METADATA;

/// State of the parent after its deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletedParent {
    /// This run has deleted the parent, and it is gone.
    Gone,
    /// The parent was gone before this run's DELETE: another client had deleted it.
    GoneBefore,
    /// This run has deleted the parent, and finalizers hold it.
    Terminating,
    /// Another client had deleted the parent, and finalizers hold it.
    TerminatingBefore,
}

impl ParentWriting<'_> {
    /// Deletes the parent as it was read; returns `None`, and deletes nothing, if the parent has changed since.
    pub async fn delete_if_unchanged(&self, live: &Live) -> Result<Option<DeletedParent>, ApiError> {
        if live.presence == Presence::Terminating {
            return Ok(Some(DeletedParent::TerminatingBefore));
        }
        let server = self.server.for_lease_writes();
        match server.send(delete_request(live, DryRun::None)).await {
            Ok(reply) if is_answer_about(&reply, live) => {
                Ok(Some(match read_state_after_delete(&reply, live) {
                    StateAfterDelete::Nothing => DeletedParent::Gone,
                    StateAfterDelete::HeldByFinalizers | StateAfterDelete::Unknown => {
                        DeletedParent::Terminating
                    }
                }))
            }
            // The answer is about another object, so the caller reads the parent again.
            Ok(_) => Ok(None),
            Err(error) if error.is_missing_object() => Ok(Some(DeletedParent::GoneBefore)),
            Err(error) if error.has_status_code(StatusCode::CONFLICT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the record from the parent as it was read. Also removes a part-of label with the set's own id, because
    /// kubectl labels a parent that is among its manifests as a member of the set. Removes nothing else. Returns
    /// `false` if the parent has changed since it was read, or is gone.
    pub async fn remove_record_if_unchanged(&self, parent: &ParentObject) -> Result<bool, ApiError> {
        let annotations = parent.annotations.keys().map(String::as_str);
        let is_member_of_itself = parent.part_of.as_deref() == Some(self.set.id.as_str());
        let part_of_label = is_member_of_itself.then_some(PART_OF_LABEL);
        let patch = json!({"metadata": {
            "uid": parent.uid,
            "resourceVersion": parent.resource_version,
            "labels": nulls([ID_LABEL].into_iter().chain(part_of_label)),
            "annotations": nulls(annotations.filter(|key| is_applyset_key(key) || is_own_key(key))),
        }});
        let path = self.resource.path_of(&self.set.parent);
        let parameters = [("fieldManager", self.field_manager_of_record())];
        let request = ApiRequest::patch(&path, &parameters, METADATA, Patch::Merge, patch.to_string());
        match self.server.for_lease_writes().send(request).await {
            Ok(_) => Ok(true),
            Err(error) if is_conflict(&error) || error.has_status_code(StatusCode::NOT_FOUND) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Returns an object in which each of these keys is null: in a merge patch, that removes the key.
fn nulls<'k>(keys: impl Iterator<Item = &'k str>) -> Map<String, Value> {
    keys.map(|key| (key.to_owned(), Value::Null)).collect()
}
