//! Reads the cluster state before all members of a set are deleted.

use std::collections::BTreeSet;

use futures_util::future::try_join;

use super::comparison::ComparisonInputs;
use super::scope::ScopedSet;
use super::{ClusterState, ReadSettings, comparison};
use crate::error::{Error, ErrorKind};
use crate::manifest::desired::Desired;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::message::Message;
use crate::model::text::members_missed_warning;
use crate::plan::{self, Observed, ParentDisposition, Policy, Pruning};
use crate::read::error::no_such_set;
use crate::read::orphans::OrphanSearchResult;
use crate::read::{
    Cluster, LiveParent, NamedSet, list_objects_with_lost_label, read_owners_of_namespaces_and_crds,
};

/// Reads the state before all members are deleted.
pub(super) async fn read(
    cluster: &mut Cluster,
    named: &NamedSet,
    scoped: ScopedSet,
    policy: &Policy,
    managers: &BTreeSet<String>,
    settings: ReadSettings<'_>,
) -> Result<ClusterState, Error> {
    let server = &cluster.server.clone();
    let nothing = Desired::default();
    let mut state = scoped.initial_state(named);
    state.warnings = scoped.member_scope.describe_unlisted_recorded_kinds();
    if let Some(orphans) = &scoped.orphans {
        state.warnings.extend(orphans.warnings_before_deletion());
        state.likely_members_left = orphans.left_out.likely_members;
    }
    let inputs = ComparisonInputs {
        desired: &nothing,
        settings,
        former_field_manager: None,
    };
    let members = comparison::list_and_compare_members(server, named, &state.places, inputs);
    let unlabeled =
        async { Ok(list_objects_with_lost_label(server, &state.places, settings.concurrency).await?) };
    let (read, unlabeled) = try_join(members, unlabeled).await?;
    state.warn_and_keep_unlabeled_in_record(&unlabeled, named);
    let observed = &mut state.observed;
    observed.members = read.members;
    if state.parent.is_none() && observed.members.is_empty() {
        return Err(nothing_to_delete_error(named, scoped.orphans));
    }
    // The parent's containers are deleted only if the parent is deleted before.
    let goes = !scoped.judged.is_bare
        && decide_parent_deletion_and_drop_owners(named, state.parent.as_mut(), observed, policy, managers);
    state.pruning = if goes { Pruning::WholeSet } else { Pruning::Enabled };
    let policy = with_pruning(policy, state.pruning);
    let containers = plan::find_containers_to_prune(&named.set, &nothing, observed, &policy);
    observed.contents = cluster
        .list_contents_of_namespaces_and_crds(&containers, settings.concurrency)
        .await?;
    let resource = state.parent.as_ref().map(|_| &named.resource);
    let containers =
        plan::find_containers_of_staying_objects(&named.set, resource, &nothing, observed, &policy);
    observed.container_owners =
        read_owners_of_namespaces_and_crds(server, &containers, &state.namespaces).await?;
    Ok(state)
}

fn with_pruning(policy: &Policy, pruning: Pruning) -> Policy {
    Policy {
        pruning,
        ..policy.clone()
    }
}

/// The error of a deletion that found neither a parent nor members.
fn nothing_to_delete_error(named: &NamedSet, orphans: Option<OrphanSearchResult>) -> Error {
    let parent = &named.set.parent;
    let Some(OrphanSearchResult { hidden, left_out, .. }) = orphans else {
        return no_such_set(parent);
    };
    match (hidden.is_empty(), left_out.warnings.is_empty()) {
        (true, true) => no_such_set(parent),
        (true, false) => {
            let text = format!("{parent}: not the parent of a set, but objects have the label of this set");
            Error::new(
                ErrorKind::Failed,
                Message::new(text).with_details(left_out.warnings),
            )
            .with_hint("run it as a user who can delete these objects, or remove the labels")
        }
        (false, _) => {
            let text = format!(
                "{parent}: not the parent of a set; {}",
                members_missed_warning(&hidden)
            );
            Error::new(ErrorKind::Cluster, text).with_hint(format!(
                "run it as a user who can list everything, or list members with `kubectl get KIND -A -l {PART_OF_LABEL}={}`",
                named.set.id
            ))
        }
    }
}

/// Returns whether the parent is deleted with its set. Also removes from `parent` the owners that the run deletes: it
/// removes their references before its first delete, so they do not keep the parent.
fn decide_parent_deletion_and_drop_owners(
    named: &NamedSet,
    parent: Option<&mut LiveParent>,
    observed: &Observed,
    policy: &Policy,
    managers: &BTreeSet<String>,
) -> bool {
    let Some(parent) = parent else { return true };
    if !parent.live.owners.is_empty() {
        let policy = with_pruning(policy, Pruning::WholeSet);
        let going = plan::plan(&named.set, &Desired::default(), observed, &policy)
            .dependents
            .deleted;
        parent.live.owners.retain(|owner| !going.contains_key(&owner.uid));
    }
    plan::decide_parent_disposition(&named.set, &parent.live, &parent.content_writers, managers)
        == ParentDisposition::Goes
}
