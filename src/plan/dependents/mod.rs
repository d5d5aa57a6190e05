//! Dependents of pruned objects that are desired or kept: the garbage collector would delete them after
//! the prune, because of their owner references.
//!
//! An object is at risk as soon as one of its owners is deleted. The garbage collector keeps it as long as
//! another owner exists, but how long that one stays is not known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Observed, Plan, Skip, SkipReason};
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
    /// The pruned objects that are these owners, or that these are deleted with.
    pub pruned: BTreeSet<ObjectKey>,
}

/// Dependents of pruned objects that are desired or kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependents {
    /// The UIDs of everything that is deleted, each with the pruned object that it is deleted with.
    pub going: BTreeMap<String, ObjectKey>,
    /// Owner references to remove before the deletes, in the order of keys.
    pub detachments: Vec<Detachment>,
    /// Key: a pruned object. Value: objects that this run cannot keep: their manifests name a deleted
    /// object as their owner, or they are the namespace or CRD of a kept object, and the pruned object
    /// owns or may own them.
    pub bound: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Dependent {
    /// Creates it from a live object.
    pub fn from_live(live: &Live) -> Self {
        Self {
            key: live.key.clone(),
            resource: Arc::clone(&live.resource),
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
            owners: uids(&live.owners),
            part_of: live.part_of.clone(),
            keep_annotation: live.keep_annotation.clone(),
        }
    }

    /// Creates it from a set's parent.
    pub fn from_parent(key: &ObjectKey, resource: &Arc<Resource>, parent: &ParentObject) -> Self {
        Self {
            key: key.clone(),
            resource: Arc::clone(resource),
            uid: parent.uid.clone(),
            resource_version: parent.resource_version.clone(),
            owners: uids(&parent.owners),
            part_of: parent.part_of.clone(),
            // The parent of a set that is kept is not deleted, whatever its annotations say.
            keep_annotation: None,
        }
    }
}

fn uids(owners: &[OwnerReference]) -> Vec<String> {
    owners.iter().map(|owner| owner.uid.clone()).collect()
}

impl Dependents {
    /// Finds the dependents for a run that deletes `prunes` and keeps `skips`.
    pub(super) fn find(desired: &Desired, observed: &Observed, prunes: &[Live], skips: &[Skip]) -> Self {
        let mut dependents = Self::default();
        if prunes.is_empty() {
            return dependents;
        }
        let desired_keys: BTreeSet<&ObjectKey> = desired.members.iter().map(|object| &object.key).collect();
        let live = observed.members.iter().chain(&observed.others);
        let in_manifests = live.filter(|live| desired_keys.contains(&live.key));
        let kept = skips.iter().filter(|skip| is_kept_from_owners(skip));
        let mut guarded: BTreeMap<&str, Dependent> = BTreeMap::new();
        for live in in_manifests.chain(kept.map(|skip| &skip.live)) {
            if live.presence == Presence::Present && !live.owners.is_empty() {
                guarded.insert(&live.uid, Dependent::from_live(live));
            }
        }
        if let Some(parent) = &observed.parent {
            guarded.insert(&parent.uid, parent.clone());
        }
        dependents.going = cascade(observed, prunes, &guarded);
        for dependent in guarded.into_values() {
            dependents.detachments.extend(dependents.detachment(dependent));
        }
        dependents
            .detachments
            .sort_by(|one, other| one.dependent.key.cmp(&other.dependent.key));
        dependents.bind(desired, observed, prunes);
        dependents
    }

    /// Finds the dependents again right before a delete, in the cluster state `observed` by then.
    /// An object that is no longer among its members is detached as planned.
    pub fn find_again(plan: &Plan, desired: &Desired, observed: &Observed) -> Self {
        let prunes: Vec<Live> = plan.all_prunes().cloned().collect();
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
        let mut found = Self::find(desired, observed, &prunes, &skips);
        let parent = observed.parent.as_ref().map(|parent| &*parent.uid);
        for planned in &plan.dependents.detachments {
            let uid = planned.dependent.uid.as_str();
            if !members.contains_key(uid) && parent != Some(uid) {
                found.detachments.push(planned.clone());
            }
        }
        found
    }

    /// Returns whether removing these owner references was planned.
    pub fn includes(&self, detachment: &Detachment) -> bool {
        let mut planned = self.detachments.iter();
        planned.any(|planned| {
            planned.dependent.uid == detachment.dependent.uid && detachment.owners.is_subset(&planned.owners)
        })
    }

    /// Removes objects that were detached.
    #[must_use]
    pub fn without(mut self, detached: &BTreeSet<ObjectKey>) -> Self {
        self.detachments
            .retain(|detachment| !detached.contains(&detachment.dependent.key));
        self
    }

    /// Returns the owner references to remove from an object, if deleted objects own it.
    fn detachment(&self, dependent: Dependent) -> Option<Detachment> {
        let (owners, pruned): (BTreeSet<String>, BTreeSet<ObjectKey>) = dependent
            .owners
            .iter()
            .filter_map(|uid| Some((uid.clone(), self.going.get(uid)?.clone())))
            .unzip();
        (!pruned.is_empty()).then_some(Detachment {
            dependent,
            owners,
            pruned,
        })
    }

    /// Returns whether this owner reference is removed before its owner is deleted.
    fn is_detached(&self, key: &ObjectKey, owner: &str) -> bool {
        let mut detachments = self.detachments.iter();
        detachments.any(|detachment| detachment.dependent.key == *key && detachment.owners.contains(owner))
    }

    /// Finds the dependents that this run cannot keep.
    fn bind(&mut self, desired: &Desired, observed: &Observed, prunes: &[Live]) {
        let mut bound: BTreeMap<ObjectKey, BTreeSet<ObjectKey>> = BTreeMap::new();
        let mut add = |pruned: &ObjectKey, dependent: &ObjectKey| {
            bound.entry(pruned.clone()).or_default().insert(dependent.clone());
        };
        for object in desired.members.iter().chain(&desired.parent) {
            for uid in owners_in_manifest(object) {
                if let Some(pruned) = self.going.get(&uid) {
                    add(pruned, &object.key);
                }
            }
        }
        for (container, owners) in &observed.container_owners {
            match owners {
                Owners::Known(uids) => {
                    for uid in uids.iter().filter(|uid| !self.is_detached(container, uid)) {
                        if let Some(pruned) = self.going.get(uid) {
                            add(pruned, container);
                        }
                    }
                }
                // Any cluster-scoped object may be among them.
                Owners::Forbidden => {
                    for live in prunes.iter().filter(|live| live.key.namespace.is_none()) {
                        add(&live.key, container);
                    }
                }
            }
        }
        self.bound = bound;
    }
}

/// Returns whether an object is kept for its own sake. One that is kept only because of its owner is
/// deleted with it.
fn is_kept_from_owners(skip: &Skip) -> bool {
    let is_left_to_owner =
        matches!(skip.reason, SkipReason::Owned { .. }) && skip.live.keep_annotation.is_none();
    skip.stays_in_cluster() && !is_left_to_owner
}

/// Returns the UIDs that a manifest names as owners.
fn owners_in_manifest(object: &DesiredObject) -> Vec<String> {
    const FIELD: &str = "ownerReferences";
    if !object.object.metadata_mentions(FIELD) {
        return Vec::new();
    }
    let metadata = object.object.metadata();
    let owners = metadata.get(FIELD).and_then(|owners| owners.as_array());
    let uids = owners
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str());
    uids.map(str::to_owned).collect()
}

/// Returns the UIDs of everything that is deleted: the pruned objects, the objects in them, and the
/// dependents of either that are not guarded. Each has the pruned object that it is deleted with.
fn cascade(
    observed: &Observed,
    prunes: &[Live],
    guarded: &BTreeMap<&str, Dependent>,
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
    let mut cascade: BTreeMap<String, ObjectKey> = BTreeMap::new();
    let mut found: Vec<(&str, &ObjectKey)> = prunes.iter().map(|live| (&*live.uid, &live.key)).collect();
    for live in prunes {
        cascade.insert(live.uid.clone(), live.key.clone());
    }
    for live in prunes {
        let held = observed.contents.get(&live.key);
        for object in held.into_iter().flat_map(|held| &held.objects) {
            found.push((&object.uid, &live.key));
        }
    }
    while let Some((uid, pruned)) = found.pop() {
        if guarded.contains_key(uid) {
            continue;
        }
        cascade.entry(uid.to_owned()).or_insert_with(|| pruned.clone());
        // Each list is followed once, so circles of owners end.
        let owned = by_owner.remove(uid).unwrap_or_default();
        found.extend(owned.into_iter().map(|owned| (owned, pruned)));
    }
    cascade
}

/// The namespaces that may hold dependents of deleted objects. For the garbage collector, an owner in
/// another namespace is absent, and cluster-scoped objects have no namespaced owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependentNamespaces<'p> {
    /// All namespaces, and cluster-scoped objects: an owner is cluster-scoped.
    Everywhere,
    /// These namespaces.
    In(BTreeSet<&'p str>),
}

impl<'p> DependentNamespaces<'p> {
    /// The namespaces that may hold dependents of a plan's prunes.
    pub fn prunes_of(plan: &'p Plan) -> Self {
        plan.all_prunes()
            .map(|live| live.key.namespace.as_deref())
            .collect::<Option<_>>()
            .map_or(Self::Everywhere, Self::In)
    }

    /// Returns whether an object in this namespace, or a cluster-scoped one, may be a dependent.
    pub fn holds(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::Everywhere => true,
            Self::In(namespaces) => namespace.is_some_and(|namespace| namespaces.contains(namespace)),
        }
    }
}

#[cfg(test)]
mod tests;
