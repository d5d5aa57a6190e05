//! Losses that a prune causes beyond the object itself: the contents of a namespace, the objects of a
//! kind, the data of a volume, the record of another set. `--allow-data-loss` allows them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Refusal, SkipReason};
use crate::event::Operation;
use crate::model::containers::{Contents, HeldObject};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;

/// The objects that are deleted in any case.
#[derive(Debug, Clone, Default)]
pub(super) struct Going {
    pub(super) uids: BTreeSet<String>,
    /// The names of `APIService`s. They are deleted before the namespaces, and with them the API goes that may hold
    /// objects.
    api_services: BTreeSet<String>,
}

impl Going {
    /// These objects.
    pub(super) fn new<'l>(objects: impl Iterator<Item = &'l Live>) -> Self {
        let mut going = Self::default();
        for live in objects {
            if live.key.group_kind == GroupKind::new("apiregistration.k8s.io", "APIService") {
                going.api_services.insert(live.key.name.clone());
            }
            going.uids.insert(live.uid.clone());
        }
        going
    }

    /// Returns what of the contents could not be listed.
    fn unknown(&self, contents: &Contents) -> Vec<String> {
        let mut unknown = contents.unknown.clone();
        for (name, reason) in &contents.unanswering {
            if !self.api_services.contains(name) {
                unknown.push(reason.clone());
            }
        }
        unknown
    }
}

/// Returns the refusals to delete an object because of what would be lost with it. `contents` is what it holds.
pub(super) fn loss(
    live: &Live,
    contents: Option<&Contents>,
    going: &Going,
    operation: Operation,
) -> Vec<Refusal> {
    let mut losses = Vec::new();
    if let Some(contents) = contents {
        let lost = lost_objects(contents, &[], &going.uids);
        let unknown = going.unknown(contents);
        if !lost.is_empty() || !unknown.is_empty() {
            losses.push(Refusal::HoldsOthers {
                container: live.key.clone(),
                lost: keys(&lost),
                uids: lost.iter().map(|held| held.uid.clone()).collect(),
                unknown,
                operation,
            });
        }
    }
    if live.parent_of.is_some() {
        losses.push(Refusal::PrunesParent {
            object: live.key.clone(),
            operation,
        });
    }
    let kind = &live.key.group_kind;
    let is_storage = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolumeClaim" | "PersistentVolume") => true,
        ("apps", "StatefulSet") => live.deletes_claims,
        _ => false,
    };
    if is_storage {
        losses.push(Refusal::PrunesStorage {
            object: live.key.clone(),
            operation,
        });
    }
    losses
}

/// Returns the reason to keep a container that holds `now`, if it has gained objects since its deletion
/// was planned, when it held what was `seen`.
pub(super) fn reason_to_keep_filled(
    seen: Option<&Contents>,
    now: &Contents,
    going: &Going,
) -> Option<SkipReason> {
    // What it held then was not a loss, or the user has agreed to lose it.
    let seen_objects = seen.map_or(&[][..], |seen| &seen.objects);
    let was_unknown = seen.map_or_else(Vec::new, |seen| going.unknown(seen));
    let mut unknown = going.unknown(now);
    unknown.retain(|name| !was_unknown.contains(name));
    let lost = lost_objects(now, seen_objects, &going.uids);
    (!lost.is_empty() || !unknown.is_empty()).then(|| SkipReason::FilledSincePlan {
        lost: keys(&lost),
        unknown,
    })
}

fn keys(objects: &[&HeldObject]) -> Vec<ObjectKey> {
    objects.iter().map(|held| held.key.clone()).collect()
}

/// Returns the objects with a keep annotation.
pub(super) fn objects_with_keep_annotation(contents: &Contents) -> impl Iterator<Item = &HeldObject> {
    contents
        .objects
        .iter()
        .filter(|held| held.keep_annotation.is_some())
}

/// Returns the objects that would be lost, without those that are `going` in any case, or were `seen`
/// when the user agreed to lose them.
///
/// An object that a controller makes for another one is not a loss of its own: it is omitted if a chain
/// of its owners ends in an object that is counted, going or agreed to. Owners that own each other end
/// nowhere, and an owner that exists in every namespace ends no chain. An object that also has an owner
/// outside which stays would outlive the others, so it is a loss of its own.
fn lost_objects<'c>(
    contents: &'c Contents,
    seen: &[HeldObject],
    going: &BTreeSet<String>,
) -> Vec<&'c HeldObject> {
    let objects = &contents.objects;
    let everywhere: HashSet<&str> = objects
        .iter()
        .chain(seen)
        .filter(|held| is_in_every_namespace(held))
        .map(|held| held.uid.as_str())
        .collect();
    let agreed: HashSet<&str> = seen.iter().map(|held| held.uid.as_str()).collect();
    let is_settled = |uid: &str| going.contains(uid) || (agreed.contains(uid) && !everywhere.contains(uid));
    let inside: HashSet<&str> = objects.iter().map(|held| held.uid.as_str()).collect();
    let services: HashMap<&str, &str> = objects
        .iter()
        .filter(|held| held.key.group_kind == GroupKind::new("", "Service"))
        .map(|held| (held.key.name.as_str(), held.uid.as_str()))
        .collect();

    let mut counted = HashSet::new();
    let mut accounted_for = Vec::new();
    let mut owned: HashMap<&str, Vec<&str>> = HashMap::new();
    for held in objects
        .iter()
        .filter(|held| !everywhere.contains(held.uid.as_str()))
    {
        let uid = held.uid.as_str();
        // The garbage collector deletes an object only after its last owner.
        let mut staying = held.owners.iter().filter(|owner| !is_settled(owner));
        let has_staying_owner = staying.any(|owner| !inside.contains(owner.as_str()));
        let mut owners: Vec<&str> = owners(held, &services).collect();
        owners.retain(|uid| is_settled(uid) || (inside.contains(uid) && !everywhere.contains(uid)));
        // The data are a loss of their own, even if the claim was made for another object.
        let is_claim = held.key.group_kind == GroupKind::new("", "PersistentVolumeClaim");
        if is_claim || has_staying_owner || owners.is_empty() {
            counted.insert(uid);
            accounted_for.push(uid);
        } else if is_settled(uid) || owners.iter().any(|owner| is_settled(owner)) {
            accounted_for.push(uid);
        }
        for owner in owners {
            owned.entry(owner).or_default().push(uid);
        }
    }
    let mut omitted = HashSet::new();
    while let Some(uid) = accounted_for.pop() {
        if omitted.insert(uid) {
            accounted_for.extend(owned.get(uid).into_iter().flatten());
        }
    }
    omitted.retain(|uid| !counted.contains(uid));
    let mut lost: Vec<&HeldObject> = objects.iter().collect();
    lost.retain(|held| {
        let uid = held.uid.as_str();
        !everywhere.contains(uid) && !is_settled(uid) && !omitted.contains(uid)
    });
    lost
}

/// Returns the UIDs of the objects that an object was made for. Endpoints are made for the Service of
/// their name.
fn owners<'h>(held: &'h HeldObject, services: &HashMap<&str, &'h str>) -> impl Iterator<Item = &'h str> {
    let is_endpoints = held.key.group_kind == GroupKind::new("", "Endpoints");
    let service = is_endpoints.then(|| services.get(held.key.name.as_str()).copied());
    let owners = held.owners.iter().map(String::as_str);
    owners.chain(service.flatten())
}

/// Returns whether a controller makes the object in every namespace. Neither is such an object a loss,
/// nor does it account for the objects that it owns.
fn is_in_every_namespace(held: &HeldObject) -> bool {
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
