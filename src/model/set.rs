//! The set that a plan is for.

use serde_json::Value;

use super::applyset::{ApplySetId, PART_OF_LABEL, ParentIdentity, Tooling};
use super::live::{Live, OwnerReference};

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
