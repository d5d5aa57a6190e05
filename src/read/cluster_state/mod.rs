//! The cluster state of one set, read in the order in which each answer determines the next request.
//!
//! parent → judged → scope → orphans, if nothing is recorded → members → other sets' objects → what
//! prunes would also delete. All commands that write find the members of a parent in this way alone;
//! the rules on the way are those of `plan`.

mod before_apply;
mod before_delete;
mod comparison;
mod definitions_to_compare;
mod dependencies;
mod judge_parent;
mod namespaces_of_run;
mod read_autoscalers;
mod scope;

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::cluster::Cluster;
use super::lost_members::warning_of_unlabeled;
use super::named_set::NamedSet;
use super::orphans::SearchRules;
use super::parent::LiveParent;
use crate::compare::status::StatusRules;
use crate::error::Error;
use crate::event::Operation;
use crate::manifest::desired::Desired;
use crate::model::applyset::{Record, Tooling};
use crate::model::containers::NamespaceState;
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTargets;
use crate::model::live::Live;
use crate::model::object::Object;
use crate::model::set::ParentObject;
use crate::plan::{Observed, Policy, Pruning, Refusal, Risk, Seen};

/// The command that the state is read for.
pub enum Goal<'a> {
    /// `apply` and `diff`: these objects are desired. The other objects are those of `diff --base`.
    Apply(&'a mut Desired, Option<&'a mut Desired>, &'a Policy),
    /// `delete`: all members are to be deleted. The names are field managers whose fields on the parent belong to this
    /// ApplySet, and not to another use of the object.
    Delete(&'a Policy, BTreeSet<String>),
    /// `adopt`, and the set that `move` moves members into: it is created if it does not exist. The
    /// members are not listed.
    Join(Operation),
    /// `disband`, and the set that `move` moves members out of: it has to exist. The members are
    /// not listed.
    Leave(Operation),
}

/// Permissions of the user, and settings of the reads.
#[derive(Debug, Clone, Copy)]
pub struct ReadSettings<'a> {
    /// The treatment of a parent that has to be taken over.
    pub take_over: Risk,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// The field manager of members.
    pub field_manager: &'a str,
    /// The rules that say which dependencies are Current; `None` if the command waits for none.
    pub status: Option<&'a StatusRules>,
    /// The concurrency limit.
    pub concurrency: usize,
}

impl<'a> ReadSettings<'a> {
    fn search_rules(self) -> SearchRules<'a> {
        SearchRules {
            appliers: self.appliers,
            concurrency: self.concurrency,
        }
    }
}

/// The cluster state of a set.
#[derive(Debug)]
pub struct ClusterState {
    /// The time before members were read.
    pub read_at: Instant,
    /// The parent; for a deletion only if it has a record.
    pub parent: Option<LiveParent>,
    /// The reason why the parent has to be taken over; `None` if it need not. The run writes the parent only after the
    /// user has agreed to this.
    pub take_over: Option<Refusal>,
    /// The namespaces of the manifests and of the parent that exist, as far as they were read.
    pub namespaces: BTreeMap<String, NamespaceState>,
    /// The scope of members.
    pub places: ListTargets,
    /// The input of the plan.
    pub observed: Observed,
    /// What is pruned. A deletion of the whole set prunes the parent's namespace and CRD only if it also deletes the
    /// parent.
    pub pruning: Pruning,
    /// The tool that managed the set until now, if this run takes it over.
    pub former_tooling: Option<Tooling>,
    /// The number of objects that are probably members, and that the user may not delete.
    pub likely_members_left: usize,
    /// The bodies to send for changed members with ignored fields, as a write over the version that was listed.
    pub with_live_fields: BTreeMap<ObjectKey, WithLiveFields>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A manifest with fields of the live object, to be sent over the version that they were read from.
#[derive(Debug, Clone)]
pub struct WithLiveFields {
    /// The object of the manifests, with the ignored fields of the live object.
    pub object: Object,
    /// The version from which the live fields were read.
    pub seen: Seen,
}

impl ClusterState {
    /// Returns the part of the parent that plans use.
    pub fn parent_object(&self) -> Option<&ParentObject> {
        self.parent.as_ref().map(|parent| &parent.object)
    }

    /// Warns of objects that have lost their label in the scope of a set that is about to end. Keeps their kinds and
    /// namespaces in the record, so that later runs find them.
    pub fn warn_and_keep_unlabeled_in_record(&mut self, unlabeled: &[Live], named: &NamedSet) {
        if unlabeled.is_empty() {
            return;
        }
        let parent = &named.set.parent;
        let consequence = format!(
            "the set stays until no such object is left; see `kubectl applyset verify {}`",
            parent.shell_arguments()
        );
        self.warnings.push(warning_of_unlabeled(unlabeled, &consequence));
        let record = Record::from_members(unlabeled.iter().map(|live| &live.key), parent);
        self.observed.record_to_keep = self.observed.record_to_keep.union(&record);
    }
}

/// Notes and warnings for the user, collected while the state is read.
#[derive(Default)]
struct NotesAndWarnings {
    notes: Vec<String>,
    warnings: Vec<String>,
}

/// Reads the state of a set.
///
/// # Errors
///
/// The parent must not be written, or something that a decision needs could not be read.
pub async fn read_cluster_state(
    cluster: &mut Cluster,
    named: &mut NamedSet,
    mut goal: Goal<'_>,
    settings: ReadSettings<'_>,
) -> Result<ClusterState, Error> {
    let judged =
        judge_parent::read_and_judge_with_namespaces(&cluster.server, named, &goal, settings).await?;
    let scoped = scope::determine_scope(cluster, named, &goal, judged, settings.search_rules()).await?;
    match &mut goal {
        Goal::Apply(desired, base, policy) => {
            // A kind that was not served yet may be listed by now.
            desired.replace_not_yet_served_resources(&cluster.discovery);
            let base = base.as_deref_mut();
            before_apply::read(cluster, named, scoped, (desired, base), policy, settings).await
        }
        Goal::Delete(policy, managers) => {
            before_delete::read(cluster, named, scoped, policy, managers, settings).await
        }
        Goal::Join(_) | Goal::Leave(_) => Ok(scoped.state_without_members(named)),
    }
}
