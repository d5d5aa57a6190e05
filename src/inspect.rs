//! What can be said of a set from its parent's record and its live members.
//!
//! Pure. `list` and `view` show it; nothing is read or mended here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::applyset::parent::{Bookkeeping, Reading, RecordedKinds};
use crate::applyset::{ApplySetId, ParentIdentity, Record};
use crate::discovery::{Discovery, KindLookup, Origin, Resource};
use crate::identity::GroupKind;
use crate::observe::{Live, ParentObject, Places};

/// A set as it was found in the cluster.
#[derive(Debug, Clone)]
pub struct FoundSet {
    /// The id that follows from the parent's identity.
    pub id: ApplySetId,
    /// The parent.
    pub identity: ParentIdentity,
    /// Its bookkeeping.
    pub reading: Reading,
    /// Objects that carry the id, by namespace, kind and name.
    pub members: Vec<Live>,
}

/// In what state a set is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The record is exactly what the members need.
    Consistent,
    /// The record is wider than that: a run was interrupted, or something failed.
    Unfinished,
    /// Something is wrong with the bookkeeping.
    InDoubt,
}

impl FoundSet {
    /// A set whose members are not known yet.
    pub fn new(identity: ParentIdentity, parent: &ParentObject) -> Self {
        Self {
            id: ApplySetId::of(&identity),
            identity,
            reading: parent.reading.clone(),
            members: Vec::new(),
        }
    }

    /// The record, as far as it can be read and its kinds are served.
    pub fn record(&self, discovery: &Discovery) -> Record {
        let Reading::Parent(bookkeeping) = &self.reading else {
            return Record::default();
        };
        Record {
            group_kinds: recorded_resources(bookkeeping, discovery).into_keys().collect(),
            additional_namespaces: bookkeeping.additional_namespaces.clone(),
        }
    }

    /// The namespaces that members live or may live in, the parent's own included where
    /// a member does.
    pub fn namespaces(&self, discovery: &Discovery) -> BTreeSet<String> {
        let lived_in = self.members.iter().filter_map(|live| live.key.namespace.clone());
        self.record(discovery)
            .additional_namespaces
            .into_iter()
            .chain(lived_in)
            .collect()
    }

    /// In what state it is.
    pub fn status(&self, discovery: &Discovery) -> Status {
        if !matches!(self.reading, Reading::Parent(_)) {
            return Status::InDoubt;
        }
        let mut lived_in = Record::default();
        for Live { key, .. } in &self.members {
            lived_in.add_place(
                &key.group_kind,
                key.namespace.as_deref(),
                self.identity.namespace.as_deref(),
            );
        }
        if lived_in == self.record(discovery) {
            Status::Consistent
        } else {
            Status::Unfinished
        }
    }
}

/// Where the members of these sets may be.
pub fn places(sets: &[FoundSet], discovery: &Discovery) -> Places {
    let mut resources: BTreeMap<GroupKind, Arc<Resource>> = BTreeMap::new();
    let mut namespaces = BTreeSet::new();
    for set in sets {
        if let Reading::Parent(bookkeeping) = &set.reading {
            resources.extend(recorded_resources(bookkeeping, discovery));
            namespaces.extend(bookkeeping.additional_namespaces.iter().cloned());
            namespaces.extend(set.identity.namespace.clone());
        }
    }
    Places {
        resources: resources.into_values().collect(),
        namespaces,
    }
}

/// Gives each set its members out of those found in the places of all of them.
pub fn assign(sets: &mut [FoundSet], mut members: Vec<Live>) {
    members.sort_by(|one, other| {
        let order = |live: &Live| {
            (
                live.key.namespace.clone(),
                live.key.group_kind.clone(),
                live.key.name.clone(),
            )
        };
        order(one).cmp(&order(other))
    });
    for set in sets {
        let is_member =
            |live: &&Live| live.part_of.as_deref() == Some(set.id.as_str()) && live.key != set.identity;
        set.members = members.iter().filter(is_member).cloned().collect();
    }
}

fn recorded_resources(
    bookkeeping: &Bookkeeping,
    discovery: &Discovery,
) -> BTreeMap<GroupKind, Arc<Resource>> {
    let lookups: Vec<KindLookup> = match &bookkeeping.kinds {
        RecordedKinds::GroupKinds(kinds) => kinds.iter().map(|kind| discovery.preferred(kind)).collect(),
        RecordedKinds::GroupResources(resources) => resources
            .iter()
            .map(|(resource, group)| discovery.group_resource(resource, group))
            .collect(),
    };
    lookups
        .into_iter()
        .filter_map(|lookup| match lookup {
            KindLookup::Found(resource) if resource.origin == Origin::Served => {
                Some((resource.group_kind(), Arc::new(resource.clone())))
            }
            _ => None,
        })
        .collect()
}
