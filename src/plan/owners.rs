//! Which desired or kept objects the garbage collector would delete after a prune, because
//! their owner references lead to what is pruned.
//!
//! An object is at risk as soon as one of its owners goes. The garbage collector would keep it as
//! long as another owner is there, but how long that one stays is not known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Observed, Skip, SkipReason};
use crate::desired::{Desired, DesiredObject};
use crate::discovery::Resource;
use crate::identity::{GroupKind, ObjectKey};
use crate::observe::{Live, OwnerReference, ParentObject, Presence};

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
    /// By pruned objects: objects whose manifests name what goes as their owner, and namespaces
    /// of the manifests that it owns. Nothing that this run could do would keep them.
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
        dependants.bind(desired, observed);
        dependants
    }

    /// What has to be removed from an object, as far as it is owned by what goes.
    pub fn detachment(&self, dependant: Dependant) -> Option<Detachment> {
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

    fn bind(&mut self, desired: &Desired, observed: &Observed) {
        let mut bound: BTreeMap<ObjectKey, BTreeSet<ObjectKey>> = BTreeMap::new();
        let mut add = |uid: &String, key: &dyn Fn() -> ObjectKey| {
            if let Some(pruned) = self.going.get(uid) {
                bound.entry(pruned.clone()).or_default().insert(key());
            }
        };
        for object in desired.members.iter().chain(&desired.parent) {
            for uid in owners_in_manifest(object) {
                add(&uid, &|| object.key.clone());
            }
        }
        for (name, owners) in &observed.namespace_owners {
            let key = || ObjectKey {
                group_kind: GroupKind::new("", "Namespace"),
                namespace: None,
                name: name.clone(),
            };
            for uid in owners {
                add(uid, &key);
            }
        }
        self.bound = bound;
    }
}

/// Whether an object is kept for its own sake: what is only left to its owner goes with it.
fn is_kept_from_owners(skip: &Skip) -> bool {
    let is_left_to_owner = matches!(skip.reason, SkipReason::Owned(_)) && skip.live.protection.is_none();
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
mod tests {
    use super::super::fixtures::{desired, live};
    use super::*;
    use crate::observe::{Contents, Held};

    fn owned(kind: &str, namespace: Option<&str>, name: &str, owners: &[&str]) -> Live {
        let owners = owners.iter().map(|uid| OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Any".to_owned(),
            name: "any".to_owned(),
            uid: (*uid).to_owned(),
        });
        Live {
            uid: name.to_owned(),
            owners: owners.collect(),
            ..live(kind, namespace, name)
        }
    }

    fn config_map(name: &str, owners: &[&str]) -> Live {
        owned("ConfigMap", Some("shop"), name, owners)
    }

    fn kept(live: &Live, reason: SkipReason) -> Skip {
        Skip {
            live: live.clone(),
            reason,
        }
    }

    /// What is detached from which owners, and because of which pruned objects.
    fn found(
        members: &[Live],
        skips: &[Skip],
        observed: Observed,
    ) -> Vec<(String, Vec<String>, Vec<String>)> {
        let desired = Desired {
            members: vec![desired("ConfigMap", Some("shop"), "desired")],
            ..Desired::default()
        };
        let skipped: BTreeSet<&str> = skips.iter().map(|skip| &*skip.live.uid).collect();
        let is_pruned = |live: &&Live| live.key.name.starts_with("pruned") && !skipped.contains(&*live.uid);
        let prunes: Vec<Live> = members.iter().filter(is_pruned).cloned().collect();
        let observed = Observed {
            members: members.to_vec(),
            ..observed
        };
        let dependants = Dependants::find(&desired, &observed, &prunes, skips);
        let detachments = dependants.detachments.into_iter();
        detachments
            .map(|detachment| {
                let pruned = detachment.pruned.into_iter().map(|key| key.name);
                let owners = detachment.owners.into_iter();
                (detachment.dependant.key.name, owners.collect(), pruned.collect())
            })
            .collect()
    }

    fn expected(name: &str, owners: &[&str], pruned: &[&str]) -> Vec<(String, Vec<String>, Vec<String>)> {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        vec![(name.to_owned(), texts(owners), texts(pruned))]
    }

    #[test]
    fn desired_and_kept_objects_are_at_risk_and_what_is_left_to_its_owner_is_not() {
        let pruned = config_map("pruned", &[]);
        let nothing = || Vec::new();
        let desired = config_map("desired", &["pruned"]);
        let at_risk = expected("desired", &["pruned"], &["pruned"]);
        assert_eq!(
            found(&[pruned.clone(), desired], &[], Observed::default()),
            at_risk
        );
        let elsewhere = config_map("desired", &["elsewhere"]);
        assert_eq!(
            found(&[pruned.clone(), elsewhere], &[], Observed::default()),
            nothing()
        );

        let other = config_map("other", &["pruned"]);
        let owner = other.owners[0].clone();
        let members = [pruned.clone(), other.clone()];
        let left = kept(&other, SkipReason::Owned(owner.clone()));
        assert_eq!(found(&members, &[left], Observed::default()), nothing());
        let marked = Live {
            protection: Some("a: b".to_owned()),
            ..other.clone()
        };
        let at_risk = expected("other", &["pruned"], &["pruned"]);
        for reason in [SkipReason::Owned(owner), SkipReason::HoldsParent] {
            let skips = [kept(&marked, reason)];
            assert_eq!(found(&members, &skips, Observed::default()), at_risk);
        }
        let going = kept(&marked, SkipReason::Terminating { waits_for: vec![] });
        assert_eq!(found(&members, &[going], Observed::default()), nothing());

        let parent = Observed {
            parent: Some(Dependant::of(&config_map("web", &["pruned"]))),
            ..Observed::default()
        };
        assert_eq!(
            found(&[pruned], &[], parent),
            expected("web", &["pruned"], &["pruned"])
        );
    }

    #[test]
    fn owners_are_followed_through_what_goes_with_them() {
        // In a circle, and by two ways.
        let between = config_map("between", &["pruned-1", "last"]);
        let last = config_map("last", &["between"]);
        let desired = config_map("desired", &["elsewhere", "last", "pruned-2"]);
        let skips = [&between, &last].map(|live| kept(live, SkipReason::Owned(live.owners[0].clone())));
        let [one, two] = ["pruned-1", "pruned-2"].map(|name| config_map(name, &[]));
        let members = [one, two, between, last, desired];
        assert_eq!(
            found(&members, &skips, Observed::default()),
            expected("desired", &["last", "pruned-2"], &["pruned-1", "pruned-2"])
        );
    }

    #[test]
    fn what_a_container_holds_goes_with_it() {
        let mut definition = owned(
            "CustomResourceDefinition.apiextensions.k8s.io",
            None,
            "pruned",
            &[],
        );
        definition.defines = Some(GroupKind::new("example.com", "Widget"));
        let widget = |uid: &str, owners: &[&str]| Held {
            key: live("Widget.example.com", Some("shop"), uid).key,
            uid: uid.to_owned(),
            owners: owners.iter().map(|&uid| uid.to_owned()).collect(),
        };
        let contents = Contents {
            objects: vec![widget("widget", &[])],
            unknown: Vec::new(),
        };
        let observed = Observed {
            contents: BTreeMap::from([(definition.key.clone(), contents)]),
            ..Observed::default()
        };
        let desired = config_map("desired", &["widget"]);
        assert_eq!(
            found(&[definition, desired], &[], observed),
            expected("desired", &["widget"], &["pruned"])
        );
    }

    #[test]
    fn a_namespace_of_the_manifests_is_bound_to_its_owner() {
        let pruned = config_map("pruned", &[]);
        let observed = Observed {
            members: vec![pruned.clone()],
            namespace_owners: BTreeMap::from([("shop".to_owned(), vec!["pruned".to_owned()])]),
            ..Observed::default()
        };
        let dependants = Dependants::find(&Desired::default(), &observed, &[pruned], &[]);
        let bound = dependants.bound.values().flatten().map(ToString::to_string);
        assert_eq!(bound.collect::<Vec<_>>(), ["namespace/shop"]);
    }
}
