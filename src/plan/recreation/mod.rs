//! Recreation: which members are deleted and created again if the server refuses to update them, and
//! what prevents that.
//!
//! Only the server knows whether an object has to be recreated, so a plan holds the choice and not the
//! need. `execute` finds out about the need, in a run and in a dry run.

mod pods_and_claims;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use pods_and_claims::{adopts_pods, claims_after_recreation, data_of_volumes};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    DependencyEdges, Dependents, Judge, Plan, Policy, Preconditions, Refusal, Risk, SkipReason,
    is_container_kind, prune_rules, with_keep_annotations,
};
use crate::compare::ownership::only_others_own;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::Record;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::pointer::Pointer;
use crate::model::text::listed;
use crate::model::user_annotations::{keep_annotation, recreate_annotation};

/// The members that are recreated if the server refuses to update them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Recreate {
    /// None.
    Never,
    /// Those that are marked in the manifests.
    #[default]
    Marked,
    /// These, and all of these kinds.
    Kinds(BTreeSet<GroupKind>),
}

impl Recreate {
    /// Returns whether the object is recreated if that is needed.
    pub fn chooses(&self, object: &DesiredObject) -> bool {
        self.chooses_one(&object.key.group_kind, &object.object.metadata())
    }

    /// Returns the same as [`Self::chooses`], from kind and metadata alone. A namespace or definition is never chosen:
    /// what is in it would be deleted, and not be created again.
    pub fn chooses_one(&self, kind: &GroupKind, metadata: &Map<String, Value>) -> bool {
        match self {
            _ if is_container_kind(kind) => false,
            Self::Never => false,
            Self::Marked => is_marked(metadata),
            Self::Kinds(kinds) => kinds.contains(kind) || is_marked(metadata),
        }
    }

    /// Returns whether a run that is bound by these preconditions may recreate the object.
    pub fn allows(&self, object: &DesiredObject, preconditions: &Preconditions) -> bool {
        preconditions.admit_recreation(&object.key) && self.chooses(object)
    }
}

impl Policy {
    /// Returns whether a run that is bound by these preconditions may delete this member and create it
    /// again, as far as that is known before the server is asked.
    pub fn may_recreate(&self, object: &DesiredObject, preconditions: &Preconditions) -> bool {
        let keeps_data = self.data_loss == Risk::Refused && loses_data(&object.key.group_kind);
        self.recreate.allows(object, preconditions)
            && !keeps_data
            && RecreationObstacle::from_manifest(object).is_none()
    }
}

fn is_marked(metadata: &Map<String, Value>) -> bool {
    recreate_annotation(&pairs(metadata, "labels"), &pairs(metadata, "annotations")).is_some()
}

fn pairs<'m>(metadata: &'m Map<String, Value>, field: &str) -> BTreeMap<&'m str, &'m str> {
    let pairs = metadata.get(field).and_then(Value::as_object);
    let texts = pairs.into_iter().flatten();
    texts
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

/// The reason for which a live object is not deleted to be created again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecreationObstacle {
    /// It is the parent of the set.
    Parent,
    /// It is not a member of the set.
    NotAMember,
    /// It is a member of the set with this id.
    OfAnotherSet(String),
    /// A prune would keep it for this reason.
    Kept(SkipReason),
    /// It is the parent of another set.
    ParentOfAnotherSet,
    /// Its data would be lost.
    LosesData,
    /// It owns, or may own, these objects that stay, some of which an annotation or label keeps.
    Owns(Vec<ObjectKey>, BTreeMap<ObjectKey, String>),
    /// These fields are left to others, and a new object would not have their values.
    ResetsIgnored(Vec<Pointer>),
    /// All fields that the server refuses belong to others alone: these, with their managers.
    FaultsOfOthers(Vec<(String, Vec<String>)>),
}

impl RecreationObstacle {
    /// Returns the obstacle that the manifest's own keep annotation is.
    pub fn from_manifest(object: &DesiredObject) -> Option<Self> {
        let metadata = object.object.metadata();
        let keep_annotation = keep_annotation(&pairs(&metadata, "labels"), &pairs(&metadata, "annotations"))?;
        Some(Self::Kept(SkipReason::Protected { keep_annotation }))
    }

    /// Returns the reason not to recreate an object whose update the server refused for these fields:
    /// others own all of them. The manifest may be valid, and a new object would lose their values.
    pub fn from_faults<'f>(
        fields: impl Iterator<Item = &'f str>,
        manifest: &Value,
        live: &Value,
        ours: &BTreeSet<&str>,
    ) -> Option<Self> {
        let owned = fields.map(|field| {
            let owners = only_others_own(field, manifest, live, ours)?;
            Some((field.to_owned(), owners))
        });
        let owned: Vec<(String, Vec<String>)> = owned.collect::<Option<_>>()?;
        (!owned.is_empty()).then_some(Self::FaultsOfOthers(owned))
    }

    /// Returns the hint.
    pub fn hint(&self) -> String {
        const KEEP: &str = "keep the old value, or give the object another name";
        match self {
            Self::NotAMember => {
                "make it a member with `kubectl applyset adopt SET -f …`, then apply again".to_owned()
            }
            Self::LosesData | Self::ParentOfAnotherSet => {
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
            Self::Parent | Self::OfAnotherSet(_) | Self::Kept(_) | Self::Owns(..) => KEEP.to_owned(),
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
            Self::Owns(dependents, keep_annotations) => write!(
                f,
                "the garbage collector would then delete {}",
                with_keep_annotations(dependents, keep_annotations)
            ),
            Self::FaultsOfOthers(fields) => {
                let fields = fields
                    .iter()
                    .map(|(field, owners)| format!("{field} ({})", owners.join(", ")));
                write!(
                    f,
                    "only other managers own the refused fields: {}",
                    listed(fields)
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

/// Returns whether data are lost with an object of this kind although it is created again.
pub fn loses_data(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "PersistentVolumeClaim" | "PersistentVolume" | "Namespace")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

impl Judge<'_> {
    /// Returns the reason for which the live object is not deleted to be created again; `None` if it may
    /// be. The plan of this judge deletes the object.
    ///
    /// An object that is already being deleted has no obstacle.
    pub fn obstacle_to_recreation(&self, live: &Live) -> Option<RecreationObstacle> {
        if self.set.is_parent(live) {
            return Some(RecreationObstacle::Parent);
        }
        match &live.part_of {
            None => return Some(RecreationObstacle::NotAMember),
            Some(id) if id != self.set.id.as_str() => {
                return Some(RecreationObstacle::OfAnotherSet(id.clone()));
            }
            Some(_) => {}
        }
        match prune_rules::reason_to_stay(live, self.set, &self.policy.appliers) {
            None | Some(SkipReason::Terminating { .. }) => {}
            Some(reason) => return Some(RecreationObstacle::Kept(reason)),
        }
        if self.policy.data_loss == Risk::Refused && loses_data(&live.key.group_kind) {
            return Some(RecreationObstacle::LosesData);
        }
        let refusal = self.refusals(live).into_iter().next()?;
        Some(match refusal {
            Refusal::OwnsUndetachable { dependents, .. } => RecreationObstacle::Owns(dependents, [].into()),
            Refusal::OwnsDependents {
                dependents,
                keep_annotations,
                ..
            } => RecreationObstacle::Owns(dependents, keep_annotations),
            Refusal::PrunesParent { .. } => RecreationObstacle::ParentOfAnotherSet,
            _ => RecreationObstacle::LosesData,
        })
    }
}

impl Plan {
    /// Returns a plan that only deletes this object, and keeps what this plan keeps: what the object owns
    /// is judged like what a prune owns.
    #[must_use]
    pub fn to_delete(&self, live: &Live) -> Self {
        Self {
            record_during: Record::default(),
            record_after: Record::default(),
            prerequisites: Vec::new(),
            waves: Vec::new(),
            unchanged: Vec::new(),
            prunes: vec![vec![live.clone()]],
            last_prunes: Vec::new(),
            edges: DependencyEdges::default(),
            skips: self.skips.clone(),
            dependents: Dependents::default(),
            accepted: Vec::new(),
            preconditions: Preconditions::default(),
            refusals: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
