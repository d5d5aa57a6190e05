//! Losses that a prune causes beyond the object itself: the contents of a namespace, the objects of a
//! kind, the data of a volume, the record of another set. `--allow-data-loss` allows them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{ReasonToKeep, Refusal};
use crate::model::containers::{Contents, HeldObject};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;

/// The objects that the run deletes. Their loss with a container is not a loss beyond the plan.
#[derive(Debug, Clone, Default)]
pub(super) struct DeletedObjects {
    pub(super) uids: BTreeSet<String>,
    /// The names of the `APIService`s among the objects. A run deletes an `APIService` before namespaces, and its API
    /// goes with it. So if that API does not answer, the objects that it may have in a namespace do not count.
    api_services: BTreeSet<String>,
}

impl DeletedObjects {
    pub(super) fn new<'l>(objects: impl Iterator<Item = &'l Live>) -> Self {
        let mut deleted = Self::default();
        deleted.extend(objects);
        deleted
    }

    pub(super) fn extend<'l>(&mut self, objects: impl Iterator<Item = &'l Live>) {
        for live in objects {
            if live.key.group_kind.is_api_service() {
                self.api_services.insert(live.key.name.clone());
            }
            self.uids.insert(live.uid.clone());
        }
    }

    /// Removes objects that were not deleted after all.
    pub(super) fn remove<'l>(&mut self, objects: impl Iterator<Item = &'l Live>) {
        for live in objects {
            self.api_services.remove(&live.key.name);
            self.uids.remove(&live.uid);
        }
    }

    /// Returns the resources of a container that could not be listed, except those of `APIService`s that the run
    /// deletes.
    fn find_unlisted_resources(&self, contents: &Contents) -> Vec<String> {
        let mut unknown = contents.unknown.clone();
        for (name, reason) in &contents.unanswering {
            if !self.api_services.contains(name) {
                unknown.push(reason.clone());
            }
        }
        unknown
    }
}

/// Returns the refusals to delete an object because of what would be lost with it. `contents` are the objects in it, if
/// it is a container.
pub(super) fn refuse_losses(
    live: &Live,
    contents: Option<&Contents>,
    deleted: &DeletedObjects,
) -> Vec<Refusal> {
    let mut losses = Vec::new();
    if let Some(contents) = contents {
        let lost = find_lost_objects(contents, &[], &deleted.uids);
        let unknown = deleted.find_unlisted_resources(contents);
        if !lost.is_empty() || !unknown.is_empty() {
            losses.push(Refusal::HoldsOthers {
                container: live.key.clone(),
                lost: to_keys(&lost),
                uids: lost.iter().map(|held| held.uid.clone()).collect(),
                unknown,
            });
        }
    }
    if live.parent_of.is_some() {
        losses.push(Refusal::PrunesParent {
            object: live.key.clone(),
        });
    }
    if deletes_volume_data(live) {
        losses.push(Refusal::PrunesStorage {
            object: live.key.clone(),
        });
    }
    losses
}

/// Returns whether the data of volumes is deleted with the object. For a recreation, this errs towards a loss: a
/// `StatefulSet` whose Pods the new object adopts keeps its data.
pub fn deletes_volume_data(live: &Live) -> bool {
    let kind = &live.key.group_kind;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolumeClaim" | "PersistentVolume") => true,
        ("apps", "StatefulSet") => live.deletes_claims,
        _ => false,
    }
}

/// Returns the reason to keep a container that has gained objects since its deletion was planned. `planned` are its
/// contents when the plan was made, and `now` its contents right before the delete.
pub(super) fn reason_to_keep_filled_since_plan(
    planned: Option<&Contents>,
    now: &Contents,
    deleted: &DeletedObjects,
) -> Option<ReasonToKeep> {
    // The planned contents were not a loss, or the user has agreed to lose them.
    let agreed_objects = planned.map_or(&[][..], |planned| &planned.objects);
    let agreed_unknown = planned.map_or_else(Vec::new, |planned| deleted.find_unlisted_resources(planned));
    let mut unknown = deleted.find_unlisted_resources(now);
    unknown.retain(|name| !agreed_unknown.contains(name));
    let lost = find_lost_objects(now, agreed_objects, &deleted.uids);
    (!lost.is_empty() || !unknown.is_empty()).then(|| ReasonToKeep::FilledSincePlan {
        lost: to_keys(&lost),
        unknown,
    })
}

fn to_keys(objects: &[&HeldObject]) -> Vec<ObjectKey> {
    objects.iter().map(|held| held.key.clone()).collect()
}

/// Returns the objects of a container that have a keep annotation.
pub(super) fn objects_with_keep_annotation(contents: &Contents) -> impl Iterator<Item = &HeldObject> {
    contents
        .objects
        .iter()
        .filter(|held| held.keep_annotation.is_some())
}

/// Returns the objects of a container that would be lost with it. Two kinds of objects are not a loss: those that the
/// run deletes anyway (`deleted`), and those that the user has agreed to lose (`agreed`).
///
/// An object that a controller makes for another object is not a loss of its own. It is omitted if following its owners
/// leads to an object that is reported as lost, deleted anyway, or agreed to. Objects that own each other lead to none
/// of these, so they are reported; and an owner that exists in every namespace, such as `kube-root-ca.crt`, does not
/// count. If an object also has an owner that is outside of the container and stays, the object would have outlived its
/// owners inside, so it is a loss of its own.
fn find_lost_objects<'c>(
    contents: &'c Contents,
    agreed: &[HeldObject],
    deleted: &BTreeSet<String>,
) -> Vec<&'c HeldObject> {
    let objects = &contents.objects;
    let everywhere: HashSet<&str> = objects
        .iter()
        .chain(agreed)
        .filter(|held| is_made_in_every_namespace(held))
        .map(|held| held.uid.as_str())
        .collect();
    let agreed: HashSet<&str> = agreed.iter().map(|held| held.uid.as_str()).collect();
    let is_settled = |uid: &str| deleted.contains(uid) || (agreed.contains(uid) && !everywhere.contains(uid));
    let inside: HashSet<&str> = objects.iter().map(|held| held.uid.as_str()).collect();
    let services: HashMap<&str, &str> = objects
        .iter()
        .filter(|held| held.key.group_kind == GroupKind::new("", "Service"))
        .map(|held| (held.key.name.as_str(), held.uid.as_str()))
        .collect();

    // Objects that are reported as lost in any case.
    let mut reported = HashSet::new();
    // Objects that are reported, settled, or owned by a settled object.
    let mut accounted_for = Vec::new();
    // Key: an owner. Value: the objects in the container that it owns.
    let mut owned: HashMap<&str, Vec<&str>> = HashMap::new();
    for held in objects
        .iter()
        .filter(|held| !everywhere.contains(held.uid.as_str()))
    {
        let uid = held.uid.as_str();
        // The garbage collector deletes an object only once its last owner is gone.
        let mut staying = held.owners.iter().filter(|owner| !is_settled(owner));
        let has_staying_owner = staying.any(|owner| !inside.contains(owner.as_str()));
        let mut owners: Vec<&str> = list_uids_of_owners_and_service(held, &services).collect();
        owners.retain(|uid| is_settled(uid) || (inside.contains(uid) && !everywhere.contains(uid)));
        // The data of a PersistentVolumeClaim are a loss of their own, even if the claim was made for another object.
        let is_claim = held.key.group_kind == GroupKind::new("", "PersistentVolumeClaim");
        if is_claim || has_staying_owner || owners.is_empty() {
            reported.insert(uid);
            accounted_for.push(uid);
        } else if is_settled(uid) || owners.iter().any(|owner| is_settled(owner)) {
            accounted_for.push(uid);
        }
        for owner in owners {
            owned.entry(owner).or_default().push(uid);
        }
    }
    // Whatever an accounted-for object owns, directly or not, is accounted for, too.
    let mut omitted = HashSet::new();
    while let Some(uid) = accounted_for.pop() {
        if omitted.insert(uid) {
            accounted_for.extend(owned.get(uid).into_iter().flatten());
        }
    }
    omitted.retain(|uid| !reported.contains(uid));
    let mut lost: Vec<&HeldObject> = objects.iter().collect();
    lost.retain(|held| {
        let uid = held.uid.as_str();
        !everywhere.contains(uid) && !is_settled(uid) && !omitted.contains(uid)
    });
    lost
}

/// Returns the UIDs of the objects that an object was made for: its owners, and for Endpoints the Service of the same
/// name, because the endpoints controller sets no owner reference.
fn list_uids_of_owners_and_service<'h>(
    held: &'h HeldObject,
    services: &HashMap<&str, &'h str>,
) -> impl Iterator<Item = &'h str> {
    let is_endpoints = held.key.group_kind == GroupKind::new("", "Endpoints");
    let service = is_endpoints.then(|| services.get(held.key.name.as_str()).copied());
    let owners = held.owners.iter().map(String::as_str);
    owners.chain(service.flatten())
}

/// Returns whether a controller makes the object in every namespace. Such an object is not a loss, but an object that
/// it owns may be one.
fn is_made_in_every_namespace(held: &HeldObject) -> bool {
    let kind = &held.key.group_kind;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("" | "events.k8s.io", "Event") => true,
        ("", "ConfigMap") => held.key.name == "kube-root-ca.crt",
        ("", "ServiceAccount") => held.key.name == "default",
        _ => false,
    }
}

#[cfg(test)]
mod tests;
