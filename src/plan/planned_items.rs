//! The plan of a run, and its items: applies, prunes and kept objects.

use super::{Dependents, Edges, Preconditions, Refusal, SkipReason};
use crate::compare::changes::Reason;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::Record;
use crate::model::live::Live;

/// Everything that one run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The record before the first member is written: the old and the new one together.
    pub record_during: Record,
    /// The record after everything has succeeded.
    pub record_after: Record,
    /// Members that have to exist before the parent, one step after the other: its namespace, its CRD.
    pub prerequisites: Vec<Vec<Apply>>,
    /// The other members, one wave after the other.
    pub waves: Vec<Vec<Apply>>,
    /// Members that are as the manifests have them, in the order of the manifests.
    pub unchanged: Vec<Unchanged>,
    /// Members to delete, one wave after the other.
    pub prunes: Vec<Vec<Live>>,
    /// Members to delete after all these, one wave after the other.
    pub last_prunes: Vec<Vec<Live>>,
    /// The order by dependency, as far as waves do not show it.
    pub edges: Edges,
    /// Members that the manifests no longer hold, and that are kept.
    pub skips: Vec<Skip>,
    /// Desired or kept objects that the prunes endanger by owner references.
    pub dependents: Dependents,
    /// Refusals that the user has confirmed.
    pub accepted: Vec<Refusal>,
    /// What the objects have to be when they are written.
    pub preconditions: Preconditions,
    /// Reasons for which the plan may not be carried out.
    pub refusals: Vec<Refusal>,
}

/// One member to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apply {
    /// Index in `Desired::members`.
    pub index: usize,
    /// State of the member in the cluster.
    pub live_membership: LiveMembership,
}

/// One member that is as its manifest has it. A set may have many of them, so it holds only what a run
/// reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchanged {
    /// Index in `Desired::members`.
    pub index: usize,
    /// `metadata.uid`.
    pub uid: String,
}

/// State in the cluster of a member that the manifests hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveMembership {
    /// Not a member. The object may exist or not.
    NotAMember,
    /// A member of another set, which this set takes.
    OfAnotherSet,
    /// A member, with this resourceVersion.
    Member {
        /// `metadata.uid`.
        uid: String,
        /// `metadata.resourceVersion`. The apply changed nothing if it is the same afterwards.
        resource_version: String,
        /// Reason for which it counts as changed.
        reason: Option<Reason>,
        /// `true` if client-side apply owns fields, which the apply has to take over first, or an earlier
        /// run applied `stringData`.
        client_side_apply: bool,
        /// `true` if it has the id label of a set, and so is its parent.
        is_parent: bool,
    },
    /// A member that is being deleted, or whose namespace is. The server would accept an apply, and the
    /// object would be gone a moment later.
    Terminating,
}

impl LiveMembership {
    /// Returns the UID of a member that is not being deleted; `None` for all other objects.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Member { uid, .. } => Some(uid),
            Self::NotAMember | Self::OfAnotherSet | Self::Terminating => None,
        }
    }
}

/// A member that the manifests no longer hold, and that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The object.
    pub live: Live,
    /// Reason for which it is kept.
    pub reason: SkipReason,
}

impl Skip {
    /// Returns whether it stays: it is not being deleted, not kept only because pruning is disabled, and
    /// not a copy that is deleted with its owner.
    pub fn stays_in_cluster(&self) -> bool {
        !matches!(
            self.reason,
            SkipReason::Terminating { .. } | SkipReason::PruningDisabled | SkipReason::OwnedCopy(_)
        )
    }
}

impl Plan {
    /// Returns the applies in their order: the prerequisites, then wave by wave.
    pub fn all_applies(&self) -> impl Iterator<Item = &Apply> + Clone {
        self.prerequisites.iter().chain(&self.waves).flatten()
    }

    /// Returns the members that are applied because they have changed.
    pub fn changed_members<'d>(&self, desired: &'d Desired) -> impl Iterator<Item = &'d DesiredObject> {
        self.all_applies()
            .filter(|apply| matches!(apply.live_membership, LiveMembership::Member { .. }))
            .map(|apply| &desired.members[apply.index])
    }

    /// Returns the waves of prunes in their order.
    pub fn prune_waves(&self) -> impl Iterator<Item = &Vec<Live>> + Clone {
        self.prunes.iter().chain(&self.last_prunes)
    }

    /// Returns the prunes in their order.
    pub fn all_prunes(&self) -> impl Iterator<Item = &Live> + Clone {
        self.prune_waves().flatten()
    }

    /// Returns the kept members that a run reports: all that it concerns, unless pruning is disabled.
    pub fn reported_skips(&self) -> impl Iterator<Item = &Skip> {
        self.skips.iter().filter(|skip| skip.reason.is_reported())
    }

    /// Returns the number of members to apply.
    pub fn applies(&self) -> usize {
        self.all_applies().count()
    }

    /// Returns the number of objects that a run reports.
    pub fn objects(&self) -> usize {
        self.applies() + self.unchanged.len() + self.deletions() + self.reported_skips().count()
    }

    /// Returns the number of objects to delete.
    pub fn deletions(&self) -> usize {
        self.all_prunes().count()
    }
}
