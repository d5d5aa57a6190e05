//! The protocol of the parent's record. Every write of a record is made here.
//!
//! It keeps two promises:
//!
//! - The record is never narrower than reality: it names the kind and the namespace of each object
//!   that carries the set's label, or a run that is not over yet is going to widen it.
//! - No run overwrites a record that another run has written since this one read it.
//!
//! Every run keeps them by three rules:
//!
//! 1. It widens the record to the union of what it says and of what the run writes, before the
//!    first member. It ensures the same between waves and after the last member (`widen`). If a write that
//!    is bound to the resourceVersion in which the run knows the record succeeds, no other run has written
//!    the record since, and the run need not read it again.
//! 2. Every write is bound to the resourceVersion that it was decided on. After a conflict the run
//!    reads the record again and decides again.
//! 3. It narrows or removes the record only after a look that began after it had read the record,
//!    and looks again right after that write. What another run has put into the set between the
//!    two is recorded again (`narrow`, `remove`).
//!
//! A run that is killed leaves the record wide. Two moments are exceptions, both only while another
//! run narrows or widens the same record: between the write that narrows and the end of the look
//! after it, and between the member that a run writes and its next look at a record that another run
//! has narrowed since the plan was made. A member may be outside then. The next run of the same
//! manifests finds it, and `verify` finds it by its label.
//!
//! `interleavings` checks both promises for all interleavings of short runs.
//!
//! `repair` writes what `verify --fix` has found out, and narrows a record by the same rules.

#[cfg(test)]
mod interleavings;
pub(crate) mod narrow;
mod narrow_after_apply;
mod own_manifest;
pub(crate) mod remove;
pub(crate) mod repair;
pub(crate) mod requests;
pub(crate) mod widen;

use serde_json::Value;

use crate::model::applyset::parent::Reading;
use crate::model::parent_object::ParentObject;

/// Attempts to write a parent that other clients write at the same time.
pub(crate) const ATTEMPTS: usize = 20;

/// Warning that another run works on the same set.
pub(crate) const OVERTAKEN: &str = "another run is working on this set; the next run narrows its record";

/// Returns whether the parent already has what is to be written.
pub(crate) fn is_up_to_date(parent: &ParentObject, target: &Value) -> bool {
    let Some(target) = target.as_object() else {
        return false;
    };
    matches!(parent.reading, Reading::Parent(_))
        && target
            .iter()
            .all(|(key, value)| parent.annotations.get(key).map(String::as_str) == value.as_str())
}
