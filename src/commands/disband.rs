//! `disband`: removes the set's label from its members, and then the record from the parent. All
//! objects are kept, with all other fields.

use std::collections::BTreeSet;

use crate::cli::{Disband, GlobalFlags};
use crate::error::{Error, Exit};
use crate::event::{Ending, Operation};
use crate::execute::Disbanding;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::parent_object::ParentObject;
use crate::model::write_settings::DryRun;
use crate::plan::permissions;
use crate::plan::{self, MembershipPlan, Proposal, Refusal};
use crate::read::{Cluster, ParentError, Wanted, named_set};
use crate::report::SetDocument;
use crate::session::adopt_move_disband::{self, SetRead};
use crate::session::command_run::{Agreed, CommandRun};
use crate::session::other_runs::OtherRuns;
use crate::session::prompt;
use crate::settings::{self, DisbandOptions};

/// Runs `disband`.
pub(super) async fn run(arguments: &Disband, shared: &GlobalFlags) -> Result<Exit, Error> {
    let options = DisbandOptions::new(arguments, shared)?;
    let mut run = CommandRun::begin(
        Operation::Disband,
        SetDocument::named(&options.membership.set.name),
        settings::style(shared),
        options.membership.writing.dry_run,
        adopt_move_disband::questions(&options.membership, &[]),
    );
    let plan = async |run: &mut CommandRun, _| prepare(run, shared, &options).await.map(Some);
    let write = async |run: &mut CommandRun, prepared: &mut Prepared| disband(run, prepared, &options).await;
    let outcome = Box::pin(run.plan_and_write(&[], plan, write)).await;
    run.finish(outcome)
}

/// Everything that was read and decided, before anything is written.
struct Prepared {
    cluster: Cluster,
    read: SetRead,
    parent: ParentObject,
    plan: MembershipPlan,
}

async fn disband(
    run: &mut CommandRun,
    prepared: &Prepared,
    options: &DisbandOptions,
) -> Result<Ending, Error> {
    let disbanding = Disbanding {
        parent: prepared
            .read
            .parent_writing(&prepared.cluster, &options.membership, &run.interrupt),
        current: &prepared.parent,
        targets: &prepared.read.state.places,
        recorded: &prepared.read.state.observed.recorded,
        unlisted: &prepared.read.state.observed.unlisted,
        plan: &prepared.plan,
    };
    let reporter = &mut run.reporter;
    let mut sink = |event| reporter.event(event);
    let ending = CommandRun::until_insisted(&run.interrupt, Box::pin(disbanding.run(&mut sink))).await?;
    if ending == Ending::Done && options.membership.writing.dry_run == DryRun::None {
        let parent = &prepared.read.named.set.parent;
        let text = format!("{parent} is no longer a parent; delete it if nothing else uses it");
        run.reporter.parent_note(&text);
    }
    Ok(ending)
}

async fn prepare(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &DisbandOptions,
) -> Result<Prepared, Error> {
    let membership = &options.membership;
    let mut cluster = run.discover(shared, Wanted::Parent(&membership.set)).await?;
    let mut consent = membership.consent.clone();
    let (read, parent, plan) = loop {
        let named = named_set(&mut cluster, &membership.set, membership.tooling.clone(), &[]).await?;
        run.set = SetDocument::from(&named.set);
        let concurrency = membership.writing.concurrency;
        let mut read =
            adopt_move_disband::read_existing(&mut cluster, named, Operation::Disband, membership).await?;
        let Some(parent) = read.parent().cloned() else {
            return Err(ParentError::NoSuchSet(read.named.set.parent).into());
        };
        run.set.tooling = tooling_of(&parent).map(Tooling::to_string);
        if let Some(tooling) = tooling_of(&parent) {
            // The set stays that of its tool until it ends.
            read.named.set.tooling = tooling.clone();
        }
        let members = read
            .members(&cluster, None, &BTreeSet::new(), concurrency)
            .await?;
        let plan = plan::plan_release(&read.named.set, members, &membership.appliers);
        let refusals = refusals(&read, &plan, &membership.appliers);
        let proposal = Proposal::new(refusals, &plan.changes).about(&read.named.set);
        let outline = || prompt::outline_of_labels(&plan);
        let others = read.await_other_runs(run, &cluster, membership).await?;
        if others == OtherRuns::None && run.agree(&mut consent, proposal, outline).await? == Agreed::Before {
            break (read, parent, plan);
        }
        cluster.discover_again().await?;
    };
    run.report_warnings(&read.state.warnings);
    let mut rights = permissions::to_relabel(&plan.changes);
    rights.insert(permissions::on_parent(&read.named.set, &read.named.resource));
    adopt_move_disband::check_permissions(&cluster, rights, membership).await?;
    Ok(Prepared {
        cluster,
        read,
        parent,
        plan,
    })
}

/// Returns the refusals that the user has to lift.
fn refusals(read: &SetRead, plan: &MembershipPlan, appliers: &BTreeSet<String>) -> Vec<Refusal> {
    let forgets = plan.forgets(&read.named.set, appliers);
    read.state.take_over.clone().into_iter().chain(forgets).collect()
}

/// Returns the tool that manages the set according to its parent.
fn tooling_of(parent: &ParentObject) -> Option<&Tooling> {
    match &parent.reading {
        Reading::Parent(bookkeeping) => Some(&bookkeeping.tooling),
        Reading::Unfinished(tooling) => Some(tooling),
        Reading::NoRecord | Reading::Faulty(_) => None,
    }
}
