//! Computes the state of a set from its parent's record and its live members; sends no requests.
//!
//! `list` and `view` show this state, and `verify` judges it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::slice;
use std::sync::Arc;

use serde::Serialize;

use crate::cluster::discovery::Discovery;
use crate::model::applyset::parent::{ParentAnnotations, Reading, RecordedKinds};
use crate::model::applyset::{ApplySetId, ParentIdentity, Record};
use crate::model::expiry::expiry_text;
use crate::model::history_annotation::Run;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::ParentObject;
use crate::plan::recorded_kinds::{self, RecordedKind};
use crate::read::{ListTarget, ListTargets, Reach, unique_by_uid};

/// A set as it was found in the cluster.
#[derive(Debug, Clone)]
pub struct FoundSet {
    /// The id that follows from the parent's identity.
    pub id: ApplySetId,
    pub identity: ParentIdentity,
    /// The parent's UID.
    pub parent_uid: String,
    /// The parent's ApplySet metadata.
    pub reading: Reading,
    /// The runs under way on the set.
    pub running: Vec<Run>,
    /// The runs that were abandoned.
    pub abandoned: Vec<Run>,
    /// The run that has begun last, or if none is under way, the run that has ended last.
    pub last_run: Option<Run>,
    /// The value of the annotation with the time at which the set expires; `None` if it does not expire.
    pub expires: Option<String>,
    /// Objects that carry the id, by namespace, kind and name.
    pub members: Vec<Live>,
    /// Collections that may hold members, and that could not be read.
    pub unread: Vec<ListTarget>,
}

/// The status of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordStatus {
    /// The record is exactly what the members need.
    Consistent,
    /// The record is wider than the members need: a run was interrupted, or something failed.
    Unfinished,
    /// The record is faulty, or contradicts the members.
    Invalid,
    /// No fault is known, but not everything could be read.
    Unknown,
}

impl fmt::Display for RecordStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The part of the scope that could be listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Visibility {
    /// The whole scope: the found members are complete.
    Whole,
    /// A part of the scope: there may be more members.
    Part,
    /// No part of the scope: the members are unknown.
    #[default]
    Nothing,
}

impl FoundSet {
    /// Creates a set whose members are not known yet.
    pub fn new(identity: ParentIdentity, parent: &ParentObject) -> Self {
        Self {
            id: ApplySetId::for_parent(&identity),
            identity,
            parent_uid: parent.uid.clone(),
            reading: parent.reading.clone(),
            running: parent.running.clone(),
            abandoned: parent.abandoned.clone(),
            last_run: parent.last_run(),
            expires: expiry_text(&parent.annotations),
            members: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Returns whether a run is under way that may add members, and has recorded their kinds and namespaces already.
    pub fn is_being_added_to(&self) -> bool {
        self.running.iter().any(|run| !run.takes_out)
    }

    /// Returns the recorded kinds as `Kind.group`, whether they are served or not; `None` if the record cannot be read.
    /// An entry of the deprecated form is returned as recorded (`resource.group`) if its kind cannot be determined.
    pub fn recorded_kind_names(&self, discovery: &Discovery) -> Option<Vec<String>> {
        let recorded = self.recorded()?;
        let names: BTreeSet<String> = recorded_kinds_with_shown_names(recorded, discovery)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        Some(names.into_iter().collect())
    }

    /// Returns the namespaces that are recorded or have members; `None` if the record cannot be read. The parent's own
    /// namespace is included only if it has a member.
    pub fn recorded_and_member_namespaces(&self) -> Option<BTreeSet<String>> {
        let recorded = self.recorded()?.additional_namespaces.iter().cloned();
        let of_members = self.members.iter().filter_map(|live| live.key.namespace.clone());
        Some(recorded.chain(of_members).collect())
    }

    /// Returns the part of the set's scope that could be listed.
    pub fn determine_visible_part_of_scope(&self, discovery: &Discovery) -> Visibility {
        let Some(recorded) = self.recorded() else {
            return Visibility::Nothing;
        };
        let has_unknowable = recorded_kinds_with_shown_names(recorded, discovery)
            .iter()
            .any(|(_, entry)| {
                matches!(
                    entry,
                    RecordedKind::Unknowable(_)
                        | RecordedKind::UnexpectedlyMissing(_)
                        | RecordedKind::Kept(_)
                )
            });
        if self.unread.is_empty() && !has_unknowable {
            return Visibility::Whole;
        }
        let collections =
            determine_places_of_sets(slice::from_ref(self), discovery).each_collection(Reach::Namespace);
        if self.members.is_empty() && self.unread.len() == collections.len() {
            Visibility::Nothing
        } else {
            Visibility::Part
        }
    }

    /// Returns the content of its parent's record, if that can be read.
    pub fn recorded(&self) -> Option<&ParentAnnotations> {
        self.reading.recorded()
    }
}

/// Returns the collections that may hold the members of these sets.
pub fn determine_places_of_sets(sets: &[FoundSet], discovery: &Discovery) -> ListTargets {
    let mut resources: BTreeMap<GroupKind, Arc<Resource>> = BTreeMap::new();
    let mut namespaces = BTreeSet::new();
    for set in sets {
        if let Reading::Parent(recorded) = &set.reading {
            resources.extend(find_served_recorded_resources(recorded, discovery));
            namespaces.extend(recorded.additional_namespaces.iter().cloned());
            namespaces.extend(set.identity.namespace.clone());
        }
    }
    ListTargets {
        resources: resources.into_values().collect(),
        namespaces,
    }
}

/// Assigns to each set its members among all found ones, and its own collections among those that could
/// not be read.
pub fn assign_members(
    sets: &mut [FoundSet],
    mut members: Vec<Live>,
    unread: &[ListTarget],
    discovery: &Discovery,
) {
    members.sort_by_cached_key(|live| {
        let ObjectKey {
            group_kind,
            namespace,
            name,
        } = live.key.clone();
        (namespace, group_kind, name)
    });
    let mut by_set: BTreeMap<String, Vec<Live>> = BTreeMap::new();
    for live in members {
        if let Some(id) = &live.part_of {
            by_set.entry(id.clone()).or_default().push(live);
        }
    }
    let unread: HashSet<&ListTarget> = unread.iter().collect();
    for set in sets {
        // One parent may be found twice, as two sets with one id, if two groups serve its kind. The parent is never a
        // member of its own set, under whichever group it is listed.
        set.members = by_set.get(set.id.as_str()).cloned().unwrap_or_default();
        let (identity, uid) = (&set.identity, &set.parent_uid);
        set.members
            .retain(|live| live.key != *identity && live.uid != *uid);
        let kinds = set
            .recorded()
            .map(|recorded| to_current_form(recorded, discovery).group_kinds)
            .unwrap_or_default();
        unique_by_uid(
            &mut set.members,
            |live| live,
            |key| kinds.contains(&key.group_kind),
        );
        let own = determine_places_of_sets(slice::from_ref(set), discovery).each_collection(Reach::Namespace);
        set.unread = own.into_iter().filter(|place| unread.contains(place)).collect();
    }
}

/// Returns the record in the current form. Entries of the deprecated form become the kinds that are served; those whose
/// kind cannot be determined are left out.
pub fn to_current_form(recorded: &ParentAnnotations, discovery: &Discovery) -> Record {
    match &recorded.kinds {
        RecordedKinds::GroupKinds(kinds) => Record {
            group_kinds: kinds.clone(),
            additional_namespaces: recorded.additional_namespaces.clone(),
        },
        RecordedKinds::GroupResources(_) => served_record(recorded, discovery),
    }
}

/// Returns the part of the record whose kinds are served, with a misspelled kind as the server spells it.
pub fn served_record(recorded: &ParentAnnotations, discovery: &Discovery) -> Record {
    Record {
        group_kinds: find_served_recorded_resources(recorded, discovery)
            .into_keys()
            .collect(),
        additional_namespaces: recorded.additional_namespaces.clone(),
    }
}

fn find_served_recorded_resources(
    recorded: &ParentAnnotations,
    discovery: &Discovery,
) -> BTreeMap<GroupKind, Arc<Resource>> {
    recorded_kinds_with_shown_names(recorded, discovery)
        .into_iter()
        .filter_map(|(_, entry)| match entry {
            RecordedKind::Served(resource) | RecordedKind::Misspelled(resource) => {
                Some((resource.group_kind(), Arc::new(resource.clone())))
            }
            RecordedKind::Gone
            | RecordedKind::Kept(_)
            | RecordedKind::UnexpectedlyMissing(_)
            | RecordedKind::Unknowable(_) => None,
        })
        .collect()
}

/// Returns the recorded kinds by the names to show. An entry of the deprecated form is named by its kind, if that can
/// be determined.
pub fn recorded_kinds_with_shown_names<'d>(
    recorded: &ParentAnnotations,
    discovery: &'d Discovery,
) -> Vec<(String, RecordedKind<'d>)> {
    let is_deprecated = matches!(recorded.kinds, RecordedKinds::GroupResources(_));
    recorded_kinds::classify_recorded_kinds(&recorded.kinds, discovery)
        .into_iter()
        .map(|(name, entry)| match entry {
            RecordedKind::Served(resource) if is_deprecated => (resource.group_kind().to_string(), entry),
            _ => (name.to_string(), entry),
        })
        .collect()
}
