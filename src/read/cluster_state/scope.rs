//! Determines the scope of a set in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::judge_parent::JudgedParent;
use super::{ClusterState, Goal};
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::applyset::Tooling;
use crate::model::containers::NamespaceState;
use crate::model::identity::GroupKind;
use crate::plan::{self, MemberScope, Observed, ParentStatus, Pruning};
use crate::read::orphans::{self, OrphanSearchResult, ParentPresence, SearchRules};
use crate::read::{Cluster, NamedSet};

/// The scope of a set.
pub(super) struct ScopedSet {
    pub(super) judged: JudgedParent,
    pub(super) member_scope: MemberScope,
    /// The result of a search of the whole cluster; `None` if there was none.
    pub(super) orphans: Option<OrphanSearchResult>,
}

impl ScopedSet {
    /// Returns the state of a set whose members are not listed.
    pub(super) fn state_without_members(&self, named: &NamedSet) -> ClusterState {
        ClusterState {
            warnings: self.warnings(named),
            ..self.initial_state(named)
        }
    }

    /// Returns the warnings about the scope, and about what was found while it was determined.
    pub(super) fn warnings(&self, named: &NamedSet) -> Vec<String> {
        let mut warnings = self.member_scope.describe_unlisted_recorded_kinds();
        if let Some(orphans) = &self.orphans {
            warnings.extend(orphans.warnings(named, self.judged.presence()));
        }
        warnings
    }

    /// Returns the state before members are read.
    pub(super) fn initial_state(&self, named: &NamedSet) -> ClusterState {
        let JudgedParent {
            parent,
            take_over,
            parent_status,
            namespaces,
            ..
        } = &self.judged;
        ClusterState {
            read_at: Instant::now(),
            parent: parent.clone(),
            take_over: take_over.clone(),
            namespaces: namespaces.clone(),
            places: self.member_scope.places.clone(),
            observed: Observed {
                recorded: self.member_scope.recorded.clone(),
                record_to_keep: self.member_scope.record_to_keep.clone(),
                parent: parent
                    .as_ref()
                    .and_then(|parent| named.parent_as_dependent(&parent.object)),
                ..Observed::default()
            },
            pruning: Pruning::Enabled,
            former_tooling: former_tooling(named, parent_status),
            likely_members_left: 0,
            with_live_fields: BTreeMap::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Returns the tool that managed the set until now, if this run takes it over.
pub(super) fn former_tooling(named: &NamedSet, parent_status: &ParentStatus) -> Option<Tooling> {
    match parent_status {
        ParentStatus::Recorded(applyset_record)
            if !applyset_record.tooling.is_same_program(&named.set.tooling) =>
        {
            Some(applyset_record.tooling.clone())
        }
        ParentStatus::Recorded(_) | ParentStatus::New => None,
    }
}

/// Determines the scope: recorded kinds and namespaces, those of the manifests and, for a set without a
/// record, those that a search of the whole cluster finds.
///
/// # Errors
///
/// An invalid record, or a kind that exists and is not served.
pub(super) async fn determine_scope(
    cluster: &mut Cluster,
    named: &NamedSet,
    goal: &Goal<'_>,
    mut judged: JudgedParent,
    search: SearchRules<'_>,
) -> Result<ScopedSet, Error> {
    let needs_search = needs_search_of_cluster(goal, &judged.parent_status, judged.presence());
    if judged.parent_status == ParentStatus::New {
        let kinds = find_unrecorded_namespace_or_crd_kinds(named, &judged.namespaces);
        if !kinds.is_empty() {
            judged.parent_status = ParentStatus::assumed_after_interrupted_first_run(&named.set, kinds);
        }
    }
    if let ParentStatus::Recorded(applyset_record) = &judged.parent_status {
        cluster
            .await_or_judge_recorded_kinds(&[&applyset_record.kinds])
            .await?;
    }
    let nothing = Desired::default();
    let desired = goal.desired().unwrap_or(&nothing);
    let mut member_scope =
        plan::determine_member_scope(&named.set, &judged.parent_status, desired, &cluster.discovery)?;
    let orphans = if needs_search {
        Some(orphans::find_and_extend_scope(cluster, named, &mut member_scope, search).await?)
    } else {
        None
    };
    Ok(ScopedSet {
        judged,
        member_scope,
        orphans,
    })
}

/// Returns whether the members of a set are searched in the whole cluster.
///
/// Only a set without a record is searched for. An apply of manifests to a set without a parent does not search,
/// because nearly every such run is the first one of its set. A parent that exists may have had a record before, so the
/// run searches. So do all other commands, and an apply of no objects: they are the last chance to find the members.
fn needs_search_of_cluster(goal: &Goal<'_>, parent_status: &ParentStatus, parent: ParentPresence) -> bool {
    match (parent_status, goal, parent) {
        (ParentStatus::Recorded(_), _, _) => false,
        (ParentStatus::New, Goal::Apply(desired, ..), ParentPresence::Gone) => desired.members.is_empty(),
        (ParentStatus::New, _, _) => true,
    }
}

/// Returns the kinds of the parent's namespace and CRD, if these objects are members of the set: an interrupted run may
/// have created them, and not recorded them yet.
fn find_unrecorded_namespace_or_crd_kinds(
    named: &NamedSet,
    namespaces: &BTreeMap<String, NamespaceState>,
) -> BTreeSet<GroupKind> {
    let is_ours = |part_of: &Option<String>| part_of.as_deref() == Some(named.set.id.as_str());
    let parent_namespace = named.set.parent.namespace.as_ref();
    let state = parent_namespace.and_then(|name| namespaces.get(name));
    let mut kinds = BTreeSet::new();
    if state.is_some_and(|state| is_ours(&state.part_of)) {
        kinds.insert(GroupKind::for_namespaces());
    }
    if is_ours(&named.definition_part_of) {
        kinds.insert(GroupKind::custom_resource_definition());
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Operation;
    use crate::plan::fixtures::{desired, policy, set};

    #[test]
    fn members_without_a_record_are_searched_everywhere_but_by_the_first_apply() {
        let policy = policy();
        let mut nothing = Desired::default();
        let mut wanted = Desired::default();
        wanted.members.push(desired("ConfigMap", Some("web"), "one"));
        let recorded = ParentStatus::assumed_after_interrupted_first_run(&set(), BTreeSet::new());
        let goals = [
            (Goal::Apply(&mut wanted, None, &policy), false),
            (Goal::Apply(&mut nothing, None, &policy), true),
            (Goal::Delete(&policy, BTreeSet::new()), true),
            (Goal::Join(Operation::Adopt), true),
            (Goal::Join(Operation::Move), true),
            (Goal::Leave(Operation::Move), true),
            (Goal::Leave(Operation::Disband), true),
        ];
        for (goal, without_parent) in goals {
            let searches = |parent_status, parent| needs_search_of_cluster(&goal, parent_status, parent);
            assert_eq!(searches(&ParentStatus::New, ParentPresence::Gone), without_parent);
            assert!(searches(&ParentStatus::New, ParentPresence::There));
            assert!(!searches(&recorded, ParentPresence::There));
        }
    }
}
