//! The cluster state at the moment of planning.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{Dependent, KnownDependencies, OtherParents};
use crate::compare::changes::Verdict;
use crate::manifest::desired::Desired;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Pairs;
use crate::model::containers::{Contents, Owners};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;

/// The cluster state that a plan is made for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The record of the parent; empty if there is no parent yet.
    pub recorded: Record,
    /// Kinds and namespaces that stay in the record although `members` has no object there: kinds whose objects cannot
    /// be listed now, and, in a run that ends the set, the kinds and namespaces of objects that have lost their label.
    pub record_to_keep: Record,
    /// Objects that carry the set's part-of label.
    pub members: Vec<Live>,
    /// Members of other sets, of the kinds and namespaces of the manifests.
    pub others: Vec<Live>,
    /// The parents of the sets that `others` are members of.
    pub other_parents: OtherParents,
    /// Objects of the manifests that exist and are not members of this set; empty unless the policy
    /// refuses objects that are not in a set.
    pub existing: Vec<Live>,
    /// Results of comparing live members with their manifests, by index in `Desired::members`.
    pub comparisons: BTreeMap<usize, Verdict>,
    /// What is known of the objects that the manifests depend on.
    pub dependencies: KnownDependencies,
    /// Namespaces that are being deleted. The objects in them are deleted with them.
    pub terminating_namespaces: BTreeSet<String>,
    /// Contents of the namespaces and CRDs that would be pruned; see [`super::find_containers_to_prune`].
    pub contents: BTreeMap<ObjectKey, Contents>,
    /// The parent's annotations, without the ApplySet annotations.
    pub parent_annotations: Pairs,
    /// The parent, if it exists and has owners.
    pub parent: Option<Dependent>,
    /// Owners of the namespaces and CRDs of objects that are kept or desired; see
    /// [`super::find_containers_of_staying_objects`].
    pub container_owners: BTreeMap<ObjectKey, Owners>,
}

impl Observed {
    /// Returns the objects that exist and are not members of this set, by their keys.
    pub fn not_members(&self) -> impl Iterator<Item = (&ObjectKey, &Live)> {
        let existing = self.existing.iter().chain(&self.others);
        existing.map(|live| (&live.key, live))
    }

    /// Frees what only planning needs: the members that the manifests hold, and their comparisons. Otherwise the
    /// members of a large set would stay in memory for the whole run.
    pub fn forget_desired(&mut self, desired: &Desired) {
        let keys: HashSet<&ObjectKey> = desired.members.iter().map(|object| &object.key).collect();
        self.members.retain(|live| !keys.contains(&live.key));
        self.members.shrink_to_fit();
        self.comparisons.clear();
    }
}
