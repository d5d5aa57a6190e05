//! The input of the rules of `verify`: a parent with its set, and what is known about the cluster.

use std::collections::BTreeSet;

use super::lenient_record::read_leniently;
use super::{ParentEligibility, find_appliers};
use crate::cluster::discovery::Discovery;
use crate::model::applyset::parent::Reading;
use crate::model::applyset::{Record, Tooling};
use crate::model::live::Live;
use crate::plan::reason_not_a_member;
use crate::read::LiveParent;
use crate::read::found_set::{FoundSet, served_record};

/// A parent, or an object that has the label or the annotations of one, with its set.
#[derive(Debug, Clone)]
pub struct ExaminedSet {
    pub parent: LiveParent,
    /// Whether the convention allows objects of this kind to be parents.
    pub eligibility: ParentEligibility,
    /// The set. If the record is invalid, the set has its valid entries ([`read_leniently`]).
    pub found: FoundSet,
}

/// How much of the cluster was listed, or how much of a record could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every kind in every namespace, or every entry of the record.
    Whole,
    /// Not everything. An object or entry that was not seen may exist all the same.
    Part,
}

/// Everything that the rules depend on, apart from the sets.
#[derive(Clone, Copy)]
pub struct CheckContext<'a> {
    /// The kinds that the server serves.
    pub discovery: &'a Discovery,
    /// The field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// How much of the cluster was listed.
    pub extent: Extent,
    pub new_namespaces: NewNamespaces,
    /// The lost members: objects that were applied as members of this program's sets, and have no part-of label any
    /// more.
    pub lost: &'a [Live],
    pub runs_under_way: RunsUnderWay,
}

/// What a repair does with the runs that the parent lists as under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsUnderWay {
    /// The parent still lists them.
    Kept,
    /// The user is asked whether the runs were killed. If so, the parent lists them as ended.
    Ended,
}

/// Whether a repair records a namespace only because it has objects with the set's label.
///
/// The label does not prove that the objects are members: anybody can read the id of the set and write a label under
/// the members' field manager. If a repair always recorded the namespace, a tenant who may create objects in one
/// namespace could add this namespace to the record, and a pipeline without the permission to list there would fail
/// from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewNamespaces {
    /// Only recorded namespaces stay recorded.
    Excluded,
    /// The namespace is added to the record (`--include-namespaces`): the user has checked who wrote the labels.
    Included,
}

impl ExaminedSet {
    /// Creates a set without members; the caller lists them later.
    pub fn new(parent: LiveParent, eligibility: ParentEligibility) -> Self {
        let mut set = FoundSet::new(parent.live.key.clone(), &parent.object);
        if let (Reading::Faulty(_), Some(lenient)) = (&set.reading, read_leniently(&parent)) {
            set.reading = Reading::Parent(lenient.record);
        }
        Self {
            parent,
            eligibility,
            found: set,
        }
    }

    /// Returns the set as `list` shows it. An invalid record is left out. So is an object that only has a copy of the
    /// label, unless the record covers it: there, an apply finds and keeps it.
    pub fn as_shown_by_list(&self, context: CheckContext<'_>) -> FoundSet {
        let mut set = FoundSet {
            reading: self.parent.object.reading.clone(),
            ..self.found.clone()
        };
        let recorded = set
            .recorded()
            .map(|recorded| served_record(recorded, context.discovery));
        let appliers = find_appliers(self, context);
        let parent_uid = Some(&*self.found.parent_uid);
        set.members.retain(|live| {
            let is_member = reason_not_a_member(live, parent_uid, &appliers).is_none();
            let is_in_scope = recorded
                .as_ref()
                .is_some_and(|recorded| record_covers(live, recorded, &self.found));
            is_member || (is_in_scope && !live.is_copy_with_foreign_owner(parent_uid, &appliers))
        });
        set
    }

    /// Returns whether the object may have been a member: the set is this program's, and its record covers the object.
    pub(super) fn may_have_lost(&self, live: &Live, discovery: &Discovery) -> bool {
        self.found.recorded().is_some_and(|recorded| {
            recorded.tooling.is_same_program(&Tooling::this_program())
                && record_covers(live, &served_record(recorded, discovery), &self.found)
        })
    }

    /// Returns whether the object and the parent are in the same namespace; `false` if they are cluster-scoped.
    pub(super) fn shares_namespace_with(&self, live: &Live) -> bool {
        live.key.namespace.is_some() && live.key.namespace == self.found.identity.namespace
    }
}

/// Returns whether the record covers the object.
pub(super) fn record_covers(live: &Live, recorded: &Record, set: &FoundSet) -> bool {
    recorded.covers(&Record::from_members([&live.key].into_iter(), &set.identity))
}
