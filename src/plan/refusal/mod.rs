//! Refusals: the reasons for which a run stops before its first write. `hint` has the hint for each refusal.

mod covered_by_consent;
mod find;
mod hint;
mod messages;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use find::find_refusals;
pub use find::{refuse_hooks, refuse_large_annotations};
use messages::{
    describe_deleted_members, describe_disband, describe_number_outside_namespace, describe_prune_of_all,
    describe_tooling,
};
pub(super) use messages::{describe_losses, describe_other_set};
pub use messages::{describe_released_copies, list_with_keep_annotations};

use super::OtherParent;
use crate::event::Operation;
use crate::manifest::Position;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::ParentFault;
use crate::model::identity::ObjectKey;
use crate::model::text::{counted, first_names_and_more};

/// One reason for which nothing may be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The ApplySet metadata of the parent are invalid.
    #[error("{parent}: invalid ApplySet metadata: {fault}")]
    FaultyParent { parent: ObjectKey, fault: ParentFault },
    /// Another program manages the set.
    #[error("{parent}: managed by {found}, not {}", describe_tooling(.ours))]
    OtherTooling {
        parent: ObjectKey,
        /// The tooling that the parent names.
        found: Tooling,
        /// The tooling of this run: this program, or the value of `--tooling`.
        ours: Tooling,
    },
    /// The object exists and is not a parent.
    #[error("{parent}: exists and is not the parent of a set")]
    NotAParent { parent: ObjectKey },
    /// The parent is being deleted.
    #[error("{parent}: the set's parent is being deleted")]
    ParentTerminating { parent: ObjectKey },
    /// The parent's namespace is being deleted.
    #[error("namespace/{namespace}: the namespace of the set's parent is being deleted")]
    ParentNamespaceTerminating { namespace: String },
    /// There are no manifests.
    #[error("no objects in the manifests{}", describe_prune_of_all(.objects))]
    EmptyManifests {
        /// The members that would be pruned.
        objects: Vec<ObjectKey>,
    },
    /// There are manifests, but none of them is of a member of the set.
    #[error("no object in the manifests is a member of the set{}", describe_prune_of_all(.objects))]
    PrunesAll {
        /// The members that would be pruned.
        objects: Vec<ObjectKey>,
    },
    /// An object of the manifests is a member of another set.
    #[error("{position}: {object} belongs to {}", describe_other_set(.parent, .id))]
    Overlap {
        /// Position in the manifests.
        position: Position,
        object: ObjectKey,
        /// The id of the other set.
        id: String,
        /// The parent of the other set.
        parent: OtherParent,
        /// `true` if the user probably means the other set and mistyped the name or namespace: both sets have the same
        /// name, or all objects of the manifests belong to the other set.
        is_target_likely: bool,
    },
    /// An object of the manifests exists and is not in a set.
    #[error("{position}: {object} exists and is not in a set")]
    InNoSet {
        /// Position in the manifests.
        position: Position,
        object: ObjectKey,
    },
    /// Manifests are hooks of Helm or Argo CD.
    #[error("the manifests hold {}, which a set does not run: {}", counted(.hooks.len(), "hook"), first_names_and_more(.hooks))]
    HoldsHooks {
        /// The hooks, each with its position and annotation.
        hooks: Vec<String>,
    },
    /// A container would be pruned that holds objects that are not pruned.
    #[error("deleting {container} would also delete {}", describe_losses(.lost, .unknown))]
    HoldsOthers {
        /// The namespace or CRD.
        container: ObjectKey,
        /// Objects that would be lost.
        lost: Vec<ObjectKey>,
        /// The UIDs of the `lost` objects. Consent does not cover other objects with the same names.
        uids: BTreeSet<String>,
        /// Resources that could not be listed.
        unknown: Vec<String>,
    },
    /// A container would be pruned that holds objects of the manifests.
    #[error("{container}: no longer in the manifests, but holds objects of the manifests: {}", first_names_and_more(.desired))]
    HoldsDesired {
        /// The namespace, CRD or `APIService`.
        container: ObjectKey,
        /// Objects of the manifests.
        desired: Vec<ObjectKey>,
    },
    /// A `PersistentVolume` or `PersistentVolumeClaim` would be pruned, or a `StatefulSet` that deletes its claims.
    #[error("deleting {object} would lose its data")]
    PrunesStorage { object: ObjectKey },
    /// The parent of another set would be pruned.
    #[error("deleting {object}, the parent of another set, would make the members of that set orphans")]
    PrunesParent {
        /// The parent of the other set.
        object: ObjectKey,
    },
    /// Desired or kept objects have owner references to an object that would be pruned.
    #[error(
        "deleting {object} would make the garbage collector delete {}",
        list_with_keep_annotations(.dependents, .keep_annotations)
    )]
    OwnsDependents {
        /// The object that would be deleted.
        object: ObjectKey,
        /// The objects that would be lost with `object`.
        dependents: Vec<ObjectKey>,
        /// The UIDs of the `dependents`. Consent does not cover other objects with the same names.
        uids: BTreeSet<String>,
        /// Key: one of the `dependents`. Value: the annotation or label that keeps it, as `key: value`.
        keep_annotations: BTreeMap<ObjectKey, String>,
    },
    /// An object that would be pruned owns, or may own, objects that this run cannot keep by removing owner references.
    #[error(
        "{object}: cannot be pruned: it may own {}",
        first_names_and_more(.dependents)
    )]
    OwnsUndetachable {
        /// The object that would be pruned.
        object: ObjectKey,
        /// The objects that would be lost with `object`.
        dependents: Vec<ObjectKey>,
    },
    /// More would be pruned than the user allows.
    #[error("{} would be pruned, more than --max-prune={limit}: {}", counted(.objects.len(), "object"), first_names_and_more(.objects))]
    TooManyPrunes {
        /// The objects that would be pruned.
        objects: Vec<ObjectKey>,
        limit: usize,
    },
    /// A whole set would be deleted, which the user has not confirmed.
    #[error("{parent}: the set would be deleted{}", describe_deleted_members(.objects))]
    DeletesSet {
        parent: ObjectKey,
        /// The members that would be deleted with the set.
        objects: Vec<ObjectKey>,
    },
    /// Another run of the set is under way, and this run has `--exclusive`.
    #[error("{parent}: {run} began {began} and has not ended")]
    RunUnderWay {
        parent: ObjectKey,
        /// The other run in words.
        run: String,
        /// How long ago the other run began, in words.
        began: String,
        /// The time from which the other run counts as abandoned, unless it renews its entry in the history.
        until: String,
    },
    /// Another client has written the parent since this run read the set, and this run has `--exclusive`.
    #[error("{parent}: another run or client has changed the set since this run read it")]
    SetChanged { parent: ObjectKey },
    /// The record does not fit into the parent's annotations.
    #[error("{parent}: annotations too large: {size} bytes, limit {limit}")]
    AnnotationsTooLarge {
        parent: ObjectKey,
        /// Bytes of all keys and values of the annotations.
        size: usize,
        /// The API server's limit for `size`.
        limit: usize,
    },
    /// A parent would be repaired, which the user has not confirmed.
    #[error("{parent}: would be repaired: {}", .changes.join("; "))]
    RepairsParent {
        parent: ObjectKey,
        /// The changes in words.
        changes: Vec<String>,
    },
    /// An object that is to be adopted is a member of another set.
    #[error("{object} belongs to {}", describe_other_set(.parent, .id))]
    OfAnotherSet {
        object: ObjectKey,
        /// The id of the other set.
        id: String,
        /// The parent of the other set.
        parent: OtherParent,
    },
    /// Another program manages a set whose members are to change.
    #[error("{parent}: managed by {found}, not {}", describe_tooling(.ours))]
    ManagedElsewhere {
        parent: ObjectKey,
        /// The tooling that the parent names.
        found: Tooling,
        /// The tooling of this run: this program, or the value of `--tooling`.
        ours: Tooling,
        /// The command that would change the members.
        operation: Operation,
    },
    /// A set would be disbanded, which the user has not confirmed.
    #[error("{parent}: the set would be disbanded; {}", describe_disband(*.members, .copies))]
    DisbandsSet {
        parent: ObjectKey,
        /// Number of members that would be released.
        members: usize,
        /// Objects with a copied label that would be released.
        copies: Vec<ObjectKey>,
    },
    /// An inventory lists objects outside of the namespace that needs no confirmation.
    #[error("inventory {inventory} lists {}: {}", describe_number_outside_namespace(.trusted_namespace.as_deref(), .objects), first_names_and_more(.objects))]
    ReachesOutside {
        /// The inventory as the command line names it.
        inventory: String,
        /// The namespace whose objects need no confirmation, if there is one.
        trusted_namespace: Option<String>,
        /// The objects that would be adopted and need confirmation, cluster-scoped ones first.
        objects: Vec<ObjectKey>,
    },
    /// An inventory lists no objects.
    #[error("inventory {inventory}: nothing to adopt: the inventory lists no objects")]
    EmptyInventory {
        /// The inventory as the command line names it.
        inventory: String,
    },
    /// An inventory lists objects, and all of them are skipped.
    #[error("inventory {inventory}: nothing to adopt: all objects are skipped")]
    NothingToAdopt {
        /// The inventory as the command line names it.
        inventory: String,
    },
}

impl Refusal {
    /// Returns the UIDs of the objects that would be lost with a namespace or CRD, and the resources in it that could
    /// not be listed; nothing for any other refusal.
    pub fn lost_with_container(&self) -> BTreeSet<String> {
        match self {
            Self::HoldsOthers { uids, unknown, .. } => uids.iter().chain(unknown).cloned().collect(),
            _ => BTreeSet::new(),
        }
    }

    /// Returns the object that may not be written; `None` if the refusal is about the run as a whole, or about the
    /// parent of the set.
    pub fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Overlap { object, .. }
            | Self::InNoSet { object, .. }
            | Self::OfAnotherSet { object, .. }
            | Self::PrunesStorage { object, .. }
            | Self::OwnsDependents { object, .. }
            | Self::OwnsUndetachable { object, .. }
            | Self::PrunesParent { object, .. } => Some(object),
            Self::HoldsOthers { container, .. } | Self::HoldsDesired { container, .. } => Some(container),
            _ => None,
        }
    }

    /// Returns the objects that may not be written, each with the first of its refusals.
    pub fn first_by_object(refusals: &[Self]) -> BTreeMap<&ObjectKey, &Self> {
        let of_objects = refusals
            .iter()
            .rev()
            .filter_map(|refusal| Some((refusal.object()?, refusal)));
        of_objects.collect()
    }

    /// Returns whether the refusal is about a loss of data. `--allow-data-loss` or the consent of the user overrides
    /// it.
    pub fn is_data_loss(&self) -> bool {
        matches!(
            self,
            Self::HoldsOthers { .. }
                | Self::PrunesStorage { .. }
                | Self::PrunesParent { .. }
                | Self::OwnsDependents { .. }
        )
    }

    /// Returns whether the refusal is about the prune of one object.
    pub fn is_of_prune(&self) -> bool {
        self.is_data_loss() || matches!(self, Self::HoldsDesired { .. } | Self::OwnsUndetachable { .. })
    }

    /// Returns whether the refusal is about pruning all members. `--allow-prune-all` or the consent of the user
    /// overrides it.
    pub fn is_prune_all(&self) -> bool {
        matches!(self, Self::EmptyManifests { .. } | Self::PrunesAll { .. })
    }

    /// Returns whether the refusal is about a set or object of another owner. `--take-over-set` overrides it, together
    /// with the consent of the user: the refusal says whose set it is.
    pub fn is_lifted_by_take_over_set(&self) -> bool {
        matches!(
            self,
            Self::OtherTooling { .. }
                | Self::NotAParent { .. }
                | Self::ManagedElsewhere {
                    operation: Operation::Delete | Operation::Disband,
                    ..
                }
        )
    }

    /// Returns whether the refusal is about another run or client that interferes with a run with `--exclusive`.
    pub fn is_of_another_run(&self) -> bool {
        matches!(self, Self::RunUnderWay { .. } | Self::SetChanged { .. })
    }

    /// Returns whether `--yes` lifts the refusal. A take-over needs `--take-over-set` as well.
    pub fn is_lifted_by_yes(&self) -> bool {
        self.is_lifted_by_take_over_set()
            || matches!(
                self,
                Self::DeletesSet { .. }
                    | Self::DisbandsSet { .. }
                    | Self::ReachesOutside { .. }
                    | Self::RepairsParent { .. }
            )
    }

    /// Returns whether the user can lift the refusal by the answer to a question.
    pub fn is_lifted_by_answer(&self) -> bool {
        self.is_lifted_by_yes() || self.is_data_loss() || self.is_prune_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;

    #[test]
    fn a_refusal_can_be_read_however_many_objects_it_is_about() {
        let objects: Vec<ObjectKey> = (0..1000)
            .map(|number| ObjectKey {
                group_kind: GroupKind::new("", "ConfigMap"),
                namespace: None,
                name: number.to_string(),
            })
            .collect();
        let refusals = [
            Refusal::TooManyPrunes {
                objects: objects.clone(),
                limit: 10,
            },
            Refusal::DeletesSet {
                parent: objects[0].clone(),
                objects: objects.clone(),
            },
            Refusal::ReachesOutside {
                inventory: "helm/web".to_owned(),
                trusted_namespace: Some("shop".to_owned()),
                objects: objects.clone(),
            },
            Refusal::HoldsOthers {
                container: objects[0].clone(),
                lost: objects,
                uids: BTreeSet::new(),
                unknown: Vec::new(),
            },
        ];
        for refusal in refusals {
            let reported = refusal.to_string();
            let listed = match refusal {
                Refusal::DeletesSet { .. } => "configmap/2 and 997 more",
                _ => "configmap/9 and 990 more",
            };
            assert!(reported.contains(listed), "{reported}");
            assert!(
                reported.contains("1000 objects") && reported.len() < 400,
                "{reported}"
            );
        }
    }
}
