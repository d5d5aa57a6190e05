//! A live object, reduced to the fields that decisions need.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::depends_on::Dependencies;
use super::identity::{GroupKind, ObjectKey};
use super::resource::Resource;
use super::user_annotations::PruneOrder;

/// An object of the cluster, with the fields that a plan needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it was read through.
    pub resource: Arc<Resource>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion` as it was read.
    pub resource_version: String,
    /// Present, or terminating.
    pub presence: Presence,
    /// The reasons why it is still terminating: finalizers, and for a namespace its conditions.
    pub waits_for: Vec<String>,
    /// The value of the part-of label, if it has one.
    pub part_of: Option<String>,
    /// The value of the id label, which makes the object the parent of a set.
    pub parent_of: Option<String>,
    /// Field managers that own the part-of label, whatever operation they used.
    pub part_of_writers: Vec<String>,
    /// The tracking of field ownership.
    pub tracking: Tracking,
    /// The kind that it defines, for a CRD.
    pub defines: Option<GroupKind>,
    /// True for a `StatefulSet` whose controller deletes its claims after it.
    pub deletes_claims: bool,
    /// True if the ownership of fields would keep them after they left the manifest: by client-side
    /// apply, or as the `stringData` of an earlier run.
    pub client_side_apply: bool,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerReference>,
    /// The label or annotation that keeps it from being deleted, as `key: value`.
    pub keep_annotation: Option<String>,
    /// Its place among the objects that a run prunes.
    pub prune_order: PruneOrder,
    /// The objects that it depends on by its annotation.
    pub dependencies: Dependencies,
}

/// The state of an object's deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// It is not being deleted.
    Present,
    /// It has a deletion timestamp, which cannot be revoked.
    Terminating,
}

/// The server's tracking of field ownership of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// Every write is recorded in `metadata.managedFields`.
    On,
    /// The same, and entries name another version of the kind, which its definition may have lost.
    OnInOtherVersions,
    /// `metadata.managedFields` is empty, and remains so until the object is applied server-side.
    Off,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `apiVersion` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
}

impl Live {
    /// Returns an owner of the object other than the set's parent. An object with the parent's kind and name
    /// but another UID is not the parent.
    pub fn foreign_owner(&self, parent_uid: Option<&str>) -> Option<&OwnerReference> {
        let mut owners = self.owners.iter();
        owners.find(|owner| parent_uid != Some(owner.uid.as_str()))
    }

    /// Returns whether one of these field managers owns the part-of label. Controllers copy labels,
    /// and their copies are not members.
    pub fn is_labeled_by(&self, appliers: &BTreeSet<String>) -> bool {
        self.part_of_writers
            .iter()
            .any(|writer| appliers.contains(writer))
    }

    /// Returns whether the server took the part-of label on the way, by an admission policy or webhook: the object
    /// lacks it, and a field manager owns it. Every other client that removes a label takes it from its owners, too.
    pub fn has_lost_label(&self) -> bool {
        self.part_of.is_none() && !self.part_of_writers.is_empty()
    }

    /// Returns whether the object has a copied label and is owned by another object than the set's parent. It is not a
    /// member, and is deleted when its owner is.
    pub fn is_owned_copy(&self, parent_uid: Option<&str>, appliers: &BTreeSet<String>) -> bool {
        self.foreign_owner(parent_uid).is_some() && !self.is_labeled_by(appliers)
    }
}
