//! The contents of namespaces and of defined kinds, which are deleted with them.

use std::collections::BTreeMap;

use super::identity::ObjectKey;

/// What a namespace or the definition of a kind holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Objects in it that are not being deleted.
    pub objects: Vec<Held>,
    /// Resources that could not be listed.
    pub unknown: Vec<String>,
    /// Aggregated APIs that do not answer, by the names of their `APIService`s, with the reason. A namespace may hold
    /// objects of theirs.
    pub unanswering: BTreeMap<String, String>,
}

/// An object in a namespace or of a defined kind, as far as decisions need to know it: a
/// namespace may hold any number of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: String,
    /// The UIDs of its owners.
    pub owners: Vec<String>,
    /// The annotation or label that keeps it from being deleted, as `key: value`.
    pub keep_annotation: Option<String>,
}

impl Contents {
    /// Each object once, under whichever group it was seen first, in a settled order.
    pub fn settle(&mut self) {
        self.objects.sort_by(|one, other| one.uid.cmp(&other.uid));
        self.objects.dedup_by(|one, other| one.uid == other.uid);
        self.objects.sort_by(|one, other| one.key.cmp(&other.key));
        self.objects.shrink_to_fit();
        self.unknown.sort();
    }
}
