//! A live object, reduced to the fields that plans need: a set may have many large objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::depends_on::Dependencies;
use super::identity::{GroupKind, ObjectKey};
use super::resource::Resource;
use super::user_annotations::PruneOrder;

/// An object of the cluster, reduced to the fields that plans need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource through which the object was read.
    pub resource: Arc<Resource>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// The state of the object: present, or being deleted.
    pub presence: Presence,
    /// The reasons why the object is still terminating: its finalizers, and for a namespace the messages of its
    /// conditions. Empty if the object is not being deleted.
    pub waits_for: Vec<String>,
    /// The value of the part-of label, if the object has one.
    pub part_of: Option<String>,
    /// The value of the id label, if the object has one: then it is the parent of a set.
    pub parent_of: Option<String>,
    /// The field managers that own the part-of label, by an apply or by another write.
    pub part_of_writers: Vec<String>,
    /// Whether the server tracks the ownership of the object's fields.
    pub tracking: Tracking,
    /// The kind that the object defines, if it is a CRD.
    pub defines: Option<GroupKind>,
    /// True for a `StatefulSet` whose `PersistentVolumeClaims` are deleted with it
    /// (`persistentVolumeClaimRetentionPolicy.whenDeleted`).
    pub deletes_claims: bool,
    /// True if the next server-side apply would not remove fields that the manifest does not have any more, because a
    /// client-side apply owns them, or because an earlier run wrote them as `stringData`.
    pub client_side_apply: bool,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerReference>,
    /// The label or annotation by which the user asks not to delete the object, as `key: value`.
    pub keep_annotation: Option<String>,
    /// The time at which a run prunes the object: with its kind, or after all other objects.
    pub prune_order: PruneOrder,
    /// The objects that this object depends on according to its annotation.
    pub dependencies: Dependencies,
}

impl Live {
    /// Returns the first owner of the object that is not the set's parent. Owners are compared by UID, since an object
    /// with the parent's kind and name but another UID is not the parent.
    pub fn foreign_owner(&self, parent_uid: Option<&str>) -> Option<&OwnerReference> {
        self.owners
            .iter()
            .find(|owner| parent_uid != Some(owner.uid.as_str()))
    }

    /// Returns whether one of these field managers owns the part-of label. Some controllers copy the labels of an
    /// object to the objects that they create; such copies are not members.
    pub fn has_part_of_label_written_by(&self, appliers: &BTreeSet<String>) -> bool {
        self.part_of_writers
            .iter()
            .any(|writer| appliers.contains(writer))
    }

    /// Returns whether an admission policy or webhook has removed the part-of label from a write: a field manager owns
    /// the label, but the object does not have it. If another client removes a label, the server removes it from
    /// `managedFields`, too.
    pub fn has_lost_part_of_label(&self) -> bool {
        self.part_of.is_none() && !self.part_of_writers.is_empty()
    }

    /// Returns whether the object has a copied label, and an owner other than the set's parent. Such an object is not a
    /// member, and the garbage collector deletes it after its owner.
    pub fn is_copy_with_foreign_owner(&self, parent_uid: Option<&str>, appliers: &BTreeSet<String>) -> bool {
        self.foreign_owner(parent_uid).is_some() && !self.has_part_of_label_written_by(appliers)
    }
}

/// The state of an object that exists: present, or being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// The object is not being deleted.
    Present,
    /// The object has a deletion timestamp. It cannot be removed: the object will be gone once it has no finalizers.
    Terminating,
}

/// The server's tracking of field ownership of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// The server tracks every write in `metadata.managedFields`.
    On,
    /// The server tracks every write, but some entries of `metadata.managedFields` name another version of the kind,
    /// which its CRD may not have any more.
    OnInOtherVersions,
    /// `metadata.managedFields` is empty. It remains empty until the object is applied server-side.
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
