//! The plan of a run, and its items: applies, prunes and kept objects.

use k8s_openapi::jiff::Timestamp;

use super::refusal::describe_losses;
use super::{DependencyEdges, Dependents, Preconditions, ReasonToKeep, Refusal, deletes_volume_data};
use crate::compare::changes::Reason;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::Record;
use crate::model::live::Live;
use crate::model::set::{ParentObject, Set};
use crate::model::write_settings::WriteSettings;

/// Everything that one run does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The widened record, which is written before the first member: the old and the new record together.
    pub record_during: Record,
    /// The narrowed record, which is written once everything has succeeded.
    pub record_after: Record,
    /// Members to apply before the parent, one step after the other: the parent's namespace, the CRD of its kind.
    pub prerequisites: Vec<Vec<Apply>>,
    /// The other members to apply, one wave after the other.
    pub waves: Vec<Vec<Apply>>,
    /// Members that are as the manifests have them, in the order of the manifests.
    pub unchanged: Vec<Unchanged>,
    /// Members to delete, one wave after the other.
    pub prunes: Vec<Vec<Live>>,
    /// Members to delete after all `prunes`, one wave after the other (`PruneLast=true`).
    pub last_prunes: Vec<Vec<Live>>,
    /// The dependencies between objects, as far as the order of the waves does not show them.
    pub edges: DependencyEdges,
    /// Members that the manifests no longer hold, and that are kept.
    pub skips: Vec<Skip>,
    /// Desired or kept objects that have owner references to pruned objects.
    pub dependents: Dependents,
    /// Losses of data that the user has allowed by a flag, or confirmed. They are shown like those that are refused.
    pub accepted: Vec<Refusal>,
    /// The UID and content that each object must have when it is written.
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

/// One member that matches its manifest. A set may have many such members, so this holds only what a run reports of
/// them.
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
    /// Not a member of any set. The object may exist or not.
    NotAMember,
    /// A member of another set, which becomes a member of this set.
    OfAnotherSet {
        /// `metadata.uid`.
        uid: String,
        /// `metadata.resourceVersion`.
        resource_version: String,
    },
    /// A member of this set.
    Member {
        /// `metadata.uid`.
        uid: String,
        /// `metadata.resourceVersion`. The apply changed nothing if it is the same afterwards.
        resource_version: String,
        /// Reason for which the member counts as changed; `None` if it was not compared with its manifest.
        reason: Option<Reason>,
        /// `true` if client-side apply owns fields, which the apply has to take over first, or an earlier
        /// run applied `stringData`.
        client_side_apply: bool,
        /// `true` if the member is the parent of another set: it has the id label of that set.
        is_parent: bool,
        /// `true` if the data of volumes is deleted with the member.
        deletes_data: bool,
    },
    /// A member that is being deleted, or an object whose namespace is being deleted. The server would accept an apply,
    /// and the object would be gone a moment later.
    Terminating,
}

impl LiveMembership {
    /// Creates the membership of a member of this set that is not being deleted, with the reason for which it counts as
    /// changed.
    pub fn for_member(live: &Live, reason: Option<Reason>) -> Self {
        Self::Member {
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
            reason,
            client_side_apply: live.client_side_apply,
            is_parent: live.parent_of.is_some(),
            deletes_data: deletes_volume_data(live),
        }
    }

    /// Creates the membership of a member of another set.
    pub fn for_member_of_another_set(live: &Live) -> Self {
        Self::OfAnotherSet {
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
        }
    }

    /// Returns the UID of a member of this set that is not being deleted; `None` for all other objects.
    pub fn uid_of_member(&self) -> Option<&str> {
        match self {
            Self::Member { uid, .. } => Some(uid),
            Self::NotAMember | Self::OfAnotherSet { .. } | Self::Terminating => None,
        }
    }
}

/// A member that the manifests no longer hold, and that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The object.
    pub live: Live,
    /// Reason for which it is kept.
    pub reason: ReasonToKeep,
}

impl Skip {
    /// Returns whether the object would stay in the cluster even if pruning were enabled: it is not being deleted, is
    /// not a copy that is deleted with its owner, and is not kept only because pruning is disabled.
    pub fn stays_despite_pruning(&self) -> bool {
        !matches!(
            self.reason,
            ReasonToKeep::Terminating { .. } | ReasonToKeep::PruningDisabled | ReasonToKeep::OwnedCopy(_)
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

    /// Returns the kept members that a run reports: all but those that are kept because pruning is disabled.
    pub fn reported_skips(&self) -> impl Iterator<Item = &Skip> {
        self.skips.iter().filter(|skip| skip.reason.is_reported())
    }

    /// Returns the number of members to apply.
    pub fn count_applies(&self) -> usize {
        self.all_applies().count()
    }

    /// Returns whether a run has to write its set's existing parent before anything else: because it may write a member
    /// (it records its entry in the history), because the record lacks something, or because the time at which the set
    /// expires changes (a `delete --expired` must not delete the set while this run waits). `now` is the time by the
    /// clock of the server.
    pub fn has_to_begin_on(
        &self,
        parent: &ParentObject,
        set: &Set,
        writing: &WriteSettings,
        now: Timestamp,
    ) -> bool {
        self.count_applies() + self.count_prunes() > 0
            || writing.expiry.is_to_be_written(&parent.annotations, now)
            || !parent.has_tooling_and_record(&set.tooling, &self.record_during)
    }

    /// Returns the number of objects that a run reports.
    pub fn count_reported_objects(&self) -> usize {
        self.count_applies() + self.unchanged.len() + self.count_prunes() + self.reported_skips().count()
    }

    /// Returns the number of objects to delete.
    pub fn count_prunes(&self) -> usize {
        self.all_prunes().count()
    }

    /// Returns the warnings about the plan: the dependencies that it ignores, and what a flag allows to be deleted
    /// together with a namespace or CRD, which no result of the run names. What a question has shown is left out, so
    /// this is called before [`Self::lift_all_refusals`].
    pub fn describe_ignored_dependencies_and_losses(&self) -> Vec<String> {
        let losses = self.accepted.iter().filter_map(|refusal| match refusal {
            Refusal::HoldsOthers {
                container,
                lost,
                unknown,
                ..
            } => Some(format!(
                "deleting {container} also deletes {}",
                describe_losses(lost, unknown)
            )),
            _ => None,
        });
        self.edges.ignored.iter().cloned().chain(losses).collect()
    }

    /// Lifts all refusals, because the user has confirmed them. Losses of data stay in `accepted`: each object is
    /// judged again before its delete, and that judgement would otherwise refuse it.
    pub fn lift_all_refusals(&mut self) {
        let confirmed = std::mem::take(&mut self.refusals).into_iter();
        self.accepted.extend(confirmed.filter(Refusal::is_data_loss));
    }
}
