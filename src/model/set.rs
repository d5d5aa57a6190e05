//! The set that a plan is for, and its parent.

use serde_json::Value;

use super::applyset::parent::{Pairs, Reading, annotations};
use super::applyset::{ApplySetId, PART_OF_LABEL, ParentIdentity, Record, Tooling};
use super::history_annotation::Run;
use super::live::{Live, OwnerReference, Presence};

/// The set that a plan is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub id: ApplySetId,
    pub parent: ParentIdentity,
    /// The parent's UID, if it exists.
    pub parent_uid: Option<String>,
    /// The tooling to write.
    pub tooling: Tooling,
}

impl Set {
    /// Returns whether the object is the parent. It is never a member of its own set, although
    /// kubectl labels a parent that is among its manifests.
    pub fn is_parent(&self, live: &Live) -> bool {
        live.key == self.parent || self.parent_uid.as_ref() == Some(&live.uid)
    }

    /// Returns whether an object has the part-of label of the set.
    pub fn holds(&self, object: &Value) -> bool {
        object["metadata"]["labels"][PART_OF_LABEL] == *self.id.as_str()
    }

    /// Returns whether one of these owner references names the parent. The garbage collector would delete
    /// an object that has them after the parent.
    pub fn is_owner(&self, owners: &[OwnerReference]) -> bool {
        owners
            .iter()
            .any(|owner| self.parent_uid.as_ref() == Some(&owner.uid))
    }
}

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

impl ParentObject {
    /// Returns whether the object is a parent with these annotations, as [`annotations`] returns them.
    pub fn has_annotations(&self, expected: &Value) -> bool {
        let mut pairs = expected.as_object().into_iter().flatten();
        matches!(self.reading, Reading::Parent(_))
            && pairs.all(|(key, value)| self.annotations.get(key).map(String::as_str) == value.as_str())
    }

    /// Returns the runs under way that may add members, except that with this id: the record stays wide for them.
    pub fn adding_beside<'p>(&'p self, id: &'p str) -> impl Iterator<Item = &'p Run> {
        let running = self.running.iter();
        running.filter(move |run| !run.takes_out && run.id != id)
    }

    /// Returns whether a run that may add members is under way.
    pub fn is_being_added_to(&self) -> bool {
        self.adding_beside("").next().is_some()
    }

    /// Returns whether the parent has exactly this record.
    pub fn has_record(&self, tooling: &Tooling, record: &Record) -> bool {
        self.has_annotations(&annotations(tooling, record))
    }
}
