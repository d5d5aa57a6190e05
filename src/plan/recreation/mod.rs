//! Recreation: which members are deleted and created again if the server refuses to update them, and
//! what prevents that.
//!
//! Only the server knows whether an update is possible. So a plan holds which objects may be recreated, and `execute`
//! finds out which of them have to be, in a run and in a dry run.

mod pods_and_claims;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use pods_and_claims::{claims_after_recreation, describe_lost_volume_data};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Judge, Plan, Policy, Preconditions, ReasonToKeep, Refusal, Risk, is_namespace_or_crd_kind,
    list_with_keep_annotations, prune_rules,
};
use crate::compare::ownership::owners_if_only_others;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::pointer::Pointer;
use crate::model::text::first_names_and_more;
use crate::model::user_annotations::{keep_annotation, recreate_annotation};

/// The members that are recreated if the server refuses to update them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Recreate {
    /// No member.
    Never,
    /// The members whose manifests have the annotation or label for recreation.
    #[default]
    Marked,
    /// The marked members, and all members of these kinds.
    Kinds(BTreeSet<GroupKind>),
}

impl Recreate {
    /// Returns whether the user wants the object to be recreated if the server refuses to update it.
    pub fn chooses(&self, object: &DesiredObject) -> bool {
        self.chooses_by_metadata(&object.key.group_kind, &object.object.metadata())
    }

    /// Returns whether the user wants an object with this kind and metadata to be recreated, like [`Self::chooses`].
    ///
    /// A namespace or CRD is never recreated: the objects in it would be deleted, and not be created again.
    pub fn chooses_by_metadata(&self, kind: &GroupKind, metadata: &Map<String, Value>) -> bool {
        if is_namespace_or_crd_kind(kind) {
            return false;
        }
        match self {
            Self::Never => false,
            Self::Marked => is_marked(metadata),
            Self::Kinds(kinds) => kinds.contains(kind) || is_marked(metadata),
        }
    }

    /// Returns whether a run that is bound by these preconditions may recreate the object.
    pub fn allows(&self, object: &DesiredObject, preconditions: &Preconditions) -> bool {
        preconditions.admits_recreation(&object.key) && self.chooses(object)
    }
}

impl Policy {
    /// Returns whether a run that is bound by these preconditions may delete this member and create it
    /// again, as far as the manifest and the flags show it. Whether the live object is an obstacle is
    /// judged by [`Judge::obstacle_to_recreation`].
    pub fn may_recreate(&self, object: &DesiredObject, preconditions: &Preconditions) -> bool {
        let would_lose_data = self.data_loss == Risk::Refused && loses_data(&object.key.group_kind);
        self.recreate.allows(object, preconditions)
            && !would_lose_data
            && RecreationObstacle::from_manifest(object).is_none()
    }
}

fn is_marked(metadata: &Map<String, Value>) -> bool {
    recreate_annotation(
        &read_labels_or_annotations(metadata, "labels"),
        &read_labels_or_annotations(metadata, "annotations"),
    )
    .is_some()
}

/// Reads labels or annotations from the metadata of a manifest. Values that are not strings are left out.
fn read_labels_or_annotations<'m>(
    metadata: &'m Map<String, Value>,
    field: &str,
) -> BTreeMap<&'m str, &'m str> {
    let pairs = metadata.get(field).and_then(Value::as_object);
    pairs
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

/// The reason for which a live object is not deleted and created again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecreationObstacle {
    /// The object is the parent of the set.
    Parent,
    /// The object is not a member of the set.
    NotAMember,
    /// The object is a member of the set with this id.
    OfAnotherSet(String),
    /// A prune would keep the object for this reason.
    Kept(ReasonToKeep),
    /// The object is the parent of another set.
    ParentOfAnotherSet,
    /// The data of the object would be lost.
    LosesData,
    /// The object owns, or may own, these objects that stay. The map has the annotation or label that keeps one of
    /// them.
    Owns(Vec<ObjectKey>, BTreeMap<ObjectKey, String>),
    /// The set leaves these fields to others, and a new object would not have their values.
    ResetsIgnored(Vec<Pointer>),
    /// Only other field managers own the fields that the server refuses. Each field has its managers.
    FaultsOfOthers(Vec<(String, Vec<String>)>),
    /// The manifest has a `metadata.uid`. The server refuses to apply it while no object has this UID, so the object
    /// could not be created again.
    Uid,
}

impl RecreationObstacle {
    /// Returns the obstacle if the manifest has a keep annotation or a UID.
    pub fn from_manifest(object: &DesiredObject) -> Option<Self> {
        let metadata = object.object.metadata();
        if metadata.get("uid").is_some_and(|uid| !uid.is_null()) {
            return Some(Self::Uid);
        }
        let labels = read_labels_or_annotations(&metadata, "labels");
        let annotation = keep_annotation(&labels, &read_labels_or_annotations(&metadata, "annotations"))?;
        Some(Self::Kept(ReasonToKeep::Protected {
            keep_annotation: annotation,
        }))
    }

    /// Returns the obstacle if other field managers own all `fields` for which the server refused the update. Then the
    /// manifest may be valid, and a new object would lose the values of these fields. `ours` are our field managers.
    pub fn from_refused_fields_of_others<'f>(
        fields: impl Iterator<Item = &'f str>,
        manifest: &Value,
        live: &Value,
        ours: &BTreeSet<&str>,
    ) -> Option<Self> {
        let owned = fields.map(|field| {
            let owners = owners_if_only_others(field, manifest, live, ours)?;
            Some((field.to_owned(), owners))
        });
        // `None` as soon as one of the fields is ours.
        let owned: Vec<(String, Vec<String>)> = owned.collect::<Option<_>>()?;
        (!owned.is_empty()).then_some(Self::FaultsOfOthers(owned))
    }

    /// Returns the hint for the obstacle.
    pub fn hint(&self) -> String {
        const KEEP: &str = "keep the old value, or give the object another name";
        match self {
            Self::NotAMember => {
                "make it a member with `kubectl applyset adopt SET -f …`, then apply again".to_owned()
            }
            Self::LosesData => {
                format!("{KEEP}, or pass --allow-data-loss if the loss is intended")
            }
            Self::ResetsIgnored(_) => {
                "give the manifest the live values of these fields, or remove their rules from the file of \
                 --ignore, if they have any"
                    .to_owned()
            }
            Self::FaultsOfOthers(_) => {
                "ask the owners to correct these fields, or add the fields to the manifest".to_owned()
            }
            Self::Uid => "remove metadata.uid from the manifest".to_owned(),
            Self::Parent
            | Self::OfAnotherSet(_)
            | Self::ParentOfAnotherSet
            | Self::Kept(_)
            | Self::Owns(..) => KEEP.to_owned(),
        }
    }
}

impl fmt::Display for RecreationObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parent => f.write_str("it is the set's parent"),
            Self::NotAMember => f.write_str("it is not a member of the set"),
            Self::OfAnotherSet(id) => write!(f, "it is a member of another set ({id})"),
            Self::Kept(reason) => reason.fmt(f),
            Self::ParentOfAnotherSet => {
                f.write_str("it is the parent of another set, whose members would become orphans")
            }
            Self::LosesData => f.write_str("its data would be lost"),
            Self::Uid => f.write_str("the manifest has metadata.uid, and the new object would have another"),
            Self::Owns(dependents, keep_annotations) => write!(
                f,
                "the garbage collector would then delete {}",
                list_with_keep_annotations(dependents, keep_annotations)
            ),
            Self::FaultsOfOthers(fields) => {
                let fields = fields
                    .iter()
                    .map(|(field, owners)| format!("{field} ({})", owners.join(", ")));
                write!(
                    f,
                    "only other managers own the refused fields: {}",
                    first_names_and_more(fields)
                )
            }
            Self::ResetsIgnored(fields) => {
                let fields: Vec<String> = fields.iter().map(Pointer::to_string).collect();
                write!(
                    f,
                    "fields that are left to others would change: {}",
                    fields.join(", ")
                )
            }
        }
    }
}

/// Returns whether deleting an object of this kind loses data that its new object does not have again.
pub fn loses_data(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "PersistentVolumeClaim" | "PersistentVolume" | "Namespace")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

impl Judge<'_> {
    /// Returns the reason for which the live object is not deleted and created again; `None` if it may be recreated.
    /// The judge has to be made for a plan that deletes the object; see [`Plan::with_only_delete_of`].
    ///
    /// An object that is already being deleted has no obstacle: it only remains to create it again.
    pub fn obstacle_to_recreation(&self, live: &Live) -> Option<RecreationObstacle> {
        if self.set.is_parent(live) {
            return Some(RecreationObstacle::Parent);
        }
        // The new object would have neither the UID nor the record, so all members of that set would become orphans.
        if live.parent_of.is_some() {
            return Some(RecreationObstacle::ParentOfAnotherSet);
        }
        match &live.part_of {
            None => return Some(RecreationObstacle::NotAMember),
            Some(id) if id != self.set.id.as_str() => {
                return Some(RecreationObstacle::OfAnotherSet(id.clone()));
            }
            Some(_) => {}
        }
        match prune_rules::reason_to_keep_by_metadata(live, self.set, &self.policy.appliers) {
            None | Some(ReasonToKeep::Terminating { .. }) => {}
            Some(reason) => return Some(RecreationObstacle::Kept(reason)),
        }
        if self.policy.data_loss == Risk::Refused && loses_data(&live.key.group_kind) {
            return Some(RecreationObstacle::LosesData);
        }
        let refusal = self.refuse_to_delete(live).into_iter().next()?;
        Some(match refusal {
            Refusal::OwnsUndetachable { dependents, .. } => {
                RecreationObstacle::Owns(dependents, BTreeMap::new())
            }
            Refusal::OwnsDependents {
                dependents,
                keep_annotations,
                ..
            } => RecreationObstacle::Owns(dependents, keep_annotations),
            // All other refusals of a judge are about lost data.
            _ => RecreationObstacle::LosesData,
        })
    }
}

impl Plan {
    /// Returns a plan that only deletes this object and has the skips of this plan. A judge for it finds the same
    /// obstacles as for a prune, such as kept objects that the object owns.
    #[must_use]
    pub fn with_only_delete_of(&self, live: &Live) -> Self {
        Self {
            prunes: vec![vec![live.clone()]],
            skips: self.skips.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
