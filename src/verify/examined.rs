//! The input of `verify`: a parent with its set, and what is known of the cluster.

use std::collections::BTreeSet;

use super::lenient_record::read_leniently;
use super::record_findings::served_record;
use super::{ParentKind, appliers};
use crate::cluster::discovery::Discovery;
use crate::model::applyset::parent::Reading;
use crate::model::applyset::{Record, Tooling};
use crate::model::live::Live;
use crate::plan::reason_not_a_member;
use crate::read::ParentCandidate;
use crate::read::found_set::FoundSet;

/// A parent or an object that claims to be one, with what was found of its set.
#[derive(Debug, Clone)]
pub struct Examined {
    pub parent: ParentCandidate,
    /// Permission of its kind to be a parent.
    pub kind: ParentKind,
    /// Its set. An invalid record is read as far as it makes sense.
    pub found: FoundSet,
}

/// Extent of what was read of the cluster, or understood of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every kind in every namespace.
    Whole,
    /// Less. Absence proves nothing.
    Part,
}

/// Everything that the rules depend on, apart from the sets.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The kinds that the server serves.
    pub discovery: &'a Discovery,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// Extent of what was read.
    pub extent: Extent,
    /// Treatment of namespaces with members that are not recorded.
    pub new_namespaces: NewNamespaces,
    /// Objects that were applied as members of this program's sets, and are in no set.
    pub lost: &'a [Live],
    /// Treatment of runs under way.
    pub runs_under_way: RunsUnderWay,
}

/// Treatment of the entries of runs that are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsUnderWay {
    /// They are kept.
    Kept,
    /// The user is asked whether they were killed, and they end if so.
    Ended,
}

/// Treatment of a namespace that is not recorded and holds objects with the set's label.
///
/// A label proves nothing: the id of a set and the field manager of its members are public. A tenant
/// who may create objects in one namespace could have that namespace recorded. A pipeline without
/// permission to list there would fail from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewNamespaces {
    /// It is not recorded.
    Excluded,
    /// It is recorded. The user has checked who wrote the label.
    Included,
}

impl Examined {
    /// Creates it without members; they are read later.
    pub fn new(parent: ParentCandidate, kind: ParentKind) -> Self {
        let mut found = FoundSet::new(parent.identity.clone(), &parent.object);
        if let (Reading::Faulty(_), Some(understood)) = (&found.reading, read_leniently(&parent)) {
            found.reading = Reading::Parent(understood.record);
        }
        Self { parent, kind, found }
    }

    /// Returns the set as `list` shows it: an invalid record counts as none, and a copy of the label
    /// counts only where an apply finds and keeps it.
    pub fn as_listed(&self, surroundings: Surroundings<'_>) -> FoundSet {
        let mut listed = FoundSet {
            reading: self.parent.object.reading.clone(),
            ..self.found.clone()
        };
        let recorded = listed
            .recorded()
            .map(|recorded| served_record(recorded, surroundings.discovery));
        let appliers = appliers(self, surroundings);
        listed.members.retain(|live| {
            let parent_uid = Some(&*self.found.parent_uid);
            reason_not_a_member(live, parent_uid, &appliers).is_none()
                || (matches!(&recorded, Some(recorded) if is_within(live, recorded, &self.found))
                    && !live.is_owned_copy(parent_uid, &appliers))
        });
        listed
    }

    /// Returns whether it is this program's set and its record covers the object.
    pub(super) fn may_hold(&self, live: &Live, discovery: &Discovery) -> bool {
        let recorded = self.found.recorded();
        recorded.is_some_and(|recorded| {
            let served = served_record(recorded, discovery);
            recorded.tooling.is_same_program(&Tooling::this_program())
                && is_within(live, &served, &self.found)
        })
    }

    /// Returns whether the object is in the namespace of the parent.
    pub(super) fn is_home_of(&self, live: &Live) -> bool {
        live.key.namespace.is_some() && live.key.namespace == self.found.identity.namespace
    }
}

/// Returns whether the record covers the object.
pub(super) fn is_within(live: &Live, recorded: &Record, set: &FoundSet) -> bool {
    recorded.covers(&Record::from_members([&live.key].into_iter(), &set.identity))
}
