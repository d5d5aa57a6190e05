//! What has moved between the making of a plan and its carrying out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Intent, NamespaceUids, SavedCluster, SavedDetachment, SavedParent, SavedPlan, Seen, intents};
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::parent_object::ParentObject;
use crate::model::set::Set;
use crate::plan::{Plan, Refusal};

/// What the cluster is now, and what would be planned for it.
#[derive(Debug)]
pub struct Fresh<'a> {
    /// The cluster.
    pub cluster: &'a SavedCluster,
    /// The set.
    pub set: &'a Set,
    /// The objects that are wanted.
    pub desired: &'a Desired,
    /// The plan for them.
    pub plan: &'a Plan,
    /// The parent.
    pub parent: Option<&'a ParentObject>,
    /// The rest of the parent, where it has a manifest and is there.
    pub parent_seen: Option<&'a Seen>,
    /// The namespaces.
    pub namespaces: &'a NamespaceUids,
    /// The objects that `looked_at` names, as far as they are there.
    pub seen: &'a BTreeMap<ObjectKey, Seen>,
}

/// One thing that is not as the plan has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// The cluster is another one.
    OtherCluster {
        /// The address of the one that the plan was made for.
        then: String,
        /// The address of this one.
        now: String,
    },
    /// Nothing shows that this is the cluster that the plan was made for.
    UnknownCluster {
        /// The address of that one.
        then: String,
        /// The address of this one.
        now: String,
    },
    /// An object was to be created, and is there.
    Created(ObjectKey),
    /// An object is gone.
    Deleted(ObjectKey),
    /// An object was deleted and made again.
    Replaced(ObjectKey),
    /// An object is another.
    Changed(ObjectKey),
    /// An object joined the set that the plan does not know.
    Joined(ObjectKey),
    /// An object left the set.
    Left(ObjectKey),
    /// Something else would be done with an object now.
    Judged {
        /// The object.
        key: ObjectKey,
        /// What would be done.
        intent: Intent,
    },
    /// An object would be detached from other owners than the plan says.
    Detached(ObjectKey),
    /// A namespace is not the one that it was.
    Namespace(String),
    /// The parent was made meanwhile.
    ParentCreated(ObjectKey),
    /// The parent is gone.
    ParentDeleted(ObjectKey),
    /// The parent was deleted and made again.
    ParentReplaced(ObjectKey),
    /// The parent records something else, or another tool.
    ParentRecord {
        /// The parent.
        parent: ObjectKey,
        /// The annotations that differ.
        annotations: Vec<String>,
    },
    /// The parent, which has a manifest, is another.
    ParentChanged(ObjectKey),
    /// The parent would record something else in the end.
    Record(ObjectKey),
    /// The run is refused now.
    Refused(Refusal),
    /// No plan can be made any more.
    Unplannable(String),
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCluster { then, now } => write!(
                f,
                "the plan was made for another cluster than that at {now}, for one at {then}"
            ),
            Self::UnknownCluster { then, now } => write!(
                f,
                "nothing shows that the cluster at {now} is the one at {then} that the plan was made for: \
                 address and certificate authority are not the same, and the UID of the namespace \
                 kube-system, which would tell, may not be read"
            ),
            Self::Created(key) => write!(f, "{key} was created meanwhile"),
            Self::Deleted(key) => write!(f, "{key} was deleted meanwhile"),
            Self::Replaced(key) => write!(f, "{key} was deleted and created again meanwhile"),
            Self::Changed(key) => write!(f, "{key} was changed meanwhile"),
            Self::Joined(key) => write!(f, "{key} joined the set meanwhile"),
            Self::Left(key) => write!(f, "{key} left the set meanwhile"),
            Self::Judged { key, intent } => {
                write!(f, "{key} is not what it was: ")?;
                match intent {
                    Intent::Apply => f.write_str("it would be sent"),
                    Intent::LeaveAlone => f.write_str("it would be left alone"),
                    Intent::Prune => f.write_str("it would be pruned"),
                    Intent::Skip(reason) => write!(f, "it would be skipped: {reason}"),
                }
            }
            Self::Detached(key) => write!(f, "{key}: the plan removes other owner references from it"),
            Self::Namespace(name) => write!(f, "namespace/{name} is not the one that the plan was made for"),
            Self::ParentCreated(parent) => write!(f, "the set's parent {parent} was created meanwhile"),
            Self::ParentDeleted(parent) => write!(f, "the set's parent {parent} was deleted meanwhile"),
            Self::ParentReplaced(parent) => {
                write!(
                    f,
                    "the set's parent {parent} was deleted and created again meanwhile"
                )
            }
            Self::ParentRecord { parent, annotations } => write!(
                f,
                "the record of the set's parent {parent} was changed meanwhile: {}",
                annotations.join(", ")
            ),
            Self::ParentChanged(parent) => write!(f, "the set's parent {parent} was changed meanwhile"),
            Self::Record(parent) => write!(f, "the set's parent {parent} would record other places"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unplannable(message) => f.write_str(message),
        }
    }
}

/// The objects that have to be read before it can be said what has moved: those that either
/// plan writes, and those that only one of them knows.
pub fn looked_at(saved: &SavedPlan, plan: &Plan, desired: &Desired) -> BTreeSet<ObjectKey> {
    let writes = |intent: &Intent| matches!(intent, Intent::Apply | Intent::Prune);
    let now = intents(plan, desired);
    let then = saved.objects.iter();
    let then = then.filter(|object| writes(&object.intent) || !now.contains_key(&object.key));
    let then = then.map(|object| object.key.clone());
    let now = now.iter().filter(|(_, (intent, _))| writes(intent));
    now.map(|(key, _)| key.clone()).chain(then).collect()
}

/// Everything that is not as the plan has it, each object once. Of another cluster nothing
/// else is told.
pub fn moved(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<Moved> {
    if let Some(other) = cluster(saved, fresh) {
        return vec![other];
    }
    let mut found = namespaces(saved, fresh);
    found.extend(parent(saved, fresh));
    let known: BTreeSet<&ObjectKey> = saved.objects.iter().map(|object| &object.key).collect();
    let now = intents(fresh.plan, fresh.desired);
    for object in &saved.objects {
        let key = || object.key.clone();
        let intended = now.get(&object.key);
        let seen = match (&object.intent, intended) {
            // What is not written was not read whole; that it is judged alike says enough.
            (Intent::LeaveAlone | Intent::Skip(_), Some((_, Some(uid)))) => Some(Seen::left_alone(uid)),
            _ => fresh.seen.get(&object.key).cloned(),
        };
        found.extend(match (&object.seen, seen, intended) {
            (None, Some(_), _) => Some(Moved::Created(key())),
            (Some(_), None, _) => Some(Moved::Deleted(key())),
            (Some(then), Some(now), _) if then.uid != now.uid => Some(Moved::Replaced(key())),
            (_, _, None) => Some(Moved::Left(key())),
            (Some(then), Some(now), _) if is_other(then, &now) => Some(Moved::Changed(key())),
            (_, _, Some((intent, _))) if *intent != object.intent => Some(Moved::Judged {
                key: key(),
                intent: intent.clone(),
            }),
            _ => None,
        });
    }
    let joined = now.into_keys().filter(|key| !known.contains(key));
    found.extend(joined.map(Moved::Joined));
    found.extend(detached(saved, fresh));
    if found.is_empty() && saved.record != fresh.plan.record_after {
        found.push(Moved::Record(fresh.set.parent.clone()));
    }
    found.extend(fresh.plan.refusals.iter().cloned().map(Moved::Refused));
    found
}

fn detached(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<Moved> {
    let now = super::detached(fresh.plan);
    let by_key = |all: &[SavedDetachment]| -> BTreeMap<ObjectKey, SavedDetachment> {
        let all = all.iter().cloned();
        all.map(|detachment| (detachment.key.clone(), detachment))
            .collect()
    };
    let (then, now) = (by_key(&saved.detached), by_key(&now));
    let keys: BTreeSet<&ObjectKey> = then.keys().chain(now.keys()).collect();
    let is_other = |key: &&ObjectKey| then.get(*key) != now.get(*key);
    let others = keys.into_iter().filter(is_other);
    others.cloned().map(Moved::Detached).collect()
}

/// A mere change of the status, or of who owns fields, is another resourceVersion and the
/// same content. The content of what was to be left alone is not known.
fn is_other(then: &Seen, now: &Seen) -> bool {
    let is_known = !then.digest.is_empty();
    is_known && then.resource_version != now.resource_version && then.digest != now.digest
}

/// One cluster may have several addresses; one UID is in no two clusters.
fn cluster(saved: &SavedPlan, fresh: &Fresh<'_>) -> Option<Moved> {
    let (then, now) = (&saved.cluster, fresh.cluster);
    let addresses = || (then.server.clone(), now.server.clone());
    if let (Some(one), Some(other)) = (&then.uid, &now.uid) {
        return (one != other).then(|| {
            let (then, now) = addresses();
            Moved::OtherCluster { then, now }
        });
    }
    let is_same_endpoint =
        then.server == now.server && then.certificate_authority == now.certificate_authority;
    (!is_same_endpoint && !has_anything_in_common(saved, fresh)).then(|| {
        let (then, now) = addresses();
        Moved::UnknownCluster { then, now }
    })
}

fn has_anything_in_common(saved: &SavedPlan, fresh: &Fresh<'_>) -> bool {
    let is_there =
        |(name, uid): (&String, &Option<String>)| uid.is_some() && fresh.namespaces.get(name) == Some(uid);
    let uid_of_parent = saved.parent.as_ref().map(|parent| &parent.uid);
    saved.namespaces.iter().any(is_there)
        || (uid_of_parent.is_some() && uid_of_parent == fresh.parent.map(|parent| &parent.uid))
}

/// Of a namespace that may not be read nobody knows which one it is, nor whether it exists.
fn namespaces(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<Moved> {
    let is_other = |name: &&String| match (saved.namespaces.get(*name), fresh.namespaces.get(*name)) {
        (Some(None), _) | (_, Some(None)) => false,
        (then, now) => then != now,
    };
    let names = names(saved, fresh).into_iter();
    names.filter(is_other).cloned().map(Moved::Namespace).collect()
}

/// The namespaces of which nobody knows whether they are those of the plan, since they could
/// not be read then, or cannot be now.
pub fn uncompared(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<String> {
    let is_unread = |name: &&String| {
        let both = [saved.namespaces.get(*name), fresh.namespaces.get(*name)];
        both.contains(&Some(&None))
    };
    let names = names(saved, fresh).into_iter();
    names.filter(is_unread).cloned().collect()
}

fn names<'a>(saved: &'a SavedPlan, fresh: &Fresh<'a>) -> BTreeSet<&'a String> {
    saved.namespaces.keys().chain(fresh.namespaces.keys()).collect()
}

fn parent(saved: &SavedPlan, fresh: &Fresh<'_>) -> Option<Moved> {
    let parent = fresh.set.parent.clone();
    let now = fresh
        .parent
        .map(|parent| SavedParent::new(parent, fresh.parent_seen.cloned()));
    match (&saved.parent, now) {
        (None, None) => None,
        (None, Some(_)) => Some(Moved::ParentCreated(parent)),
        (Some(_), None) => Some(Moved::ParentDeleted(parent)),
        (Some(then), Some(now)) if then.uid != now.uid => Some(Moved::ParentReplaced(parent)),
        (Some(then), Some(now)) => {
            let keys: BTreeSet<&String> = then.bookkeeping.keys().chain(now.bookkeeping.keys()).collect();
            let is_other_value = |key: &&&String| then.bookkeeping.get(**key) != now.bookkeeping.get(**key);
            let annotations: Vec<String> = keys
                .iter()
                .filter(is_other_value)
                .map(|key| (*key).clone())
                .collect();
            if !annotations.is_empty() {
                return Some(Moved::ParentRecord { parent, annotations });
            }
            let is_same = match (&then.seen, &now.seen) {
                (Some(then), Some(now)) => !is_other(then, now),
                (then, now) => then.is_none() && now.is_none(),
            };
            (!is_same).then_some(Moved::ParentChanged(parent))
        }
    }
}
