//! The set that a plan is for, and its parent.

use serde_json::Value;

use super::applyset::parent::{Pairs, ParentAnnotations, Reading, annotations};
use super::applyset::{ApplySetId, PART_OF_LABEL, ParentIdentity, Record, Tooling};
use super::history_annotation::{History, Run, RunResult};
use super::live::{Live, OwnerReference, Presence};

/// The set that a plan is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub id: ApplySetId,
    pub parent: ParentIdentity,
    /// The UID of the parent; `None` if the parent does not exist.
    pub parent_uid: Option<String>,
    /// The tool that manages the set, as the run writes it to the parent.
    pub tooling: Tooling,
}

impl Set {
    /// Returns whether the object is the parent of the set. The parent is never a member of its own set, although
    /// kubectl writes the part-of label to a parent that is among the manifests.
    pub fn is_parent(&self, live: &Live) -> bool {
        live.key == self.parent || self.parent_uid.as_ref() == Some(&live.uid)
    }

    /// Returns whether an object has the part-of label of the set.
    pub fn is_named_by_label_of(&self, object: &Value) -> bool {
        object["metadata"]["labels"][PART_OF_LABEL] == *self.id.as_str()
    }

    /// Returns whether one of these owner references names the parent. Once the parent is deleted, the garbage
    /// collector would delete an object that has such a reference.
    pub fn is_parent_among_owners(&self, owners: &[OwnerReference]) -> bool {
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
    /// `metadata.resourceVersion`. Every write of the parent carries it, and fails with a conflict if another program
    /// has written the parent since it was read.
    pub resource_version: String,
    /// The state of the parent: present, or being deleted.
    pub presence: Presence,
    /// The ApplySet labels and annotations of the parent.
    pub reading: Reading,
    /// All annotations of the parent, including annotations of other programs: the server limits their total size.
    pub annotations: Pairs,
    /// The runs that were under way when the parent was read.
    pub running: Vec<Run>,
    /// The runs that counted as abandoned when the parent was read, although their entries say that they are under way.
    pub abandoned: Vec<Run>,
    /// The id of the set that the parent itself is a member of, if any.
    pub part_of: Option<String>,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerReference>,
}

impl ParentObject {
    /// Returns whether the object is a parent without faults and has at least the `expected` annotations, which
    /// [`annotations`] returns.
    pub fn has_expected_annotations(&self, expected: &Value) -> bool {
        matches!(self.reading, Reading::Parent(_))
            && expected
                .as_object()
                .into_iter()
                .flatten()
                .all(|(key, value)| self.annotations.get(key).map(String::as_str) == value.as_str())
    }

    /// Returns the runs under way that may add members, except the run with this id. While there are any, no run
    /// removes kinds or namespaces from the record, since new members may need them.
    pub fn adding_runs_beside<'p>(&'p self, id: &'p str) -> impl Iterator<Item = &'p Run> {
        self.running
            .iter()
            .filter(move |run| !run.takes_out && !run.has_id(id))
    }

    /// Returns whether any run that may add members is under way.
    pub fn is_being_added_to(&self) -> bool {
        self.adding_runs_beside("").next().is_some()
    }

    /// Returns the run under way that has begun last, or if there is none, the last of the other runs. A run that
    /// counted as abandoned when the parent was read has that result.
    pub fn last_run(&self) -> Option<Run> {
        // The order of the entries does not show it: a renewal puts an entry first, and abandoned runs are before past
        // runs, which may be later.
        let last = History::from_annotations(&self.annotations)
            .into_runs()
            .into_iter()
            .rev()
            .max_by_key(|run| {
                let is_under_way = run.is_running() && !self.abandoned.contains(run);
                (is_under_way, run.time.clone())
            })?;
        let result = if self.abandoned.contains(&last) {
            RunResult::Abandoned
        } else {
            last.result.clone()
        };
        Some(Run { result, ..last })
    }

    /// Returns the kinds and namespaces that the parent may record without members that a run has not listed, which has
    /// read this parent and listed what `listed` covers. The record of a plan lacks kinds that the server does not serve
    /// any more; the parent may still name them.
    pub fn record_with(&self, listed: &Record) -> Record {
        let own = self.reading.recorded().and_then(ParentAnnotations::record);
        own.unwrap_or_default().union(listed)
    }

    /// Returns whether the parent has this tooling and exactly this record.
    pub fn has_tooling_and_record(&self, tooling: &Tooling, record: &Record) -> bool {
        self.has_expected_annotations(&annotations(tooling, record))
    }
}
