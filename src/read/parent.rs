//! Reads parents of sets, their CRDs, and the metadata of other single objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::StatusCode;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::list::{ListError, METADATA_LIST, Selector, WHOLE_OBJECTS, list};
use super::single_objects::{self, unreadable};
use crate::cluster::apiserver::{ApiError, ApiServer, Reply};
use crate::cluster::discovery::null_is_empty;
use crate::compare::ownership;
use crate::model::applyset::parent::{Pairs, ParentIdentity, is_applyset_key, read_labels_and_annotations};
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
    uid: String,
    #[serde(deserialize_with = "null_is_empty")]
    resource_version: String,
    deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    owner_references: Vec<OwnerReference>,
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

/// An object that is, claims to be, or may have been the parent of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveParent {
    /// The ApplySet metadata of the parent, as a run reads it.
    pub object: ParentObject,
    /// The parent as a live object.
    pub live: Live,
    pub labels: Pairs,
    /// Field managers that own fields outside of its metadata.
    pub content_writers: Vec<String>,
    /// Field managers that own the recorded kinds or namespaces.
    pub record_writers: Vec<String>,
    /// Field managers that own ApplySet metadata of the object, by any operation.
    pub writers: BTreeSet<String>,
    /// Field managers that own ApplySet metadata of the object by server-side apply, as tools that manage sets do.
    pub appliers: BTreeSet<String>,
}

impl LiveParent {
    /// Reduces an object that a GET returned, or an item of a LIST. `now` is the time by the server's clock.
    ///
    /// # Errors
    ///
    /// The reason why its metadata is not valid.
    pub fn from_object(object: &Value, resource: &Arc<Resource>, now: Timestamp) -> Result<Self, String> {
        let metadata = &object["metadata"];
        let fields = ObjectMetadata::deserialize(metadata).map_err(|error| error.to_string())?;
        let live = Live::from_object(object, resource).ok_or("it has no identity")?;
        Ok(Self {
            labels: fields.labels.clone(),
            content_writers: ownership::content_writers(metadata),
            record_writers: ownership::annotation_writers(metadata, &RECORD_ANNOTATIONS),
            writers: find_writers_of_applyset_metadata(metadata, |_| true),
            appliers: find_writers_of_applyset_metadata(metadata, |entry| entry["operation"] == "Apply"),
            object: ParentObject::new(&live.key, fields, now),
            live,
        })
    }

    /// Returns whether the object has any ApplySet metadata of a parent.
    pub fn has_applyset_metadata(&self) -> bool {
        self.labels.contains_key(ID_LABEL) || self.object.annotations.keys().any(|key| is_applyset_key(key))
    }
}

/// Returns the field managers that own the id label or an annotation of the convention, by those entries of
/// `managedFields` that `counts` selects.
fn find_writers_of_applyset_metadata(metadata: &Value, counts: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let entries = metadata["managedFields"].as_array().into_iter().flatten();
    entries
        .filter(|entry| counts(entry))
        .filter(|entry| {
            let owned = &entry["fieldsV1"]["f:metadata"];
            let mut annotations = owned["f:annotations"].as_object().into_iter().flat_map(Map::keys);
            owned["f:labels"].get(format!("f:{ID_LABEL}")).is_some()
                || annotations.any(|key| key.strip_prefix("f:").is_some_and(is_applyset_key))
        })
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
        .collect()
}

/// Reads the parent with everything that commands need of it; `None` if it does not exist.
pub async fn read_live_parent(
    server: &ApiServer,
    resource: &Arc<Resource>,
    identity: &ParentIdentity,
) -> Result<Option<LiveParent>, ApiError> {
    let object = single_objects::read(server, identity, resource, METADATA).await?;
    object
        .map(|object| LiveParent::from_object(&object, resource, server.now()))
        .transpose()
        .map_err(|reason| unreadable(resource, identity, reason))
}

/// Reads the parent as plans use it; `None` if it does not exist.
pub async fn read_parent(
    server: &ApiServer,
    resource: &Arc<Resource>,
    identity: &ParentIdentity,
) -> Result<Option<ParentObject>, ApiError> {
    let parent = read_live_parent(server, resource, identity).await?;
    Ok(parent.map(|parent| parent.object))
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
            let parent = LiveParent::from_object(item, resource, server.now()).ok()?;
            Some((parent.live.key, parent.object))
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
    use crate::plan::fixtures::resource;

    #[test]
    fn metadata_with_nulls_can_be_read() {
        let nulls = json!({"uid": null, "resourceVersion": null, "labels": null,
            "annotations": null, "ownerReferences": null, "deletionTimestamp": null});
        let read = ObjectMetadata::deserialize(&nulls).expect("metadata");
        assert_eq!(read.to_namespace_state().owners, Vec::<String>::new());
    }

    #[test]
    fn who_keeps_the_books_is_read_from_field_ownership() {
        let owns = |manager: &str, field: &str, key: &str| json!({"manager": manager, "fieldsV1": {"f:metadata": {field: {(format!("f:{key}")): {}, ".": {}}}}});
        let mut metadata = json!({"name": "web", "uid": "1", "resourceVersion": "1", "managedFields": [
            owns("a", "f:annotations", GROUP_KINDS_ANNOTATION),
            owns("b", "f:labels", ID_LABEL),
            owns("c", "f:annotations", "note"),
            owns("d", "f:labels", PART_OF_LABEL),
            {"manager": "e", "fieldsV1": {"f:data": {}}},
        ]});
        metadata["managedFields"][1]["operation"] = json!("Apply");
        metadata["managedFields"][3]["operation"] = json!("Apply");
        let resource = resource("Secret", Scope::Namespaced);
        let parent =
            LiveParent::from_object(&json!({"metadata": metadata}), &resource, Timestamp::UNIX_EPOCH);
        let parent = parent.expect("an object");
        assert_eq!(parent.writers, ["a", "b"].map(str::to_owned).into());
        assert_eq!(parent.appliers, ["b".to_owned()].into());
    }
}
