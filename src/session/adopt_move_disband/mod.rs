//! Runs `adopt`, `disband` and `move`: what is the same in all three, from the question to the writes.

mod read_sets;

use std::collections::BTreeSet;

pub use self::read_sets::{SetRead, discover_and_read_manifests_once, read_set};
use super::command_run::CommandRun;
use super::permissions::check_to_write;
use super::plan_and_write::{Script, SetToWrite};
use super::prompt::Questions;
use crate::cli::GlobalFlags;
use crate::error::Error;
use crate::event::{Ending, Interrupt, Operation};
use crate::execute::{JoinedSet, LeftSet, MembershipExecution, ParentAim};
use crate::exit::Exit;
use crate::manifest::{Recursion, Source};
use crate::model::permission::{NeededPermissions, Permission};
use crate::model::write_settings::SetReference;
use crate::plan::{Proposal, permissions};
use crate::read::Administrator;
use crate::report::{PlanOutline, SetDocument};
use crate::settings::{self, MembershipOptions};

/// What `adopt`, `move` and `disband` do in different ways.
pub trait MembershipCommand {
    const OPERATION: Operation;

    /// A plan, with the sets as they were read.
    type Planned;

    /// Reads, plans, and reports what the user should know of the plan; see [`Script::read_and_plan`].
    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<Self::Planned>,
    ) -> Result<Self::Planned, Error>;

    /// Returns which sets are written, and how.
    fn execution<'p>(
        &'p self,
        planned: &'p Self::Planned,
        interrupt: &'p Interrupt,
    ) -> MembershipExecution<'p>;

    /// Reports what the user should know after a run, or a dry run, in which nothing failed.
    fn report_done(&self, run: &mut CommandRun, planned: &Self::Planned);
}

/// Plans and writes with this command, in a run whose report is about `set`. `manifests` are the sources that the
/// command reads: if standard input is one of them, the user cannot answer a question there.
pub async fn run<C: MembershipCommand>(
    command: C,
    set: &SetReference,
    options: &MembershipOptions,
    manifests: Option<(&[Source], Recursion)>,
    shared: &GlobalFlags,
) -> Result<Exit, Error> {
    let sources = manifests.map_or(&[][..], |(sources, _)| sources);
    let mut run = CommandRun::begin(
        C::OPERATION,
        SetDocument::from_name(&set.name),
        settings::read_style(shared),
        options.writing.dry_run,
        Questions::at_terminal(options.is_interactive, sources),
    );
    let mut script = MembershipScript {
        command,
        options,
        interrupt: run.interrupt.clone(),
    };
    let outcome = run
        .plan_and_write(&mut script, &options.consent, options.writing.exclusive)
        .await;
    run.finish(outcome)
}

struct MembershipScript<'a, C> {
    command: C,
    options: &'a MembershipOptions,
    interrupt: Interrupt,
}

impl<C: MembershipCommand> MembershipScript<'_, C> {
    fn execution<'p>(&'p self, planned: &'p C::Planned) -> MembershipExecution<'p> {
        self.command.execution(planned, &self.interrupt)
    }
}

impl<C: MembershipCommand> Script for MembershipScript<'_, C> {
    type Planned = C::Planned;

    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<C::Planned>,
    ) -> Result<Option<C::Planned>, Error> {
        self.command.read_and_plan(run, outdated).await.map(Some)
    }

    fn sets<'p>(&'p self, planned: &'p C::Planned) -> Vec<SetToWrite<'p>> {
        let MembershipExecution { joined, left, .. } = self.execution(planned);
        let left = left.map(|left| (left.parent, left.state));
        let joined = joined.map(|joined| (joined.parent, joined.state));
        left.into_iter()
            .chain(joined)
            .map(|(parent, state)| SetToWrite {
                key: &parent.set.parent,
                resource: parent.resource,
                parent: state.parent_object(),
            })
            .collect()
    }

    fn proposal(&self, planned: &C::Planned) -> Proposal {
        let execution = self.execution(planned);
        let plan = execution.plan;
        // The parent of the set that objects join, or else of the one that they leave.
        let parent = execution.parents().next();
        let taken_over = parent.into_iter().flat_map(|parent| parent.accepted_take_over);
        let refusals = taken_over.chain(&plan.refusals).cloned();
        let proposal = Proposal::new(refusals.collect(), &plan.changes);
        match parent {
            Some(parent) => proposal.with_parent_of(parent.set),
            None => proposal,
        }
    }

    fn outline(&self, planned: &C::Planned) -> PlanOutline {
        let changes = &self.execution(planned).plan.changes;
        PlanOutline {
            relabeled: Some(changes.iter().map(|live| live.key.clone()).collect()),
            ..PlanOutline::default()
        }
    }

    async fn report_and_check_permissions(
        &mut self,
        _: &mut CommandRun,
        planned: &mut C::Planned,
    ) -> Result<(), Error> {
        let execution = self.execution(planned);
        let needed = NeededPermissions {
            permissions: list_needed_permissions(&execution),
            ..NeededPermissions::default()
        };
        // Both parents have the same server.
        let Some(parent) = execution.parents().next() else {
            return Ok(());
        };
        check_to_write(
            parent.server,
            Administrator::NotAsked,
            &needed,
            &self.options.writing,
        )
        .await
    }

    async fn execute(&mut self, run: &mut CommandRun, planned: &mut C::Planned) -> Result<Ending, Error> {
        let mut sink = |event| run.reporter.take_event(event);
        let execution = self.execution(planned);
        let ending = self
            .interrupt
            .run_command_unless_aborted(execution.run(&mut sink))
            .await?;
        if ending == Ending::Done {
            self.command.report_done(run, planned);
        }
        Ok(ending)
    }
}

/// Returns the permissions to write the labels and both parents.
fn list_needed_permissions(execution: &MembershipExecution<'_>) -> BTreeSet<Permission> {
    let plan = execution.plan;
    let mut needed = permissions::needed_to_relabel(&plan.changes);
    if let Some(JoinedSet {
        parent,
        state,
        record,
    }) = &execution.joined
        && plan.has_member_after_run()
    {
        needed.extend(permissions::needed_to_record(
            parent.set,
            parent.resource,
            state.parent_object(),
            record,
            &plan.changes,
        ));
    }
    if let Some(LeftSet { parent, aim, .. }) = &execution.left {
        match aim {
            ParentAim::Narrow | ParentAim::Delete if plan.takes_none() => {}
            ParentAim::Narrow | ParentAim::RemoveRecord => {
                needed.insert(permissions::needed_to_patch_parent(parent.set, parent.resource));
            }
            ParentAim::Delete => {
                needed.extend(permissions::needed_to_end_set(parent.set, parent.resource));
            }
        }
    }
    needed
}
