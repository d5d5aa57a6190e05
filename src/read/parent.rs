//! Reads parents of sets, their CRDs, and the metadata of other single objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::list::{ListError, METADATA_LIST, Selector, WHOLE_OBJECTS, list};
use super::single_objects::{self, unreadable};
use crate::cluster::apiserver::{ApiError, ApiServer, Reply};
use crate::cluster::discovery::null_is_empty;
use crate::compare::ownership;
use crate::model::applyset::parent::{Pairs, ParentIdentity, read_labels_and_annotations};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION, ID_LABEL,
    IS_PARENT_TYPE_LABEL, PART_OF_LABEL,
};
use crate::model::containers::NamespaceState;
use crate::model::history_annotation::History;
use crate::model::list_targets::ListTarget;
use crate::model::live::{Live, OwnerReference, Presence};
use crate::model::resource::{Resource, Scope};
use crate::model::set::ParentObject;

/// The media type of the metadata of one object. The data of a Secret are not part of it.
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The annotations that decide where members are looked for.
const RECORD_ANNOTATIONS: [&str; 3] = [
    GROUP_KINDS_ANNOTATION,
    GROUP_RESOURCES_ANNOTATION,
    ADDITIONAL_NAMESPACES_ANNOTATION,
];

#[derive(Deserialize)]
struct Metadata {
    metadata: ObjectMetadata,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ObjectMetadata {
    #[serde(deserialize_with = "null_is_empty")]
    name: String,
    namespace: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    uid: String,
    #[serde(deserialize_with = "null_is_empty")]
    resource_version: String,
    deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    owner_references: Vec<OwnerReference>,
}

/// Reads the parent; `None` if it does not exist.
pub async fn read_parent(
    server: &ApiServer,
    resource: &Arc<Resource>,
    identity: &ParentIdentity,
) -> Result<Option<ParentObject>, ApiError> {
    let Some(object) = single_objects::read(server, identity, resource, METADATA).await? else {
        return Ok(None);
    };
    let fields = ObjectMetadata::deserialize(&object["metadata"])
        .map_err(|error| unreadable(resource, identity, error.to_string()))?;
    Ok(Some(ParentObject::new(identity, fields, server.now())))
}

/// Reads the parent and its labels from the answer to a write of the parent. `now` is the time by the server's clock.
pub fn parse_parent_answer(
    answer: &Reply,
    identity: &ParentIdentity,
    now: Timestamp,
) -> Result<(ParentObject, Pairs), serde_json::Error> {
    let Metadata { metadata } = answer.json()?;
    let labels = metadata.labels.clone();
    Ok((ParentObject::new(identity, metadata, now), labels))
}

/// The parent with everything that its disposition depends on when its set is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveParent {
    /// The ApplySet metadata of the parent.
    pub object: ParentObject,
    /// The parent as a live object.
    pub live: Live,
    /// Field managers that own fields outside of its metadata.
    pub content_writers: Vec<String>,
    /// Field managers that own the recorded kinds or namespaces.
    pub record_writers: Vec<String>,
}

/// Reads the parent with everything that its disposition depends on; `None` if it does not exist.
pub async fn read_live_parent(
    server: &ApiServer,
    resource: &Arc<Resource>,
    identity: &ParentIdentity,
) -> Result<Option<LiveParent>, ApiError> {
    let Some(object) = single_objects::read(server, identity, resource, METADATA).await? else {
        return Ok(None);
    };
    let fields = ObjectMetadata::deserialize(&object["metadata"])
        .map_err(|error| unreadable(resource, identity, error.to_string()))?;
    let live = Live::from_object(&object, resource)
        .ok_or_else(|| unreadable(resource, identity, "it has no identity".to_owned()))?;
    Ok(Some(LiveParent {
        object: ParentObject::new(identity, fields, server.now()),
        live,
        content_writers: ownership::content_writers(&object["metadata"]),
        record_writers: ownership::annotation_writers(&object["metadata"], &RECORD_ANNOTATIONS),
    }))
}

/// Reads the whole CRD of a custom resource. Returns `None` if there is no CRD, if the user may not read it, or if the
/// answer is not valid: in all three cases, the schema is unknown.
pub async fn read_crd_if_allowed(server: &ApiServer, resource: &Resource) -> Result<Option<Value>, ApiError> {
    match server.get(&crd_path(resource), WHOLE_OBJECTS).await {
        Ok(reply) => Ok(reply.json().ok()),
        Err(error)
            if error.has_status_code(StatusCode::NOT_FOUND)
                || error.has_status_code(StatusCode::FORBIDDEN) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn crd_path(resource: &Resource) -> String {
    Resource::crd_resource().path(None, Some(&resource.crd_name()))
}

/// Lists the objects of these kinds that have an id label, in all namespaces or in `namespace`. Cluster-scoped kinds
/// are left out for one `namespace`. `ParentObject::reading` shows whether such an object is a valid parent.
pub async fn list_parents(
    server: &ApiServer,
    kinds: &[Arc<Resource>],
    namespace: Option<&str>,
) -> Result<Vec<(ParentIdentity, ParentObject)>, (ListTarget, ListError)> {
    let selector = Selector::new(ID_LABEL, METADATA_LIST);
    let mut found = Vec::new();
    for resource in kinds {
        if namespace.is_some() && resource.scope == Scope::Cluster {
            continue;
        }
        let listed = list(server, resource, namespace, &selector, |item| {
            let fields = ObjectMetadata::deserialize(item.get("metadata")?).ok()?;
            let identity = ParentIdentity {
                group_kind: resource.group_kind(),
                namespace: fields.namespace.clone(),
                name: fields.name.clone(),
            };
            Some((
                identity.clone(),
                ParentObject::new(&identity, fields, server.now()),
            ))
        });
        found.extend(
            listed
                .await
                .map_err(|error| (ListTarget::new(resource, namespace), error))?,
        );
    }
    found.sort_by(|(one, _), (other, _)| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    Ok(found)
}

impl ObjectMetadata {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn presence(&self) -> Presence {
        match self.deletion_timestamp {
            Some(_) => Presence::Terminating,
            None => Presence::Present,
        }
    }

    pub(super) fn to_namespace_state(&self) -> NamespaceState {
        NamespaceState {
            uid: Some(self.uid.clone()),
            part_of: self.labels.get(PART_OF_LABEL).cloned(),
            presence: self.presence(),
            owners: self.owner_uids(),
        }
    }

    /// The UIDs of the owners.
    pub(super) fn owner_uids(&self) -> Vec<String> {
        let owners = self.owner_references.iter();
        owners.map(|owner| owner.uid.clone()).collect()
    }
}

impl ParentObject {
    /// Creates the parent from its metadata. `now` is the time by the server's clock.
    pub(super) fn new(identity: &ParentIdentity, fields: ObjectMetadata, now: Timestamp) -> Self {
        let mut history = History::from_annotations(&fields.annotations);
        let abandoned = history.take_abandoned(now);
        Self {
            running: history.other_running("").cloned().collect(),
            abandoned,
            reading: read_labels_and_annotations(identity, &fields.labels, &fields.annotations),
            presence: fields.presence(),
            part_of: fields.labels.get(PART_OF_LABEL).cloned(),
            uid: fields.uid,
            resource_version: fields.resource_version,
            annotations: fields.annotations,
            owners: fields.owner_references,
        }
    }
}

/// The labels of the CRD of a custom resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrdLabels {
    /// The CRD has the label that permits its objects to be parents; any value counts.
    pub is_parent_type: bool,
    /// The set that the CRD is a member of.
    pub part_of: Option<String>,
}

/// Reads the labels of the CRD of a custom resource; `None` if there is no CRD.
pub async fn read_crd_labels(server: &ApiServer, resource: &Resource) -> Result<Option<CrdLabels>, ApiError> {
    let fields = read_metadata_at(server, &crd_path(resource)).await?;
    Ok(fields.map(|fields| CrdLabels {
        is_parent_type: fields.labels.contains_key(IS_PARENT_TYPE_LABEL),
        part_of: fields.labels.get(PART_OF_LABEL).cloned(),
    }))
}

pub(super) async fn read_metadata_at(
    server: &ApiServer,
    path: &str,
) -> Result<Option<ObjectMetadata>, ApiError> {
    let reply = match server.get(path, METADATA).await {
        Ok(reply) => reply,
        Err(error) if error.is_missing_object() => return Ok(None),
        Err(error) => return Err(error),
    };
    match reply.json::<Metadata>() {
        Ok(read) => Ok(Some(read.metadata)),
        Err(error) => Err(ApiError::for_invalid_answer(path, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_with_nulls_can_be_read() {
        let nulls = json!({"name": null, "namespace": null, "uid": null, "resourceVersion": null, "labels": null,
            "annotations": null, "ownerReferences": null, "deletionTimestamp": null});
        let read = ObjectMetadata::deserialize(&nulls).expect("metadata");
        assert_eq!(read.to_namespace_state().owners, Vec::<String>::new());
    }
}
