//! The differences between a saved plan and the cluster when it is applied. Any of them ends the run before its first
//! write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{
    Intent, MAKE_A_NEW_PLAN, NamespaceUids, SavedCluster, SavedDetachment, SavedParent, SavedPlan, Seen,
    intents,
};
use crate::error::{Error, ErrorKind};
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::pointer::Pointer;
use crate::model::set::{ParentObject, Set};
use crate::plan::{Plan, Refusal};

/// The current state of the cluster, and the plan for it.
#[derive(Debug)]
pub struct Fresh<'a> {
    pub cluster: &'a SavedCluster,
    pub set: &'a Set,
    /// The desired objects.
    pub desired: &'a Desired,
    /// The new plan.
    pub plan: &'a Plan,
    pub parent: Option<&'a ParentObject>,
    /// The other content of the parent, if it exists and has a manifest.
    pub parent_seen: Option<&'a Seen>,
    pub namespaces: &'a NamespaceUids,
    /// The objects that `objects_to_read` names, if they exist.
    pub seen: &'a BTreeMap<ObjectKey, Seen>,
}

/// One difference between the saved plan and the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeSincePlan {
    /// The cluster is another one.
    OtherCluster {
        /// The address of the plan's cluster.
        then: String,
        /// The address of this cluster.
        now: String,
    },
    /// It is not certain that this is the cluster of the plan.
    UnknownCluster {
        /// The address of the plan's cluster.
        then: String,
        /// The address of this cluster.
        now: String,
    },
    /// An object that the plan creates exists.
    Created(ObjectKey),
    /// An object is gone.
    Deleted(ObjectKey),
    /// An object was deleted and recreated.
    Replaced(ObjectKey),
    /// An object was changed.
    Changed(ObjectKey),
    /// An object that is not in the plan joined the set.
    Joined(ObjectKey),
    /// An object left the set.
    Left(ObjectKey),
    /// A new plan has another intent for an object.
    Judged {
        key: ObjectKey,
        /// The new intent.
        intent: Intent,
    },
    /// An object would be detached from other owners than in the plan.
    Detached(ObjectKey),
    /// The number of replicas would be left to an autoscaler, or would no longer be.
    LeftToAutoscaler(ObjectKey),
    /// A namespace was deleted or recreated.
    Namespace(String),
    /// The parent was created.
    ParentCreated(ObjectKey),
    /// The parent is gone.
    ParentDeleted(ObjectKey),
    /// The parent was deleted and recreated.
    ParentReplaced(ObjectKey),
    /// The parent records something else, or another tool.
    ParentRecord {
        parent: ObjectKey,
        /// The annotations that differ.
        annotations: Vec<String>,
    },
    /// The parent, which has a manifest, was changed.
    ParentChanged(ObjectKey),
    /// The parent would record something else in the end.
    Record(ObjectKey),
    /// A new run would be refused.
    Refused(Refusal),
    /// No new plan can be made.
    Unplannable(String),
}

impl ChangeSincePlan {
    /// Returns the error of a run that these changes prevent.
    pub fn error(changes: &[Self]) -> Error {
        let details = changes.iter().map(ToString::to_string);
        let message = Message::new("plan is stale: the cluster has changed").with_details(details);
        Error::new(ErrorKind::Outdated, message).with_hint(MAKE_A_NEW_PLAN)
    }
}

impl fmt::Display for ChangeSincePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCluster { then, now } => {
                write!(f, "the plan is for another cluster: {then}, not {now}")
            }
            Self::UnknownCluster { then, now } => write!(
                f,
                "the plan may be for another cluster: {then}, not {now}: the UID of namespace kube-system cannot be read"
            ),
            Self::Created(key) => write!(f, "{key} was created"),
            Self::Deleted(key) => write!(f, "{key} was deleted"),
            Self::Replaced(key) => write!(f, "{key} was deleted and recreated"),
            Self::Changed(key) => write!(f, "{key} was changed"),
            Self::Joined(key) => write!(f, "{key} joined the set"),
            Self::Left(key) => write!(f, "{key} left the set"),
            Self::Judged { key, intent } => {
                write!(f, "{key} changed: ")?;
                match intent {
                    Intent::Apply => f.write_str("it would be applied"),
                    Intent::LeaveAlone => f.write_str("it would be unchanged"),
                    Intent::Prune => f.write_str("it would be pruned"),
                    Intent::Skip(reason) => write!(f, "it would be skipped: {reason}"),
                }
            }
            Self::Detached(key) => write!(f, "{key}: other owner references would be removed"),
            Self::LeftToAutoscaler(key) => {
                write!(f, "{key}: other fields would be left to an autoscaler")
            }
            Self::Namespace(name) => write!(f, "namespace/{name} was deleted or recreated"),
            Self::ParentCreated(parent) => write!(f, "the set's parent {parent} was created"),
            Self::ParentDeleted(parent) => write!(f, "the set's parent {parent} was deleted"),
            Self::ParentReplaced(parent) => {
                write!(f, "the set's parent {parent} was deleted and recreated")
            }
            Self::ParentRecord { parent, annotations } => write!(
                f,
                "the record of the set's parent {parent} was changed: {}",
                annotations.join(", ")
            ),
            Self::ParentChanged(parent) => write!(f, "the set's parent {parent} was changed"),
            Self::Record(parent) => write!(
                f,
                "the set's parent {parent} would record other kinds or namespaces"
            ),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unplannable(message) => f.write_str(message),
        }
    }
}

/// Returns the objects that have to be read to find the drift: those that either
/// plan writes, and those that only one of them knows.
pub fn objects_to_read(saved: &SavedPlan, plan: &Plan, desired: &Desired) -> BTreeSet<ObjectKey> {
    let writes = |intent: &Intent| matches!(intent, Intent::Apply | Intent::Prune);
    let now = intents(plan, desired);
    let mut keys = BTreeSet::new();
    for object in &saved.objects {
        if writes(&object.intent) || !now.contains_key(&object.key) {
            keys.insert(object.key.clone());
        }
    }
    keys.extend(
        now.into_iter()
            .filter(|(_, (intent, _))| writes(intent))
            .map(|(key, _)| key),
    );
    keys
}

/// Returns all drift, each object once. For another cluster, nothing
/// else is returned.
pub fn find_drift(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<ChangeSincePlan> {
    if let Some(other) = other_cluster(saved, fresh.cluster, fresh.namespaces, fresh.parent) {
        return vec![other];
    }
    let mut found = namespaces(saved, fresh);
    found.extend(parent(saved, fresh));
    let known: BTreeSet<&ObjectKey> = saved.objects.iter().map(|object| &object.key).collect();
    let now = intents(fresh.plan, fresh.desired);
    for object in &saved.objects {
        let key = object.key.clone();
        let intended = now.get(&object.key);
        let seen = match (&object.intent, intended) {
            // Objects that are not written were not read whole; an equal judgement is enough.
            (Intent::LeaveAlone | Intent::Skip(_), Some((_, Some(uid)))) => Some(Seen::left_alone(uid)),
            _ => fresh.seen.get(&object.key).cloned(),
        };
        found.extend(match (&object.seen, seen, intended) {
            (None, Some(_), _) => Some(ChangeSincePlan::Created(key)),
            (Some(_), None, _) => Some(ChangeSincePlan::Deleted(key)),
            (Some(then), Some(now), _) if then.uid != now.uid => Some(ChangeSincePlan::Replaced(key)),
            (_, _, None) => Some(ChangeSincePlan::Left(key)),
            (Some(then), Some(now), _) if is_other(then, &now) => Some(ChangeSincePlan::Changed(key)),
            (_, _, Some((intent, _))) if *intent != object.intent => Some(ChangeSincePlan::Judged {
                key,
                intent: intent.clone(),
            }),
            _ if object.left_to_autoscaler != left_to_autoscaler(fresh.desired, &key) => {
                Some(ChangeSincePlan::LeftToAutoscaler(key))
            }
            _ => None,
        });
    }
    let joined = now.into_keys().filter(|key| !known.contains(key));
    found.extend(joined.map(ChangeSincePlan::Joined));
    found.extend(changed_detachments(saved, fresh));
    if found.is_empty() && saved.record != fresh.plan.record_after {
        found.push(ChangeSincePlan::Record(fresh.set.parent.clone()));
    }
    found.extend(fresh.plan.refusals.iter().cloned().map(ChangeSincePlan::Refused));
    found
}

/// Returns the number of replicas of an object that is left to an autoscaler.
pub fn left_to_autoscaler(desired: &Desired, key: &ObjectKey) -> Option<String> {
    desired.left_to_autoscalers.get(key).map(Pointer::to_string)
}

fn changed_detachments(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<ChangeSincePlan> {
    let now = super::saved_detachments(fresh.plan);
    let (then, now) = (by_key(&saved.detached), by_key(&now));
    let keys: BTreeSet<&ObjectKey> = then.keys().chain(now.keys()).copied().collect();
    let changed = keys.into_iter().filter(|key| then.get(key) != now.get(key));
    changed.cloned().map(ChangeSincePlan::Detached).collect()
}

fn by_key(all: &[SavedDetachment]) -> BTreeMap<&ObjectKey, &SavedDetachment> {
    all.iter()
        .map(|detachment| (&detachment.key, detachment))
        .collect()
}

/// A change of the status or of field ownership alone changes the resourceVersion and not the
/// content. The content of unchanged objects is not known.
fn is_other(then: &Seen, now: &Seen) -> bool {
    let is_known = !then.digest.is_empty();
    is_known && then.resource_version != now.resource_version && then.digest != now.digest
}

/// Returns the difference if this is not certainly the cluster of the plan. One cluster may have several
/// addresses; one UID is in no two clusters.
pub fn other_cluster(
    saved: &SavedPlan,
    now: &SavedCluster,
    namespaces: &NamespaceUids,
    parent: Option<&ParentObject>,
) -> Option<ChangeSincePlan> {
    let then = &saved.cluster;
    if let (Some(one), Some(other)) = (&then.uid, &now.uid) {
        return (one != other).then(|| ChangeSincePlan::OtherCluster {
            then: then.server.clone(),
            now: now.server.clone(),
        });
    }
    let is_same_endpoint =
        then.server == now.server && then.certificate_authority == now.certificate_authority;
    (!is_same_endpoint && !has_anything_in_common(saved, namespaces, parent)).then(|| {
        ChangeSincePlan::UnknownCluster {
            then: then.server.clone(),
            now: now.server.clone(),
        }
    })
}

fn has_anything_in_common(
    saved: &SavedPlan,
    namespaces: &NamespaceUids,
    parent: Option<&ParentObject>,
) -> bool {
    let is_there =
        |(name, uid): (&String, &Option<String>)| uid.is_some() && namespaces.get(name) == Some(uid);
    let uid_of_parent = saved.parent.as_ref().map(|parent| &parent.uid);
    saved.namespaces.iter().any(is_there)
        || (uid_of_parent.is_some() && uid_of_parent == parent.map(|parent| &parent.uid))
}

/// A namespace that cannot be read may be another one, or may not exist.
fn namespaces(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<ChangeSincePlan> {
    let mut names = names(saved, fresh);
    names.retain(
        |name| match (saved.namespaces.get(*name), fresh.namespaces.get(*name)) {
            (Some(None), _) | (_, Some(None)) => false,
            (then, now) => then != now,
        },
    );
    names
        .into_iter()
        .cloned()
        .map(ChangeSincePlan::Namespace)
        .collect()
}

/// Returns the namespaces that cannot be compared with those of the plan, because they could
/// not be read then or now.
pub fn namespaces_not_compared(saved: &SavedPlan, fresh: &Fresh<'_>) -> Vec<String> {
    let mut names = names(saved, fresh);
    names.retain(|name| {
        let both = [saved.namespaces.get(*name), fresh.namespaces.get(*name)];
        both.contains(&Some(&None))
    });
    names.into_iter().cloned().collect()
}

fn names<'a>(saved: &'a SavedPlan, fresh: &Fresh<'a>) -> BTreeSet<&'a String> {
    saved.namespaces.keys().chain(fresh.namespaces.keys()).collect()
}

fn parent(saved: &SavedPlan, fresh: &Fresh<'_>) -> Option<ChangeSincePlan> {
    let parent = fresh.set.parent.clone();
    let now = fresh
        .parent
        .map(|parent| SavedParent::new(parent, fresh.parent_seen.cloned()));
    match (&saved.parent, now) {
        (None, None) => None,
        (None, Some(_)) => Some(ChangeSincePlan::ParentCreated(parent)),
        (Some(_), None) => Some(ChangeSincePlan::ParentDeleted(parent)),
        (Some(then), Some(now)) if then.uid != now.uid => Some(ChangeSincePlan::ParentReplaced(parent)),
        (Some(then), Some(now)) => {
            let mut keys: BTreeSet<&String> = then.bookkeeping.keys().chain(now.bookkeeping.keys()).collect();
            keys.retain(|key| then.bookkeeping.get(*key) != now.bookkeeping.get(*key));
            if !keys.is_empty() {
                let annotations = keys.into_iter().cloned().collect();
                return Some(ChangeSincePlan::ParentRecord { parent, annotations });
            }
            let is_same = match (&then.seen, &now.seen) {
                (Some(then), Some(now)) => !is_other(then, now),
                (then, now) => then.is_none() && now.is_none(),
            };
            (!is_same).then_some(ChangeSincePlan::ParentChanged(parent))
        }
    }
}
