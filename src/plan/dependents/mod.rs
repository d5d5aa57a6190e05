//! Desired and kept objects, and objects that these need, which have owner references to pruned objects: the garbage
//! collector would delete them after the prune.
//!
//! An object counts as a dependent as soon as one of its owners is deleted. If it has another owner, the garbage
//! collector keeps the object until that owner is deleted, too, and it is not known when that will be.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{Observed, Plan, Policy, Pruning, ReasonToKeep, Risk, Skip, is_namespace_or_crd, loses_data};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::containers::Owners;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, OwnerReference, Presence};
use crate::model::resource::Resource;
use crate::model::set::ParentObject;

/// A live object with owner references, with the fields needed to remove them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependent {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it was read through.
    pub resource: Arc<Resource>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion` at which its owner references were read.
    pub resource_version: String,
    /// The UIDs of all its owner references, in their order.
    pub owners: Vec<String>,
    /// The id of the set whose part-of label it carries, if any.
    pub part_of: Option<String>,
    /// The annotation or label of its own that keeps it, as `key: value`.
    pub keep_annotation: Option<String>,
}

/// The owner references that have to be removed from one object before its owners are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detachment {
    /// The object.
    pub dependent: Dependent,
    /// The UIDs of the owners that are deleted.
    pub owners: BTreeSet<String>,
    /// The pruned objects that cause it: the `owners` themselves, or objects with which an owner is deleted.
    pub pruned: BTreeSet<ObjectKey>,
}

/// Desired and kept objects that have owner references to pruned objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependents {
    /// Key: the UID of an object that is deleted. Value: the pruned object that it is deleted with, which may be
    /// itself.
    pub deleted: BTreeMap<String, ObjectKey>,
    /// Owner references to remove before the deletes.
    pub detachments: Vec<Detachment>,
    /// Key: a pruned object. Value: dependents of it that the run cannot keep by removing owner references. There are
    /// two kinds: desired objects whose manifests name a deleted object as their owner, and namespaces and CRDs that
    /// hold an object which stays and that the pruned object owns or may own.
    pub undetachable: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Dependent {
    /// Creates a dependent from a live object.
    pub fn from_live(live: &Live) -> Self {
        Self {
            key: live.key.clone(),
            resource: Arc::clone(&live.resource),
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
            owners: to_uids(&live.owners),
            part_of: live.part_of.clone(),
            keep_annotation: live.keep_annotation.clone(),
        }
    }

    /// Creates a dependent from a set's parent.
    pub fn from_parent(key: &ObjectKey, resource: &Arc<Resource>, parent: &ParentObject) -> Self {
        Self {
            key: key.clone(),
            resource: Arc::clone(resource),
            uid: parent.uid.clone(),
            resource_version: parent.resource_version.clone(),
            owners: to_uids(&parent.owners),
            part_of: parent.part_of.clone(),
            // The annotation is only reported as the reason to keep an object. The parent of a set that continues is
            // kept whatever annotations it has.
            keep_annotation: None,
        }
    }
}

fn to_uids(owners: &[OwnerReference]) -> Vec<String> {
    owners.iter().map(|owner| owner.uid.clone()).collect()
}

impl Dependents {
    /// Finds the dependents for a run that deletes `prunes` and keeps `skips`.
    pub(super) fn find(
        desired: &Desired,
        desired_uids: &HashSet<String>,
        observed: &Observed,
        prunes: &[&Live],
        skips: &[Skip],
        policy: &Policy,
    ) -> Self {
        // A deletion of the whole set deletes what its members own, once its losses are allowed.
        let losses_of_owned = match policy.pruning {
            Pruning::WholeSet => policy.data_loss,
            _ => Risk::Refused,
        };
        let mut dependents = Self::default();
        if prunes.is_empty() {
            return dependents;
        }
        let desired_keys: BTreeSet<&ObjectKey> = desired.members.iter().map(|object| &object.key).collect();
        let live = observed.members.iter().chain(&observed.others);
        let in_manifests =
            live.filter(|live| desired_keys.contains(&live.key) || desired_uids.contains(&live.uid));
        let kept = skips
            .iter()
            .filter(|skip| must_outlive_owners(skip, policy, losses_of_owned));
        let needed = observed.dependencies.outside.values();
        // The objects with owner references that stay in the cluster, by UID.
        let mut staying: BTreeMap<&str, Dependent> = BTreeMap::new();
        for live in in_manifests.chain(kept.map(|skip| &skip.live)).chain(needed) {
            if live.presence == Presence::Present && !live.owners.is_empty() {
                staying.insert(&live.uid, Dependent::from_live(live));
            }
        }
        if let Some(parent) = &observed.parent {
            staying.insert(&parent.uid, parent.clone());
        }
        dependents.deleted = find_deleted_with_prunes(observed, prunes, &staying);
        for dependent in staying.into_values() {
            dependents
                .detachments
                .extend(dependents.new_detachment(dependent));
        }
        dependents
            .detachments
            .sort_by(|one, other| one.dependent.key.cmp(&other.dependent.key));
        dependents.undetachable = dependents.find_undetachable_dependents_by_prune(desired, observed, prunes);
        dependents
    }

    /// Finds the dependents again right before a delete, in `observed`, the cluster state at that moment.
    /// A planned detachment stays if its object is not in `observed`: it may not have the set's label at that moment.
    /// `desired_uids` are the UIDs of the objects that the run has applied: two API groups can serve one object.
    pub fn find_again(
        plan: &Plan,
        desired: &Desired,
        desired_uids: &HashSet<String>,
        observed: &Observed,
        policy: &Policy,
    ) -> Self {
        let prunes: Vec<&Live> = plan.all_prunes().collect();
        let members: HashMap<&str, &Live> = observed.members.iter().map(|live| (&*live.uid, live)).collect();
        let mut skips = Vec::new();
        for skip in &plan.skips {
            if let Some(live) = members.get(&*skip.live.uid) {
                skips.push(Skip {
                    live: (*live).clone(),
                    reason: skip.reason.clone(),
                });
            }
        }
        let mut found = Self::find(desired, desired_uids, observed, &prunes, &skips, policy);
        let seen: HashSet<&str> = observed
            .members
            .iter()
            .chain(&observed.others)
            .map(|live| &*live.uid)
            .chain(observed.parent.iter().map(|parent| &*parent.uid))
            .collect();
        let planned = plan.dependents.detachments.iter();
        let unseen = planned.filter(|planned| !seen.contains(&*planned.dependent.uid));
        found.detachments.extend(unseen.cloned());
        found
    }

    /// Returns whether these dependents include this detachment: of the same object, from the same or more owners.
    pub fn includes_detachment(&self, detachment: &Detachment) -> bool {
        let mut planned = self.detachments.iter();
        planned.any(|planned| {
            planned.dependent.uid == detachment.dependent.uid && detachment.owners.is_subset(&planned.owners)
        })
    }

    /// Removes the detachments of these objects, because their owner references were removed.
    #[must_use]
    pub fn without(mut self, detached: &BTreeSet<ObjectKey>) -> Self {
        self.detachments
            .retain(|detachment| !detached.contains(&detachment.dependent.key));
        self
    }

    /// Creates the detachment of an object from its deleted owners; `None` if it has no such owner.
    fn new_detachment(&self, dependent: Dependent) -> Option<Detachment> {
        let (owners, pruned): (BTreeSet<String>, BTreeSet<ObjectKey>) = dependent
            .owners
            .iter()
            .filter_map(|uid| Some((uid.clone(), self.deleted.get(uid)?.clone())))
            .unzip();
        (!pruned.is_empty()).then_some(Detachment {
            dependent,
            owners,
            pruned,
        })
    }

    /// Returns whether this owner reference is removed before its owner is deleted.
    fn is_detached(&self, key: &ObjectKey, owner_uid: &str) -> bool {
        let mut detachments = self.detachments.iter();
        detachments
            .any(|detachment| detachment.dependent.key == *key && detachment.owners.contains(owner_uid))
    }

    /// Finds the dependents that the run cannot keep; see [`Self::undetachable`].
    fn find_undetachable_dependents_by_prune(
        &self,
        desired: &Desired,
        observed: &Observed,
        prunes: &[&Live],
    ) -> BTreeMap<ObjectKey, BTreeSet<ObjectKey>> {
        let mut undetachable: BTreeMap<ObjectKey, BTreeSet<ObjectKey>> = BTreeMap::new();
        let mut add = |pruned: &ObjectKey, dependent: &ObjectKey| {
            let dependents = undetachable.entry(pruned.clone()).or_default();
            dependents.insert(dependent.clone());
        };
        for object in desired.members.iter().chain(&desired.parent) {
            for uid in read_owner_uids_of_manifest(object) {
                if let Some(pruned) = self.deleted.get(&uid) {
                    add(pruned, &object.key);
                }
            }
        }
        for (container, owners) in &observed.container_owners {
            match owners {
                Owners::Known(uids) => {
                    for uid in uids.iter().filter(|uid| !self.is_detached(container, uid)) {
                        if let Some(pruned) = self.deleted.get(uid) {
                            add(pruned, container);
                        }
                    }
                }
                // The owners may not be read, and any cluster-scoped object may be one. Err on the side of refusal.
                Owners::Forbidden => {
                    for live in prunes.iter().filter(|live| live.key.namespace.is_none()) {
                        add(&live.key, container);
                    }
                }
            }
        }
        undetachable
    }
}

/// Returns whether a kept object is to stay when its owners are deleted. An object that is kept for nothing but its owner
/// is deleted with it, as intended, unless a keep annotation protects it, or more than the object would be lost: no rule
/// about losses of data judges what the garbage collector deletes. The user may have allowed such losses for the whole
/// set, except those of a namespace or CRD, whose contents were not read.
fn must_outlive_owners(skip: &Skip, policy: &Policy, losses_of_owned: Risk) -> bool {
    let live = &skip.live;
    match skip.reason {
        ReasonToKeep::Owned { .. } => {
            let is_lossy = live.parent_of.is_some() || loses_data(&live.key.group_kind);
            live.keep_annotation.is_some()
                || is_namespace_or_crd(live)
                || is_lossy && losses_of_owned == Risk::Refused
        }
        // A copy is deleted with its owner, whether pruning is enabled or not.
        ReasonToKeep::PruningDisabled => live.has_part_of_label_written_by(&policy.appliers),
        _ => skip.stays_despite_pruning(),
    }
}

/// Returns the UIDs that a manifest names as owners.
fn read_owner_uids_of_manifest(object: &DesiredObject) -> Vec<String> {
    const FIELD: &str = "ownerReferences";
    if !object.object.may_mention_metadata_key(FIELD) {
        return Vec::new();
    }
    let metadata = object.object.metadata();
    let owners = metadata.get(FIELD).and_then(|owners| owners.as_array());
    owners
        .into_iter()
        .flatten()
        .filter_map(|owner| Some(owner["uid"].as_str()?.to_owned()))
        .collect()
}

/// Returns the UIDs of all objects that are deleted, each with the pruned object that it is deleted with: the pruned
/// objects, the objects in pruned containers, and the dependents of both. Objects in
/// `staying` are not deleted, and neither are objects that have no other owners than those.
fn find_deleted_with_prunes(
    observed: &Observed,
    prunes: &[&Live],
    staying: &BTreeMap<&str, Dependent>,
) -> BTreeMap<String, ObjectKey> {
    let mut by_owner: HashMap<&str, Vec<&str>> = HashMap::new();
    for live in &observed.members {
        for owner in &live.owners {
            by_owner.entry(&owner.uid).or_default().push(&live.uid);
        }
    }
    for held in observed.contents.values().flat_map(|contents| &contents.objects) {
        for owner in &held.owners {
            by_owner.entry(owner).or_default().push(&held.uid);
        }
    }
    // A pruned object is deleted with itself, even if another pruned object owns it.
    let mut deleted: BTreeMap<String, ObjectKey> = BTreeMap::new();
    for live in prunes {
        deleted.insert(live.uid.clone(), live.key.clone());
    }
    let mut to_follow: Vec<(&str, &ObjectKey)> = prunes.iter().map(|live| (&*live.uid, &live.key)).collect();
    for live in prunes {
        let held = observed.contents.get(&live.key);
        for object in held.into_iter().flat_map(|held| &held.objects) {
            to_follow.push((&object.uid, &live.key));
        }
    }
    while let Some((uid, pruned)) = to_follow.pop() {
        if staying.contains_key(uid) {
            continue;
        }
        deleted.entry(uid.to_owned()).or_insert_with(|| pruned.clone());
        // The objects of each owner are taken out of the map, so the loop ends even if objects own each other.
        let owned = by_owner.remove(uid).unwrap_or_default();
        to_follow.extend(owned.into_iter().map(|owned| (owned, pruned)));
    }
    deleted
}

#[cfg(test)]
mod tests;
