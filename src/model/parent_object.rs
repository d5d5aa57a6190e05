//! The parent object of a set.

use super::applyset::parent::{Pairs, Reading};
use super::history_annotation::Run;
use super::live::{OwnerReference, Presence};

/// The parent object in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentObject {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`, the lock of every write of the parent.
    pub resource_version: String,
    /// Present, or terminating.
    pub presence: Presence,
    /// Its ApplySet labels and annotations.
    pub reading: Reading,
    /// All annotations, because their total size is limited.
    pub annotations: Pairs,
    /// The runs that were under way when it was read.
    pub running: Vec<Run>,
    /// The runs that were abandoned by then, and are still recorded as under way.
    pub abandoned: Vec<Run>,
    /// The id of the set that the parent itself is a member of, if any.
    pub part_of: Option<String>,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerReference>,
}
