//! The differences between a saved plan and the cluster when it is applied. Any of them ends the run before its first
//! write.

use std::collections::{BTreeMap, BTreeSet};

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
use crate::plan::Plan;

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

/// Returns the error of a run that these changes since the plan prevent.
pub fn stale_plan_error(changes: Vec<String>) -> Error {
    let message = Message::new("plan is stale: the cluster has changed").with_details(changes);
    Error::new(ErrorKind::Outdated, message).with_hint(MAKE_A_NEW_PLAN)
}

/// Returns the objects that have to be read to find the drift: the objects that the saved plan or the new `plan`
/// writes, and the objects that the new plan does not know any more.
pub fn objects_to_read(saved: &SavedPlan, plan: &Plan, desired: &Desired) -> BTreeSet<ObjectKey> {
    let now = list_intents_and_unwritten_uids(plan, desired);
    let mut keys = BTreeSet::new();
    for object in &saved.objects {
        if object.intent.is_write() || !now.contains_key(&object.key) {
            keys.insert(object.key.clone());
        }
    }
    keys.extend(
        now.into_iter()
            .filter(|(_, (intent, _))| intent.is_write())
            .map(|(key, _)| key),
    );
    keys
}

/// Describes all differences between the saved plan and the cluster. An object has at most one change of itself. If the
/// cluster is not the cluster of the plan, that is the only change returned.
pub fn find_drift(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<String> {
    if let Some(other) = find_other_cluster(saved, current.cluster, current.namespaces, current.parent) {
        return vec![other];
    }
    let mut found = find_changed_namespaces(saved, current);
    found.extend(find_change_of_parent(saved, current));
    let saved_keys: BTreeSet<&ObjectKey> = saved.objects.iter().map(|object| &object.key).collect();
    let new_intents = list_intents_and_unwritten_uids(current.plan, current.desired);
    for object in &saved.objects {
        let key = &object.key;
        let new_intent = new_intents.get(key);
        let now = match (&object.intent, new_intent) {
            // The content of an object that neither plan writes was not read. It is enough that the UIDs and the
            // intents are equal.
            (Intent::LeaveAlone | Intent::Skip(_), Some((_, Some(uid)))) => {
                Some(Seen::for_unwritten_object(uid))
            }
            _ => current.seen.get(key).cloned(),
        };
        // The first change that applies is reported.
        found.extend(match (&object.seen, now, new_intent) {
            (None, Some(_), _) => Some(format!("{key} was created")),
            (Some(_), None, _) => Some(format!("{key} was deleted")),
            (Some(then), Some(now), _) if then.uid != now.uid => {
                Some(format!("{key} was deleted and recreated"))
            }
            (_, _, None) => Some(format!("{key} left the set")),
            (Some(then), Some(now), _) if has_other_content(then, &now) => Some(format!("{key} was changed")),
            (_, _, Some((intent, _))) if *intent != object.intent => {
                Some(format!("{key} changed: {}", describe_intent(intent)))
            }
            _ if object.left_to_autoscaler != pointer_left_to_autoscaler(current.desired, key) => {
                Some(format!("{key}: other fields would be left to an autoscaler"))
            }
            _ => None,
        });
    }
    let joined = new_intents.into_keys().filter(|key| !saved_keys.contains(key));
    found.extend(joined.map(|key| format!("{key} joined the set")));
    found.extend(find_changed_detachments(saved, current));
    found.extend(find_new_losses(saved, current));
    // Any other change may be the cause of another record, so the record is reported only on its own.
    if found.is_empty() && saved.record != current.plan.record_after {
        found.push(format!(
            "the set's parent {} would record other kinds or namespaces",
            current.set.parent
        ));
    }
    // A new run would be refused.
    found.extend(current.plan.refusals.iter().map(ToString::to_string));
    found
}

/// Describes the intent of a new plan for an object that has another one in the saved plan.
fn describe_intent(intent: &Intent) -> String {
    match intent {
        Intent::Apply => "it would be applied".to_owned(),
        Intent::LeaveAlone => "it would be unchanged".to_owned(),
        Intent::Prune => "it would be pruned".to_owned(),
        Intent::Skip(reason) => format!("it would be skipped: {reason}"),
    }
}

/// Returns the JSON pointer of the object's number of replicas, if it is left to an autoscaler.
pub fn pointer_left_to_autoscaler(desired: &Desired, key: &ObjectKey) -> Option<String> {
    desired.left_to_autoscalers.get(key).map(Pointer::to_string)
}

/// Finds pruned namespaces and CRDs that hold more than the saved plan shows. `--allow-data-loss` allows the losses of
/// the plan, not those that have come since.
fn find_new_losses(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<String> {
    let shown: BTreeMap<&ObjectKey, &BTreeSet<String>> = saved
        .objects
        .iter()
        .map(|object| (&object.key, &object.lost))
        .collect();
    let new_losses = current.plan.accepted.iter().filter(|loss| {
        let shown = loss.object().and_then(|container| shown.get(container));
        let lost = loss.lost_with_container();
        shown.is_some_and(|shown| !lost.is_subset(shown))
    });
    new_losses.map(ToString::to_string).collect()
}

fn find_changed_detachments(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<String> {
    let now = super::saved_detachments(current.plan);
    let (then, now) = (index_by_key(&saved.detached), index_by_key(&now));
    let keys: BTreeSet<&ObjectKey> = then.keys().chain(now.keys()).copied().collect();
    let changed = keys.into_iter().filter(|key| then.get(key) != now.get(key));
    changed
        .map(|key| format!("{key}: other owner references would be removed"))
        .collect()
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
) -> Option<String> {
    let then = &saved.cluster;
    if let (Some(then_uid), Some(now_uid)) = (&then.uid, &now.uid) {
        return (then_uid != now_uid).then(|| {
            format!(
                "the plan is for another cluster: {}, not {}",
                then.server, now.server
            )
        });
    }
    let is_same_endpoint =
        then.server == now.server && then.certificate_authority == now.certificate_authority;
    (!is_same_endpoint && !has_common_object(saved, namespaces, parent)).then(|| {
        format!(
            "the plan may be for another cluster: {}, not {}: the UID of namespace kube-system cannot be read",
            then.server, now.server
        )
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
/// count as changed.
fn find_changed_namespaces(saved: &SavedPlan, current: &CurrentState<'_>) -> Vec<String> {
    let mut names: BTreeSet<&String> = saved.namespaces.keys().chain(current.namespaces.keys()).collect();
    names.retain(
        |name| match (saved.namespaces.get(*name), current.namespaces.get(*name)) {
            (Some(None), _) | (_, Some(None)) => false,
            (then, now) => then != now,
        },
    );
    names
        .into_iter()
        .map(|name| format!("namespace/{name} was deleted or recreated"))
        .collect()
}

fn find_change_of_parent(saved: &SavedPlan, current: &CurrentState<'_>) -> Option<String> {
    let now = current
        .parent
        .map(|parent| SavedParent::new(parent, current.parent_seen.cloned()));
    let change = match (&saved.parent, now) {
        (None, None) => return None,
        (None, Some(_)) => "was created",
        (Some(_), None) => "was deleted",
        (Some(then), Some(now)) if then.uid != now.uid => "was deleted and recreated",
        (Some(then), Some(now)) => {
            let (saved_record, record) = (&then.applyset_annotations, &now.applyset_annotations);
            let mut keys: BTreeSet<&String> = saved_record.keys().chain(record.keys()).collect();
            keys.retain(|key| saved_record.get(*key) != record.get(*key));
            if !keys.is_empty() {
                let annotations: Vec<&str> = keys.into_iter().map(String::as_str).collect();
                return Some(format!(
                    "the record of the set's parent {} was changed: {}",
                    current.set.parent,
                    annotations.join(", ")
                ));
            }
            let has_changed = match (&then.seen, &now.seen) {
                (Some(then), Some(now)) => has_other_content(then, now),
                (then, now) => then.is_some() || now.is_some(),
            };
            if !has_changed {
                return None;
            }
            "was changed"
        }
    };
    Some(format!("the set's parent {} {change}", current.set.parent))
}
