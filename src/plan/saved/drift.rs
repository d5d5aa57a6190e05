//! The differences between a saved plan and the cluster when it is applied. Any of them ends the run before its first
//! write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{
    Intent, MAKE_A_NEW_PLAN, NamespaceUids, SavedCluster, SavedDetachment, SavedParent, SavedPlan, Seen,
    list_intents_and_unwritten_uids,
};
use crate::error::{Error, ErrorKind};
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::pointer::Pointer;
use crate::model::set::{ParentObject, Set};
use crate::plan::{Plan, Refusal};

/// The current state of the cluster, and a new plan for that state. The saved plan is compared with it.
#[derive(Debug)]
pub struct CurrentState<'a> {
    pub cluster: &'a SavedCluster,
    pub set: &'a Set,
    /// The desired objects.
    pub desired: &'a Desired,
    /// The new plan.
    pub plan: &'a Plan,
    pub parent: Option<&'a ParentObject>,
    /// The content of the parent without its record and history; `None` if it does not exist or has no manifest.
    pub parent_seen: Option<&'a Seen>,
    pub namespaces: &'a NamespaceUids,
    /// The existing objects among those that [`objects_to_read`] returns.
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
    /// The cluster may be another one: its UID is not known, and nothing else shows that it is the cluster of the plan.
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
    /// Other owner references of an object would be removed than in the plan.
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
    /// The record of the parent was changed, or its tooling.
    ParentRecord {
        parent: ObjectKey,
        /// The annotations that differ.
        annotations: Vec<String>,
    },
    /// The parent, which has a manifest, was changed.
    ParentChanged(ObjectKey),
    /// The run would leave another record in the parent than in the plan.
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

/// Returns the objects that have to be read to find the drift: the objects that the saved plan or the new `plan`
/// writes, and the objects that the new plan does not know any more.
pub fn objects_to_read(saved: &SavedPlan, plan: &Plan, desired: &Desired) -> BTreeSet<ObjectKey> {
    let is_write = |intent: &Intent| matches!(intent, Intent::Apply | Intent::Prune);
    let now = list_intents_and_unwritten_uids(plan, desired);
    let mut keys = BTreeSet::new();
    for object in &saved.objects {
        if is_write(&object.intent) || !now.contains_key(&object.key) {
            keys.insert(object.key.clone());
        }
    }
    keys.extend(
        now.into_iter()
            .filter(|(_, (intent, _))| is_write(intent))
            .map(|(key, _)| key),
    );
    keys
}

/// Returns all drift. An object has at most one change of itself. If the cluster is not the cluster of the plan, that
/// is the only change returned.
pub fn find_drift(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<ChangeSincePlan> {
    if let Some(other) = find_other_cluster(saved, current.cluster, current.namespaces, current.parent) {
        return vec![other];
    }
    let mut found = find_changed_namespaces(saved, current);
    found.extend(find_change_of_parent(saved, current));
    let saved_keys: BTreeSet<&ObjectKey> = saved.objects.iter().map(|object| &object.key).collect();
    let new_intents = list_intents_and_unwritten_uids(current.plan, current.desired);
    for object in &saved.objects {
        let key = object.key.clone();
        let new_intent = new_intents.get(&object.key);
        let now = match (&object.intent, new_intent) {
            // The content of an object that neither plan writes was not read. It is enough that the UIDs and the
            // intents are equal.
            (Intent::LeaveAlone | Intent::Skip(_), Some((_, Some(uid)))) => {
                Some(Seen::for_unwritten_object(uid))
            }
            _ => current.seen.get(&object.key).cloned(),
        };
        // The first change that applies is reported.
        found.extend(match (&object.seen, now, new_intent) {
            (None, Some(_), _) => Some(ChangeSincePlan::Created(key)),
            (Some(_), None, _) => Some(ChangeSincePlan::Deleted(key)),
            (Some(then), Some(now), _) if then.uid != now.uid => Some(ChangeSincePlan::Replaced(key)),
            (_, _, None) => Some(ChangeSincePlan::Left(key)),
            (Some(then), Some(now), _) if has_other_content(then, &now) => {
                Some(ChangeSincePlan::Changed(key))
            }
            (_, _, Some((intent, _))) if *intent != object.intent => Some(ChangeSincePlan::Judged {
                key,
                intent: intent.clone(),
            }),
            _ if object.left_to_autoscaler != pointer_left_to_autoscaler(current.desired, &key) => {
                Some(ChangeSincePlan::LeftToAutoscaler(key))
            }
            _ => None,
        });
    }
    let joined = new_intents.into_keys().filter(|key| !saved_keys.contains(key));
    found.extend(joined.map(ChangeSincePlan::Joined));
    found.extend(find_changed_detachments(saved, current));
    found.extend(find_new_losses(saved, current));
    // Any other change may be the cause of another record, so the record is reported only on its own.
    if found.is_empty() && saved.record != current.plan.record_after {
        found.push(ChangeSincePlan::Record(current.set.parent.clone()));
    }
    found.extend(
        current
            .plan
            .refusals
            .iter()
            .cloned()
            .map(ChangeSincePlan::Refused),
    );
    found
}

/// Returns the JSON pointer of the object's number of replicas, if it is left to an autoscaler.
pub fn pointer_left_to_autoscaler(desired: &Desired, key: &ObjectKey) -> Option<String> {
    desired.left_to_autoscalers.get(key).map(Pointer::to_string)
}

/// Finds pruned namespaces and CRDs that hold more than the saved plan shows. `--allow-data-loss` allows the losses of
/// the plan, not those that have come since.
fn find_new_losses(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<ChangeSincePlan> {
    let shown: BTreeMap<&ObjectKey, &BTreeSet<String>> = saved
        .objects
        .iter()
        .map(|object| (&object.key, &object.lost))
        .collect();
    let new_losses = current.plan.accepted.iter().filter(|loss| {
        let shown = loss.object().and_then(|container| shown.get(container));
        let lost = loss.lost_uids_and_unlisted_resources();
        shown.is_some_and(|shown| !lost.is_subset(shown))
    });
    new_losses.cloned().map(ChangeSincePlan::Refused).collect()
}

fn find_changed_detachments(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<ChangeSincePlan> {
    let now = super::saved_detachments(current.plan);
    let (then, now) = (index_by_key(&saved.detached), index_by_key(&now));
    let keys: BTreeSet<&ObjectKey> = then.keys().chain(now.keys()).copied().collect();
    let changed = keys.into_iter().filter(|key| then.get(key) != now.get(key));
    changed.cloned().map(ChangeSincePlan::Detached).collect()
}

fn index_by_key(detachments: &[SavedDetachment]) -> BTreeMap<&ObjectKey, &SavedDetachment> {
    detachments
        .iter()
        .map(|detachment| (&detachment.key, detachment))
        .collect()
}

/// Returns whether the content of an object has changed; `false` if the saved plan does not have its content.
///
/// The digest decides, not the resourceVersion: a change of only the status or the field ownership is not a change of
/// the content.
fn has_other_content(then: &Seen, now: &Seen) -> bool {
    let is_content_saved = !then.digest.is_empty();
    is_content_saved && then.resource_version != now.resource_version && then.digest != now.digest
}

/// Returns the change if this cluster is not, or may not be, the cluster of the plan; `None` if it is.
///
/// If both UIDs are known, they decide, because one cluster may have several addresses. Otherwise, the address, or the
/// UID of a namespace or of the parent, has to be the same.
pub fn find_other_cluster(
    saved: &SavedPlan,
    now: &SavedCluster,
    namespaces: &NamespaceUids,
    parent: Option<&ParentObject>,
) -> Option<ChangeSincePlan> {
    let then = &saved.cluster;
    if let (Some(then_uid), Some(now_uid)) = (&then.uid, &now.uid) {
        return (then_uid != now_uid).then(|| ChangeSincePlan::OtherCluster {
            then: then.server.clone(),
            now: now.server.clone(),
        });
    }
    let is_same_endpoint =
        then.server == now.server && then.certificate_authority == now.certificate_authority;
    (!is_same_endpoint && !has_common_object(saved, namespaces, parent)).then(|| {
        ChangeSincePlan::UnknownCluster {
            then: then.server.clone(),
            now: now.server.clone(),
        }
    })
}

/// Returns whether a namespace or the parent of the plan exists in this cluster with the same UID.
fn has_common_object(saved: &SavedPlan, namespaces: &NamespaceUids, parent: Option<&ParentObject>) -> bool {
    let exists_here =
        |(name, uid): (&String, &Option<String>)| uid.is_some() && namespaces.get(name) == Some(uid);
    let saved_parent_uid = saved.parent.as_ref().map(|parent| &parent.uid);
    saved.namespaces.iter().any(exists_here)
        || (saved_parent_uid.is_some() && saved_parent_uid == parent.map(|parent| &parent.uid))
}

/// Finds namespaces that were created, deleted or recreated. A namespace that could not be read, then or now, does not
/// count as changed; see [`namespaces_not_compared`].
fn find_changed_namespaces(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<ChangeSincePlan> {
    let mut names = list_namespaces_of_either(saved, current);
    names.retain(
        |name| match (saved.namespaces.get(*name), current.namespaces.get(*name)) {
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
pub fn namespaces_not_compared(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<String> {
    let mut names = list_namespaces_of_either(saved, current);
    names.retain(|name| {
        let both = [saved.namespaces.get(*name), current.namespaces.get(*name)];
        both.contains(&Some(&None))
    });
    names.into_iter().cloned().collect()
}

fn list_namespaces_of_either<'a>(saved: &'a SavedPlan, current: &CurrentState<'a>) -> BTreeSet<&'a String> {
    saved.namespaces.keys().chain(current.namespaces.keys()).collect()
}

fn find_change_of_parent(saved: &SavedPlan, current: &CurrentState<'_>) -> Option<ChangeSincePlan> {
    let parent = current.set.parent.clone();
    let now = current
        .parent
        .map(|parent| SavedParent::new(parent, current.parent_seen.cloned()));
    match (&saved.parent, now) {
        (None, None) => None,
        (None, Some(_)) => Some(ChangeSincePlan::ParentCreated(parent)),
        (Some(_), None) => Some(ChangeSincePlan::ParentDeleted(parent)),
        (Some(then), Some(now)) if then.uid != now.uid => Some(ChangeSincePlan::ParentReplaced(parent)),
        (Some(then), Some(now)) => {
            let (saved_record, record) = (&then.applyset_annotations, &now.applyset_annotations);
            let mut keys: BTreeSet<&String> = saved_record.keys().chain(record.keys()).collect();
            keys.retain(|key| saved_record.get(*key) != record.get(*key));
            if !keys.is_empty() {
                let annotations = keys.into_iter().cloned().collect();
                return Some(ChangeSincePlan::ParentRecord { parent, annotations });
            }
            let has_changed = match (&then.seen, &now.seen) {
                (Some(then), Some(now)) => has_other_content(then, now),
                (then, now) => then.is_some() || now.is_some(),
            };
            has_changed.then_some(ChangeSincePlan::ParentChanged(parent))
        }
    }
}
