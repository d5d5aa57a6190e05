//! Removes the record: deletes the parent, or removes the record from an object that is kept. Both have the version
//! that was read before the last list as their precondition, so no run has begun since then. While another run is
//! under way, nothing is removed. A write whose webhook is still starting is not sent again here, but after another
//! look: see `former_parent`.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::requests::{ParentWriting, is_overtaken};
use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply};
use crate::execute::deletion::delete::delete_request;
use crate::execute::reread::is_of;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::applyset::{ID_LABEL, PART_OF_LABEL};
use crate::model::history_annotation::HISTORY_ANNOTATION;
use crate::model::live::{Live, Presence};
use crate::model::set::ParentObject;
use crate::model::write_settings::DryRun;
use crate::read::METADATA;

/// State of the parent after the write that deleted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentLeft {
    /// Nothing is left of it.
    Nothing,
    /// Another client had deleted it.
    NothingBefore,
    /// It is deleted, and finalizers hold it.
    Terminating,
    /// Another client had deleted it, and finalizers hold it.
    TerminatingBefore,
}

impl ParentWriting<'_> {
    /// Deletes the parent as it was read; `None` if it has changed.
    pub async fn delete(&self, live: &Live) -> Result<Option<ParentLeft>, ApiError> {
        if live.presence == Presence::Terminating {
            return Ok(Some(ParentLeft::TerminatingBefore));
        }
        let server = self.server.beside_lease();
        match server.send(delete_request(live, DryRun::None)).await {
            Ok(reply) if is_of(&reply, live) && is_gone(&reply) => Ok(Some(ParentLeft::Nothing)),
            Ok(reply) if is_of(&reply, live) => Ok(Some(ParentLeft::Terminating)),
            Ok(_) => Ok(None),
            Err(error) if error.is_missing_object() => Ok(Some(ParentLeft::NothingBefore)),
            Err(error) if error.is(StatusCode::CONFLICT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the record from the parent as it was read, and keeps the rest of it. kubectl labels a
    /// parent that is among its manifests into its own set; that label goes, too. Returns
    /// false if the parent has changed, or is gone.
    pub async fn take_off(&self, parent: &ParentObject) -> Result<bool, ApiError> {
        let removed = |keys: &mut dyn Iterator<Item = &str>| -> Value {
            keys.map(|key| (key.to_owned(), Value::Null))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let annotations = parent.annotations.keys().map(String::as_str);
        let is_own = parent.part_of.as_deref() == Some(self.set.id.as_str());
        let own_label = is_own.then_some(PART_OF_LABEL);
        let patch = json!({"metadata": {
            "uid": parent.uid,
            "resourceVersion": parent.resource_version,
            "labels": removed(&mut [ID_LABEL].into_iter().chain(own_label)),
            "annotations": removed(&mut annotations.filter(|key| is_applyset_key(key) || *key == HISTORY_ANNOTATION)),
        }});
        let path = self.resource.path_of(&self.set.parent);
        let parameters = [("fieldManager", self.field_manager())];
        let body = Bytes::from(patch.to_string());
        let request = ApiRequest::patch(&path, &parameters, METADATA, Patch::Merge, body);
        match self.server.beside_lease().send(request).await {
            Ok(_) => Ok(true),
            Err(error) if is_overtaken(&error) || error.is(StatusCode::NOT_FOUND) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether the answer to a delete says that nothing is left of the object. One that
/// finalizers hold is answered with the object.
fn is_gone(reply: &Reply) -> bool {
    let answer = reply.json_or_null();
    answer["kind"] == "Status"
}
