//! The state and the plan that `apply`, `diff` and `delete` have before they write anything.

use std::collections::HashMap;

use super::super::prompt;
use super::Base;
use crate::event::Interrupt;
use crate::execute::{ChangedKinds, Execution, WaitNotes, estimate_concurrent_writes_at_start};
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::saved::SavedManifest;
use crate::plan::{Plan, Policy, Proposal, ProposedApplies, ProposedApply, Refusal};
use crate::read::{Administrator, Cluster, ClusterState, NamedSet};
use crate::report::PlanOutline;
use crate::session::plan_and_write::SetToWrite;
use crate::settings::Confirm;

/// The cluster state and the plan, before anything is written.
pub struct Prepared {
    pub cluster: Cluster,
    pub named: NamedSet,
    /// The objects that the manifests describe.
    pub desired: Desired,
    pub state: ClusterState,
    /// The policy that the plan was made under.
    pub policy: Policy,
    pub writing: WriteSettings,
    pub plan: Plan,
    /// The manifests for a saved plan; empty for a plan that is not saved.
    pub manifests: Vec<SavedManifest>,
    /// The objects of `diff --base`; `None` without the flag.
    pub base: Option<Base>,
    /// The notes about what writes wait for, which are not reported yet.
    wait_notes: WaitNotes,
    /// The kinds whose CRDs the run has changed so far.
    changed_kinds: ChangedKinds,
    /// The server's answer whether the user is an administrator, if it was asked.
    pub administrator: Administrator,
}

impl Prepared {
    /// Combines the parts, without manifests for a saved plan, and without an answer about the user's permissions.
    pub fn new(
        cluster: Cluster,
        named: NamedSet,
        desired: Desired,
        state: ClusterState,
        policy: Policy,
        writing: WriteSettings,
        plan: Plan,
    ) -> Self {
        Self {
            cluster,
            named,
            desired,
            state,
            policy,
            writing,
            plan,
            manifests: Vec::new(),
            base: None,
            wait_notes: WaitNotes::default(),
            changed_kinds: ChangedKinds::default(),
            administrator: Administrator::NotAsked,
        }
    }

    /// Returns the set that the plan writes.
    pub fn set_to_write(&self) -> SetToWrite<'_> {
        SetToWrite {
            key: &self.named.set.parent,
            resource: &self.named.resource,
            parent: self.state.parent_object(),
        }
    }

    /// Returns what the user has to agree to before the plan is executed.
    pub fn proposal(&self, confirm: Confirm) -> Proposal {
        let Self {
            desired, state, plan, ..
        } = self;
        let refusals = state.take_over.iter().chain(&plan.refusals).cloned();
        let mut proposal =
            Proposal::new(refusals.collect(), plan.all_prunes()).with_parent_of(&self.named.set);
        // The question shows what is lost with a namespace or CRD, so the answer covers that and no more.
        let losses = plan.accepted.iter();
        proposal
            .uids_and_unlisted_resources
            .extend(losses.flat_map(Refusal::lost_with_container));
        Proposal {
            applies: match confirm {
                Confirm::Dangers => ProposedApplies::NeedNoConsent,
                Confirm::EveryChange => list_applies_if_anything_changes(desired, state, plan),
            },
            ..proposal
        }
    }

    /// Returns the part of the plan that a prompt shows.
    pub fn outline(&self) -> PlanOutline {
        prompt::outline(
            &self.named.set,
            &self.plan,
            &self.desired,
            &self.state.observed,
            &self.policy,
        )
    }

    /// Opens connections for the writes of the plan, if it may be carried out. They are open by the time that the server
    /// has answered which permissions are missing, and has taken the write that begins the run.
    pub fn open_connections_for_writes(&self) {
        if self.writing.dry_run == DryRun::None {
            let writes = self.plan.count_applies() + self.plan.count_prunes();
            let concurrent_writes = estimate_concurrent_writes_at_start(writes);
            self.cluster.server.open_connections_for(concurrent_writes);
        }
    }

    /// Returns the execution of the plan, which does not wait for objects.
    pub fn execution<'a>(&'a self, interrupt: &'a Interrupt) -> Execution<'a> {
        Execution {
            server: &self.cluster.server,
            set: &self.named.set,
            parent_resource: &self.named.resource,
            state: &self.state,
            accepted_take_over: self.state.take_over.as_slice(),
            desired: &self.desired,
            plan: &self.plan,
            policy: &self.policy,
            writing: &self.writing,
            interrupt,
            waits: None,
            dependencies: None,
            wait_notes: &self.wait_notes,
            changed_kinds: &self.changed_kinds,
        }
    }
}

/// Returns the objects that the plan applies. They need no consent if the run changes nothing.
fn list_applies_if_anything_changes(desired: &Desired, state: &ClusterState, plan: &Plan) -> ProposedApplies {
    // While members are being added to the parent by another run, this run does not narrow its record.
    let is_record_kept = state.parent_object().is_some_and(|parent| {
        plan.record_during == state.observed.recorded
            && (parent.is_being_added_to() || plan.record_after == state.observed.recorded)
    });
    let is_unchanged = is_record_kept
        && state.former_tooling.is_none()
        && desired.parent.is_none()
        && plan.count_applies() == 0
        && plan.count_prunes() == 0;
    if is_unchanged {
        return ProposedApplies::NeedNoConsent;
    }
    let not_members: HashMap<&ObjectKey, &Live> = state.observed.not_members().collect();
    let applies = plan.all_applies().map(|apply| {
        let key = &desired.members[apply.index].key;
        let live = not_members.get(key);
        ProposedApply {
            key: key.clone(),
            uid: match live {
                Some(live) => Some(live.uid.clone()),
                None => apply.live_membership.uid_of_member().map(str::to_owned),
            },
            former_set: live.and_then(|live| live.part_of.clone()),
        }
    });
    ProposedApplies::NeedConsent(applies.collect())
}
