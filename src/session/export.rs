//! Exports the objects of a set as manifests, for `export` and for `apply --undo-out`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compare::exported::{Exported, ExportedFields, exported};
use crate::error::Error;
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::plan::{apply_order, data_of_volumes};
use crate::read::{self, Cluster, ReadError, whole_members, whole_objects};
use crate::report::ManifestText;

/// The set to export, and where its members are.
pub struct Source<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The set.
    pub set: &'a Set,
    /// The resource of the parent.
    pub parent_resource: &'a Resource,
    /// The places of members.
    pub places: &'a ListTargets,
    /// The field manager that has applied the members.
    pub field_manager: &'a str,
    /// The concurrency limit.
    pub concurrency: usize,
}

impl Source<'_> {
    /// Returns the manifests of all members, in the order in which they are applied; with them the parent's, if it was
    /// among the manifests, and those of objects that are about to be `taken_in`, as far as they exist.
    ///
    /// # Errors
    ///
    /// Something could not be read.
    pub async fn export(&self, taken_in: &BTreeSet<ObjectKey>) -> Result<Vec<ManifestText>, Error> {
        let (cluster, manager) = (self.cluster, self.field_manager);
        let members = whole_members(cluster, self.set, self.places, manager, self.concurrency).await?;
        let others = whole_objects(cluster, taken_in.iter().cloned(), manager, self.concurrency).await?;
        let mut manifests: Vec<ManifestText> = members
            .iter()
            .chain(&others)
            .map(|(key, object)| {
                let exported = exported(object, manager);
                let comments = comments(key, object, &exported, taken_in);
                ManifestText::new(key.clone(), exported.manifest, comments)
            })
            .chain(self.parent().await?)
            .collect();
        manifests.sort_by(|one, other| apply_order(one.key()).cmp(&apply_order(other.key())));
        Ok(manifests)
    }

    /// Returns the manifest of the parent, if one was applied.
    async fn parent(&self) -> Result<Option<ManifestText>, Error> {
        let key = &self.set.parent;
        if self.set.parent_uid.is_none() {
            return Ok(None);
        }
        let object = read::object(&self.cluster.server, self.parent_resource, key).await;
        let object = object.map_err(|error| ReadError::Object {
            what: format!("the set's parent {key}"),
            error,
        })?;
        let exported = object.map(|object| exported(&object, self.field_manager));
        let applied = exported.filter(|exported| exported.fields == ExportedFields::Applied);
        Ok(applied.map(|exported| ManifestText::new(key.clone(), exported.manifest, Vec::new())))
    }
}

/// Returns what an apply of the manifest does not bring back.
fn comments(
    key: &ObjectKey,
    object: &Value,
    exported: &Exported,
    taken_in: &BTreeSet<ObjectKey>,
) -> Vec<String> {
    let data = data_of_volumes(&key.group_kind, object).map(|data| format!("Not in this manifest: {data}."));
    let origin = match exported.fields {
        _ if taken_in.contains(key) => Some(
            "It was not in the set. Applying this restores its fields, and it stays in the set.".to_owned(),
        ),
        ExportedFields::Live => {
            Some("The set took it in and has not applied it: these are its live fields.".to_owned())
        }
        ExportedFields::Applied => None,
    };
    origin.into_iter().chain(data).collect()
}
