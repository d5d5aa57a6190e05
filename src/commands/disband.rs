//! `disband`: takes the set's label off its members, and then its record off the parent.
//! Every object stays, and every other field of each.

use super::membership::{self, SetRead, TakingOver};
use super::opening::{self, Cluster};
use super::run::Run;
use super::unrecorded::Search;
use crate::cli::{Disband, Shared};
use crate::error::{Error, Exit};
use crate::event::{Ending, Operation};
use crate::execute::Disbanding;
use crate::model::applyset::Tooling;
use crate::model::parent_object::ParentObject;
use crate::model::settings::DryRun;
use crate::plan::permissions;
use crate::plan::{self, Confirmation, MembershipPlan, Refusal};
use crate::report::{self, SetDocument};
use crate::settings::{self, DisbandOptions, TakeOver};

/// Runs `disband`.
pub(super) async fn run(arguments: &Disband, shared: &Shared) -> Result<Exit, Error> {
    let options = DisbandOptions::new(arguments, shared)?;
    let mut run = Run::begin(
        Operation::Disband,
        opening::unopened(&options.membership.set),
        settings::style(shared),
        options.membership.writing.dry_run,
        membership::questions(&options.membership, &[]),
    );
    let outcome = disband(&mut run, shared, &options).await;
    run.finish(outcome)
}

/// Everything that was read and decided, before anything is written.
struct Prepared {
    cluster: Cluster,
    read: SetRead,
    parent: ParentObject,
    plan: MembershipPlan,
}

async fn disband(run: &mut Run, shared: &Shared, options: &DisbandOptions) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let prepared = tokio::select! {
        prepared = prepare(run, shared, options) => prepared?,
        // Nothing is written yet, so there is nothing to wait for.
        () = interrupt.requested() => return Ok(Ending::Interrupted),
    };
    let disbanding = Disbanding {
        parent: prepared
            .read
            .parent_writing(&prepared.cluster, &options.membership, &run.interrupt),
        current: &prepared.parent,
        places: &prepared.read.survey.places,
        unlisted: &prepared.read.survey.unlisted,
        plan: &prepared.plan,
    };
    let reporter = &mut run.reporter;
    let mut sink = |event| reporter.event(event);
    let ending = Run::until_insisted(&run.interrupt, disbanding.run(&mut sink)).await?;
    if ending == Ending::Done && options.membership.writing.dry_run == DryRun::None {
        let parent = &prepared.read.opened.set.parent;
        let text = format!("{parent} is an ordinary object now; delete it when nothing needs it");
        report::note(&text, settings::style(shared));
    }
    Ok(ending)
}

async fn prepare(run: &mut Run, shared: &Shared, options: &DisbandOptions) -> Result<Prepared, Error> {
    let membership = &options.membership;
    let connection = opening::connect(shared).await?;
    run.server = Some(connection.server.clone());
    let mut cluster = opening::discover(connection, run.waits()).await?;
    let taking_over = TakingOver::ForeignSet(match membership.take_over {
        TakeOver::No => Confirmation::Missing,
        TakeOver::Asked | TakeOver::Confirmed => Confirmation::Given,
    });
    let mut confirmation = match membership.writing.dry_run {
        DryRun::None => options.confirmation,
        DryRun::Client | DryRun::Server => Confirmation::Given,
    };
    // What a person confirms may have changed while they read: all is read again.
    let (read, parent, plan) = loop {
        let opened = opening::open(&mut cluster, &membership.set, membership.tooling.clone(), &[]).await?;
        run.set = SetDocument::from(&opened.set);
        let concurrency = membership.writing.concurrency;
        let (read, parent) = membership::read_existing(
            &mut cluster,
            opened,
            taking_over,
            Operation::Disband,
            Search::of(membership),
        )
        .await?;
        run.set.tooling = membership::tooling_of(&parent).map(Tooling::to_string);
        let members = read.members(&cluster, None, concurrency).await?;
        let plan = plan::plan_release(&read.opened.set, members, &membership.appliers);
        if confirmation == Confirmation::Given {
            break (read, parent, plan);
        }
        run.confirm(questions(&read, &parent, &plan)).await?;
        confirmation = Confirmation::Given;
        opening::discover_again(&mut cluster).await?;
    };
    run.warn(&read.warnings);
    let mut rights = permissions::to_relabel(&plan.changes);
    rights.insert(permissions::on_parent(&read.opened.set, &read.opened.resource));
    membership::check_rights(&cluster, rights, membership).await?;
    Ok(Prepared {
        cluster,
        read,
        parent,
        plan,
    })
}

/// What a person has to say yes to.
fn questions(read: &SetRead, parent: &ParentObject, plan: &MembershipPlan) -> Vec<Refusal> {
    let set = &read.opened.set;
    let found = membership::tooling_of(parent).filter(|found| !found.is_same_program(&set.tooling));
    let foreign = found.map(|found| Refusal::ManagedElsewhere {
        parent: set.parent.clone(),
        found: found.clone(),
        ours: set.tooling.clone(),
        operation: Operation::Disband,
    });
    let forgets = Refusal::ForgetsSet {
        parent: set.parent.clone(),
        members: plan.changes.len(),
    };
    foreign.into_iter().chain([forgets]).collect()
}
