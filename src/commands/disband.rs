//! `disband`: removes the part-of label from the members of a set, and then the record from its parent. All objects are
//! kept as they are otherwise.

use std::collections::BTreeSet;

use crate::cli::{Disband, GlobalFlags};
use crate::error::{Error, Exit};
use crate::event::{Ending, Operation};
use crate::execute::{LeftSet, MembershipExecution, Obstacles, ParentAim};
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::RunOperation;
use crate::model::set::ParentObject;
use crate::model::write_settings::DryRun;
use crate::plan::permissions;
use crate::plan::{self, MembershipPlan, Proposal, Refusal};
use crate::read::{Cluster, NamedSet, Wanted, no_such_set, resolve_named_set};
use crate::report::{PlanOutline, SetDocument};
use crate::session::adopt_move_disband::{self, SetRead};
use crate::session::command_run::CommandRun;
use crate::session::plan_and_write::Script;
use crate::session::prompt;
use crate::settings::MembershipOptions;

/// Runs `disband`.
pub(super) async fn run(arguments: &Disband, shared: &GlobalFlags) -> Result<Exit, Error> {
    let membership = &MembershipOptions::for_disband(arguments, shared)?;
    let script = DisbandScript { membership, shared };
    adopt_move_disband::run(
        Operation::Disband,
        &membership.set,
        membership,
        None,
        shared,
        script,
    )
    .await
}

struct DisbandScript<'a> {
    membership: &'a MembershipOptions,
    shared: &'a GlobalFlags,
}

/// Everything that was read and decided, before anything is written.
struct PlannedDisband {
    cluster: Cluster,
    read: SetRead,
    parent: ParentObject,
    plan: MembershipPlan,
}

impl Script for DisbandScript<'_> {
    type Planned = PlannedDisband;

    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<PlannedDisband>,
    ) -> Result<Option<PlannedDisband>, Error> {
        let membership = self.membership;
        let outdated_cluster = outdated.map(|outdated| outdated.cluster);
        let wanted = Wanted::Parent(&membership.set);
        let mut cluster = run
            .discover_or_discover_again(self.shared, wanted, outdated_cluster)
            .await?;
        let named = resolve_named_set(&mut cluster, &membership.set, membership.tooling.clone(), &[]).await?;
        run.set = SetDocument::from(&named.set);
        let concurrency = membership.writing.concurrency;
        let mut read =
            adopt_move_disband::read_set_to_leave(&mut cluster, named, Operation::Disband, membership)
                .await?;
        let Some(parent) = read.parent().cloned() else {
            return Err(no_such_set(&read.named.set.parent));
        };
        run.set.tooling = tooling_of(&parent).map(Tooling::to_string);
        if let Some(tooling) = tooling_of(&parent) {
            // Until its record is removed, the set is still managed by the tool that the parent names.
            read.named.set.tooling = tooling.clone();
        }
        let members = read
            .list_members(&cluster, None, &BTreeSet::new(), concurrency)
            .await?;
        let plan = plan::plan_disband(&read.named.set, members, &membership.appliers);
        Ok(Some(PlannedDisband {
            cluster,
            read,
            parent,
            plan,
        }))
    }

    fn sets<'p>(&self, planned: &'p PlannedDisband) -> Vec<(&'p NamedSet, Option<&'p ParentObject>)> {
        vec![(&planned.read.named, planned.read.parent())]
    }

    fn proposal(&self, planned: &PlannedDisband) -> Proposal {
        let refusals = find_refusals(&planned.read, &planned.plan, &self.membership.appliers);
        Proposal::new(refusals, &planned.plan.changes).with_parent_of(&planned.read.named.set)
    }

    fn outline(&self, planned: &PlannedDisband) -> PlanOutline {
        prompt::outline_of_labels(&planned.plan)
    }

    async fn report_and_check_permissions(
        &mut self,
        run: &mut CommandRun,
        planned: &mut PlannedDisband,
    ) -> Result<(), Error> {
        let read = &planned.read;
        run.report_new_warnings(&read.state.warnings);
        let mut needed = permissions::needed_to_relabel(&planned.plan.changes);
        needed.insert(permissions::needed_to_patch_parent(
            &read.named.set,
            &read.named.resource,
        ));
        adopt_move_disband::check_permissions(&planned.cluster, needed, self.membership).await
    }

    async fn execute(&mut self, run: &mut CommandRun, planned: &mut PlannedDisband) -> Result<Ending, Error> {
        let read = &planned.read;
        let obstacles = Obstacles {
            unlisted: read.state.observed.record_to_keep.clone(),
            ..Obstacles::default()
        };
        let execution = MembershipExecution {
            operation: RunOperation::Disband,
            joined: None,
            left: Some(LeftSet {
                parent: read.parent_writing(&planned.cluster, self.membership, &run.interrupt),
                former: &planned.parent,
                state: &read.state,
                appliers: &self.membership.appliers,
                aim: ParentAim::RemoveRecord,
                obstacles: &obstacles,
            }),
            plan: &planned.plan,
            selector: None,
            judge: &|_, live| plan::judge_disband(live, &read.named.set),
        };
        let mut sink = |event| run.reporter.take_event(event);
        let ending = run
            .interrupt
            .run_command_until_stop_at_once(execution.run(&mut sink))
            .await?;
        if ending == Ending::Done && self.membership.writing.dry_run == DryRun::None {
            let parent = &planned.read.named.set.parent;
            let text = format!("{parent} is no longer a parent; delete it if nothing else uses it");
            run.reporter.print_parent_note(&text);
        }
        Ok(ending)
    }
}

/// Returns the refusals that the user has to lift: that the run takes over another tool's set, and that it forgets the
/// set.
fn find_refusals(read: &SetRead, plan: &MembershipPlan, appliers: &BTreeSet<String>) -> Vec<Refusal> {
    let forgets_set = plan.refuse_unconfirmed_disband(&read.named.set, appliers);
    read.state
        .take_over
        .clone()
        .into_iter()
        .chain(forgets_set)
        .collect()
}

/// Returns the tool that manages the set according to its parent.
fn tooling_of(parent: &ParentObject) -> Option<&Tooling> {
    match &parent.reading {
        Reading::Parent(record) => Some(&record.tooling),
        Reading::Unfinished(tooling) | Reading::Unrecorded(tooling) => Some(tooling),
        Reading::NoRecord | Reading::Faulty(_) => None,
    }
}
