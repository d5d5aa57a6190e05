//! Which desired or kept objects the garbage collector would delete after a prune, because
//! their owner references lead to what is pruned.
//!
//! An object is at risk as soon as one of its owners goes. The garbage collector would keep it as
//! long as another owner is there, but how long that one stays is not known.

mod holders;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use holders::holders_of_plan;
pub(super) use holders::{Division, holders};

use super::{Observed, Plan, Skip, SkipReason};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, OwnerReference, Presence};
use crate::model::parent_object::ParentObject;
use crate::model::resource::Resource;
use crate::read::Owners;

/// A live object that has owners, as far as its owner references can be removed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependant {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it was read through.
    pub resource: Arc<Resource>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`, as which its owner references were read.
    pub resource_version: String,
    /// The UIDs of all its owner references, in their order.
    pub owners: Vec<String>,
    /// The annotation or label of its own that keeps it, as `key: value`.
    pub protection: Option<String>,
}

/// The owner references that have to be removed from one object before its owners are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detachment {
    /// The object.
    pub dependant: Dependant,
    /// The UIDs of the owners that go.
    pub owners: BTreeSet<String>,
    /// The pruned objects that take these owners along, or are these owners.
    pub pruned: BTreeSet<ObjectKey>,
}

/// What pruning does to dependants that are desired or kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependants {
    /// The UIDs of what goes, with the pruned object that takes it along.
    pub going: BTreeMap<String, ObjectKey>,
    /// What has to be detached from what goes, in the order of keys.
    pub detachments: Vec<Detachment>,
    /// By pruned objects: objects whose manifests name what goes as their owner, and what it owns,
    /// or may own, of the namespaces and definitions of kinds that hold what stays. This run could
    /// do nothing to keep them.
    pub bound: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Dependant {
    /// The dependant that a live object is.
    pub fn of(live: &Live) -> Self {
        Self {
            key: live.key.clone(),
            resource: Arc::clone(&live.resource),
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
            owners: uids(&live.owners),
            protection: live.protection.clone(),
        }
    }

    /// The dependant that a set's parent is.
    pub fn of_parent(key: &ObjectKey, resource: &Arc<Resource>, parent: &ParentObject) -> Self {
        Self {
            key: key.clone(),
            resource: Arc::clone(resource),
            uid: parent.uid.clone(),
            resource_version: parent.resource_version.clone(),
            owners: uids(&parent.owners),
            // Nothing deletes the parent of a set that stays, whatever its annotations say.
            protection: None,
        }
    }
}

fn uids(owners: &[OwnerReference]) -> Vec<String> {
    owners.iter().map(|owner| owner.uid.clone()).collect()
}

impl Dependants {
    /// Finds them, for a run that deletes `prunes` and keeps `skips`.
    pub(super) fn find(desired: &Desired, observed: &Observed, prunes: &[Live], skips: &[Skip]) -> Self {
        let mut dependants = Self::default();
        if prunes.is_empty() {
            return dependants;
        }
        let desired_keys: BTreeSet<&ObjectKey> = desired.members.iter().map(|object| &object.key).collect();
        let is_desired = |live: &&Live| desired_keys.contains(&live.key);
        let live = observed.members.iter().chain(&observed.others);
        let mut guarded: BTreeMap<&str, Dependant> = BTreeMap::new();
        let kept = skips.iter().filter(|skip| is_kept_from_owners(skip));
        for live in live.filter(is_desired).chain(kept.map(|skip| &skip.live)) {
            if live.presence == Presence::Present && !live.owners.is_empty() {
                guarded.insert(&live.uid, Dependant::of(live));
            }
        }
        if let Some(parent) = &observed.parent {
            guarded.insert(&parent.uid, parent.clone());
        }
        dependants.going = going(observed, prunes, &guarded);
        for dependant in guarded.into_values() {
            dependants.detachments.extend(dependants.detachment(dependant));
        }
        dependants
            .detachments
            .sort_by(|one, other| one.dependant.key.cmp(&other.dependant.key));
        dependants.bind(desired, observed, prunes);
        dependants
    }

    /// Finds them again right before the first delete, for `observed` as it is by then. An object
    /// that is not among its members any more is detached as it was planned.
    pub fn renewed(plan: &Plan, desired: &Desired, observed: &Observed) -> Self {
        let prunes: Vec<Live> = plan.prunes.iter().flatten().cloned().collect();
        let members: HashMap<&str, &Live> = observed.members.iter().map(|live| (&*live.uid, live)).collect();
        let skips = plan.skips.iter().filter_map(|skip| {
            let live = *members.get(&*skip.live.uid)?;
            let reason = skip.reason.clone();
            Some(Skip {
                live: live.clone(),
                reason,
            })
        });
        let skips: Vec<Skip> = skips.collect();
        let mut renewed = Self::find(desired, observed, &prunes, &skips);
        let parent = observed.parent.as_ref().map(|parent| &*parent.uid);
        let is_known = |uid: &str| members.contains_key(uid) || parent == Some(uid);
        let planned = plan.dependants.detachments.iter();
        let missing = planned.filter(|planned| !is_known(&planned.dependant.uid));
        renewed.detachments.extend(missing.cloned());
        renewed
    }

    /// Returns whether removing these owner references is among what was planned.
    pub fn includes(&self, detachment: &Detachment) -> bool {
        let mut planned = self.detachments.iter();
        planned.any(|planned| {
            planned.dependant.uid == detachment.dependant.uid && detachment.owners.is_subset(&planned.owners)
        })
    }

    /// The same without these objects, which were detached.
    #[must_use]
    pub fn without(mut self, detached: &BTreeSet<ObjectKey>) -> Self {
        self.detachments
            .retain(|detachment| !detached.contains(&detachment.dependant.key));
        self
    }

    /// What has to be removed from an object, as far as it is owned by what goes.
    fn detachment(&self, dependant: Dependant) -> Option<Detachment> {
        let is_going = |uid: &&String| self.going.contains_key(*uid);
        let owners: BTreeSet<String> = dependant.owners.iter().filter(is_going).cloned().collect();
        let pruned = owners.iter().filter_map(|uid| self.going.get(uid));
        let pruned: BTreeSet<ObjectKey> = pruned.cloned().collect();
        (!pruned.is_empty()).then_some(Detachment {
            dependant,
            owners,
            pruned,
        })
    }

    /// Returns whether this owner reference is removed before its owner is deleted.
    fn is_detached(&self, key: &ObjectKey, owner: &str) -> bool {
        let mut detachments = self.detachments.iter();
        detachments.any(|detachment| detachment.dependant.key == *key && detachment.owners.contains(owner))
    }

    fn bind(&mut self, desired: &Desired, observed: &Observed, prunes: &[Live]) {
        let mut bound: BTreeMap<ObjectKey, BTreeSet<ObjectKey>> = BTreeMap::new();
        let mut add = |pruned: &ObjectKey, dependant: &ObjectKey| {
            let dependants = bound.entry(pruned.clone()).or_default();
            dependants.insert(dependant.clone());
        };
        for object in desired.members.iter().chain(&desired.parent) {
            for uid in owners_in_manifest(object) {
                if let Some(pruned) = self.going.get(&uid) {
                    add(pruned, &object.key);
                }
            }
        }
        for (holder, owners) in &observed.holder_owners {
            match owners {
                Owners::Known(uids) => {
                    let uids = uids.iter().filter(|uid| !self.is_detached(holder, uid));
                    for pruned in uids.filter_map(|uid| self.going.get(uid)) {
                        add(pruned, holder);
                    }
                }
                // Any object in no namespace may be among them.
                Owners::Forbidden => {
                    for live in prunes.iter().filter(|live| live.key.namespace.is_none()) {
                        add(&live.key, holder);
                    }
                }
            }
        }
        self.bound = bound;
    }
}

/// Where dependants of what goes may be. The garbage collector takes an owner in another namespace
/// for absent, and deletes nothing in no namespace because of an owner in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Near<'p> {
    /// In all namespaces and in none: an owner is in no namespace itself.
    Everywhere,
    /// In these namespaces.
    In(BTreeSet<&'p str>),
}

impl<'p> Near<'p> {
    /// Where dependants of what a plan prunes may be.
    pub fn prunes_of(plan: &'p Plan) -> Self {
        let namespaces = plan
            .prunes
            .iter()
            .flatten()
            .map(|live| live.key.namespace.as_deref());
        namespaces
            .collect::<Option<_>>()
            .map_or(Self::Everywhere, Self::In)
    }

    /// Returns whether an object in this namespace, or in none, may be a dependant.
    pub fn holds(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::Everywhere => true,
            Self::In(namespaces) => namespace.is_some_and(|namespace| namespaces.contains(namespace)),
        }
    }
}

/// Whether an object is kept for its own sake: what is only left to its owner goes with it.
fn is_kept_from_owners(skip: &Skip) -> bool {
    let is_left_to_owner = matches!(skip.reason, SkipReason::Owned { .. }) && skip.live.protection.is_none();
    skip.is_kept() && !is_left_to_owner
}

/// Everything that goes with the pruned objects: themselves, what they hold, and what is owned by
/// either and not guarded. Each UID with the pruned object that it goes with.
fn going(
    observed: &Observed,
    prunes: &[Live],
    guarded: &BTreeMap<&str, Dependant>,
) -> BTreeMap<String, ObjectKey> {
    let mut by_owner: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut add = |owner, uid| by_owner.entry(owner).or_default().push(uid);
    for live in &observed.members {
        for owner in &live.owners {
            add(owner.uid.as_str(), live.uid.as_str());
        }
    }
    for held in observed.contents.values().flat_map(|contents| &contents.objects) {
        for owner in &held.owners {
            add(owner.as_str(), held.uid.as_str());
        }
    }
    let mut going: BTreeMap<String, ObjectKey> = BTreeMap::new();
    let mut found: Vec<(&str, &ObjectKey)> = prunes.iter().map(|live| (&*live.uid, &live.key)).collect();
    for live in prunes {
        going.insert(live.uid.clone(), live.key.clone());
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
        going.entry(uid.to_owned()).or_insert_with(|| pruned.clone());
        // Each list is followed once, so circles of owners end.
        let owned = by_owner.remove(uid).unwrap_or_default();
        found.extend(owned.into_iter().map(|owned| (owned, pruned)));
    }
    going
}

/// The UIDs that a manifest names as owners.
fn owners_in_manifest(object: &DesiredObject) -> Vec<String> {
    const FIELD: &str = "ownerReferences";
    let text = object.object.metadata_text();
    if !text.windows(FIELD.len()).any(|part| part == FIELD.as_bytes()) {
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

#[cfg(test)]
mod tests;
