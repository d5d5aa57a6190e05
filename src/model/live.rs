//! A live object reduced to what decisions need.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::identity::{GroupKind, ObjectKey};
use super::resource::Resource;

/// One object of the cluster, as far as a plan needs to know it.
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
    /// Whether it is on its way out.
    pub presence: Presence,
    /// What keeps a terminating object: finalizers, and for a namespace its conditions.
    pub waits_for: Vec<String>,
    /// The value of the part-of label, if it has one.
    pub part_of: Option<String>,
    /// The value of the id label, which makes the object the parent of a set.
    pub parent_of: Option<String>,
    /// Field managers that own the part-of label, whatever operation they used.
    pub part_of_writers: Vec<String>,
    /// Whether the server keeps track of who owns its fields.
    pub tracking: Tracking,
    /// The kind that it defines, for a CRD.
    pub defines: Option<GroupKind>,
    /// Whether fields are owned in a way in which they would outlive their manifest: by
    /// client-side apply, or as the `stringData` of an earlier run.
    pub client_side_apply: bool,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerReference>,
    /// The mark by which somebody keeps it from being deleted, as `key: value`.
    pub protection: Option<String>,
}

/// Whether an object is there to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// Nobody has asked for its deletion.
    Present,
    /// It has a deletion timestamp; nothing can call that back.
    Terminating,
}

/// Whether the server keeps track of who owns an object's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// Every write is noted in `metadata.managedFields`.
    On,
    /// That is empty, and stays so until something is applied server-side.
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
    /// Returns whether one of these field managers owns the part-of label. Controllers copy labels,
    /// and what they copy is no member.
    pub fn is_labelled_by(&self, appliers: &BTreeSet<String>) -> bool {
        self.part_of_writers
            .iter()
            .any(|writer| appliers.contains(writer))
    }
}
