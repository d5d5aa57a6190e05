//! `disband`: removes the part-of label from the members of a set, and then the record from its parent. All objects are
//! kept as they are otherwise.

use std::collections::BTreeSet;

use crate::cli::{Disband, GlobalFlags};
use crate::error::Error;
use crate::event::{Interrupt, Operation};
use crate::execute::{LeftSet, MembershipExecution, Obstacles, ParentAim};
use crate::exit::Exit;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::set::ParentObject;
use crate::model::write_settings::DryRun;
use crate::plan::{self, MembershipPlan};
use crate::read::{Cluster, Goal, Wanted, no_such_set, resolve_named_set};
use crate::report::SetDocument;
use crate::session::adopt_move_disband::{self, MembershipCommand, SetRead};
use crate::session::command_run::CommandRun;
use crate::settings::MembershipOptions;

/// Runs `disband`.
pub(super) async fn run(arguments: &Disband, shared: &GlobalFlags) -> Result<Exit, Error> {
    let membership = &MembershipOptions::for_disband(arguments, shared)?;
    let command = DisbandCommand { membership, shared };
    adopt_move_disband::run(command, &membership.set, membership, None, shared).await
}

struct DisbandCommand<'a> {
    membership: &'a MembershipOptions,
    shared: &'a GlobalFlags,
}

/// Everything that was read and decided, before anything is written.
struct PlannedDisband {
    cluster: Cluster,
    read: SetRead,
    parent: ParentObject,
    plan: MembershipPlan,
    /// What keeps the record of the parent.
    obstacles: Obstacles,
}

impl MembershipCommand for DisbandCommand<'_> {
    const OPERATION: Operation = Operation::Disband;
    type Planned = PlannedDisband;

    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<PlannedDisband>,
    ) -> Result<PlannedDisband, Error> {
        let membership = self.membership;
        let outdated_cluster = outdated.map(|outdated| outdated.cluster);
        let wanted = Wanted::Parent(&membership.set);
        let mut cluster = run
            .discover_or_discover_again(self.shared, wanted, outdated_cluster)
            .await?;
        let named = resolve_named_set(&mut cluster, &membership.set, membership.tooling.clone(), &[]).await?;
        run.set = SetDocument::from(&named.set);
        let concurrency = membership.writing.concurrency;
        let goal = Goal::Leave(Self::OPERATION);
        let mut read = adopt_move_disband::read_set(&mut cluster, named, goal, membership).await?;
        let Some(parent) = read.parent().cloned() else {
            return Err(no_such_set(&read.named.set.parent));
        };
        run.set.tooling = tooling_of(&parent).map(Tooling::to_string);
        if let Some(tooling) = tooling_of(&parent) {
            // Until its record is removed, the set is still managed by the tool that the parent names.
            read.named.set.tooling = tooling.clone();
        }
        run.report_new_warnings(&read.state.warnings);
        let members = read
            .list_members(&cluster, None, &BTreeSet::new(), concurrency)
            .await?;
        let plan = plan::plan_disband(&read.named.set, members, &membership.appliers);
        Ok(PlannedDisband {
            obstacles: Obstacles {
                unlisted: read.state.observed.record_to_keep.clone(),
                ..Obstacles::default()
            },
            cluster,
            read,
            parent,
            plan,
        })
    }

    fn execution<'p>(
        &'p self,
        planned: &'p PlannedDisband,
        interrupt: &'p Interrupt,
    ) -> MembershipExecution<'p> {
        let read = &planned.read;
        MembershipExecution {
            joined: None,
            left: Some(LeftSet {
                parent: read.parent_writing(&planned.cluster, self.membership, interrupt),
                former: &planned.parent,
                state: &read.state,
                appliers: &self.membership.appliers,
                aim: ParentAim::RemoveRecord,
                obstacles: &planned.obstacles,
            }),
            plan: &planned.plan,
            selector: None,
            judge: Box::new(|_, live| plan::judge_disband(live, &read.named.set)),
        }
    }

    fn report_done(&self, run: &mut CommandRun, planned: &PlannedDisband) {
        if self.membership.writing.dry_run == DryRun::None {
            let parent = &planned.read.named.set.parent;
            let text = format!(
                "{parent} is no longer a parent; delete it if nothing else uses it, or make it one again with --take-over-set"
            );
            run.reporter.print_parent_note(&text);
        }
    }
}

/// Returns the tool that manages the set according to its parent.
fn tooling_of(parent: &ParentObject) -> Option<&Tooling> {
    match &parent.reading {
        Reading::Parent(record) => Some(&record.tooling),
        Reading::Unfinished(tooling) | Reading::Unrecorded(tooling) => Some(tooling),
        Reading::NoRecord | Reading::Faulty(_) => None,
    }
}
