//! `delete`: observe → plan with nothing desired → execute → report.

use std::collections::BTreeSet;

use super::confirmed::Losses;
use super::membership;
use super::opening::{self, Cluster, OpenedSet};
use super::run::{Questions, Run};
use super::situation::{self, Rules};
use super::unrecorded::{self, Scope};
use super::waiting;
use crate::cli::{Delete, Shared};
use crate::error::{Error, Exit};
use crate::event::{Ending, Event, Operation};
use crate::execute::{Lingering, SetDeletion, parent_managers};
use crate::manifest::desired::Desired;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::set::Set;
use crate::model::settings::DryRun;
use crate::model::text::counted;
use crate::plan::permissions;
use crate::plan::{
    self, Confirmation, Observed, ParentFate, ParentPolicy, Plan, Policy, Pruning, Refusal, Standing,
};
use crate::read::{self, Places, WholeParent};
use crate::report::SetDocument;
use crate::settings::{self, Absence, DeleteOptions, TakeOver};
use crate::wait::{Deadline, Outcome, Path, Patience, Waiting};

/// Runs `delete`.
pub(super) async fn run(arguments: &Delete, shared: &Shared) -> Result<Exit, Error> {
    let options = DeleteOptions::new(arguments, shared)?;
    let asks = if options.is_interactive {
        Questions::Asked
    } else {
        Questions::Impossible
    };
    let mut run = Run::begin(
        Operation::Delete,
        opening::unopened(&options.set),
        settings::style(shared),
        options.writing.dry_run,
        asks,
    );
    run.limit(options.waiting.limit);
    let outcome = delete(&mut run, shared, &options).await;
    run.finish(outcome)
}

/// What there is of the set.
struct Found {
    /// The parent, where it has bookkeeping.
    parent: Option<WholeParent>,
    places: Places,
    observed: Observed,
    policy: Policy,
    warnings: Vec<String>,
    /// How many objects are left that most likely are members, and that the user may not delete.
    likely_members_left: usize,
}

/// Everything that was read and decided, before anything is deleted.
struct Prepared {
    cluster: Cluster,
    opened: OpenedSet,
    found: Found,
    plan: Plan,
}

async fn delete(run: &mut Run, shared: &Shared, options: &DeleteOptions) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let prepared = tokio::select! {
        prepared = prepare(run, shared, options) => prepared?,
        // Nothing is written yet, so there is nothing to wait for.
        () = interrupt.requested() => return Ok(Ending::Interrupted),
    };
    let Some(prepared) = prepared else {
        return Ok(Ending::Done);
    };
    let deletion = SetDeletion {
        server: &prepared.cluster.server,
        set: &prepared.opened.set,
        parent_resource: &prepared.opened.resource,
        parent: prepared.found.parent.as_ref(),
        places: &prepared.found.places,
        unlisted: &prepared.found.observed.unlisted,
        plan: &prepared.plan,
        policy: &prepared.found.policy,
        contents: &prepared.found.observed.contents,
        writing: &options.writing,
        interrupt: &interrupt,
    };
    let is_real = options.writing.dry_run == DryRun::None;
    let work = async {
        if let Some(patience) = options.waiting.patience.filter(|_| is_real) {
            return Ok::<_, Error>(delete_and_wait(run, &prepared, &deletion, patience).await);
        }
        let mut sink = |event| run.reporter.event(event);
        let members = deletion.delete_members(&mut sink).await;
        Ok(match members.ending {
            Ending::Done => deletion.finish(members, Lingering::Awaited, &mut sink).await,
            stopped => stopped,
        })
    };
    let ending = Run::until_insisted(&interrupt, work).await?;
    let left = prepared.found.likely_members_left;
    if ending == Ending::Done && left > 0 {
        run.reporter.event(Event::failure(format!(
            "{} that most likely {} of the set left, because you may not delete there",
            counted(left, "object"),
            if left == 1 {
                "is a member is"
            } else {
                "are members are"
            }
        )));
        return Ok(Ending::Incomplete);
    }
    Ok(ending)
}

/// Deletes the members, waits until they are gone, and does the same with the parent and
/// what it lives in.
async fn delete_and_wait(
    run: &mut Run,
    prepared: &Prepared,
    deletion: &SetDeletion<'_>,
    patience: Patience,
) -> Ending {
    let reporter = &mut run.reporter;
    let mut done = waiting::Done::default();
    let mut sink = |event| {
        done.note(&event);
        reporter.event(event);
    };
    let deleted = deletion.delete_members(&mut sink).await;
    if deleted.ending != Ending::Done {
        return deleted.ending;
    }
    let mut waiting = Waiting {
        server: deletion.server,
        id: &deletion.set.id,
        deadline: Deadline::of(patience),
        interrupt: deletion.interrupt,
        concurrency: deletion.writing.concurrency,
        done_before: "the members were deleted or are being deleted, and the set's parent is still there",
    };
    let members = deletion.going().filter(|live| done.is_going(live));
    let members = members.map(|live| waiting::gone(live, Path::Label)).collect();
    let outcome = waiting.run(members, &mut |event| reporter.event(event)).await;
    if outcome == Outcome::Interrupted {
        return Ending::Interrupted;
    }
    let mut sink = |event| {
        done.note(&event);
        reporter.event(event);
    };
    // Even where something is left, the parent records exactly that from here on.
    let ending = deletion.finish(deleted, Lingering::Told, &mut sink).await;
    if ending != Ending::Done || outcome == Outcome::Missed {
        return waiting::ending(outcome, ending);
    }
    let parent = prepared.found.parent.iter();
    let parent = parent.map(|parent| waiting::gone(&parent.live, Path::Name));
    let homes = deletion.homes().map(|live| waiting::gone(live, Path::Label));
    waiting.done_before = "everything was deleted or is being deleted";
    let last = parent.chain(homes).filter(|target| done.has_deleted(target));
    let outcome = waiting
        .run(last.collect(), &mut |event| reporter.event(event))
        .await;
    waiting::ending(outcome, ending)
}

/// `None` where there is no such set, and that is fine.
async fn prepare(run: &mut Run, shared: &Shared, options: &DeleteOptions) -> Result<Option<Prepared>, Error> {
    let connection = opening::connect(shared).await?;
    run.server = Some(connection.server.clone());
    let mut cluster = opening::discover(connection, run.waits()).await?;
    let mut opened = opening::open(&mut cluster, &options.set, Tooling::ours(), &[]).await?;
    run.set = SetDocument::from(&opened.set);
    let mut take_over = options.take_over.confirmation();
    let mut confirmed = Confirmed::new(options);
    let mut losses = Losses::default();
    let (found, plan) = loop {
        let parent_policy = ParentPolicy { take_over };
        let refusals = match read(&mut cluster, &mut opened, parent_policy, options).await {
            Err(Error::Refused(refusals)) => refusals,
            read => {
                let Some(found) = read? else {
                    return match options.absence {
                        Absence::Fine => Ok(None),
                        Absence::Wrong => Err(opening::no_such_set(&opened.set.parent)),
                    };
                };
                let mut plan = plan::plan(&opened.set, &Desired::default(), &found.observed, &found.policy);
                losses.lift(&mut plan);
                let unconfirmed = confirmed.refusal(&opened, &plan);
                let refusals = unconfirmed.into_iter().chain(plan.refusals.iter().cloned());
                let refusals: Vec<Refusal> = refusals.collect();
                if refusals.is_empty() {
                    break (found, plan);
                }
                if refusals.iter().all(is_lifted_by_a_person) {
                    run.confirm(refusals.clone()).await?;
                    losses.confirm(refusals);
                    confirmed.note(&plan);
                    // What a person confirms may have changed while they read: all is read again.
                    opening::discover_again(&mut cluster).await?;
                    continue;
                }
                refusals
            }
        };
        if refusals.iter().all(Refusal::is_take_over) && options.take_over == TakeOver::Asked {
            run.confirm(refusals).await?;
            take_over = Confirmation::Given;
        } else {
            return Err(Error::Refused(refusals));
        }
    };
    run.set = SetDocument::from(&opened.set);
    run.warn(&found.warnings);
    if options.writing.dry_run != DryRun::Client {
        let parent = found.parent.as_ref().map(|parent| &parent.object);
        let needed = permissions::needed_to_delete(&opened.set, &opened.resource, parent, &plan);
        let missing = read::missing_rights(&cluster.server, &needed, options.writing.concurrency).await;
        if !missing.is_empty() {
            return Err(Error::MissingRights(missing));
        }
    }
    Ok(Some(Prepared {
        cluster,
        opened,
        found,
        plan,
    }))
}

fn is_lifted_by_a_person(refusal: &Refusal) -> bool {
    refusal.is_data_loss() || matches!(refusal, Refusal::DeletesSet { .. })
}

/// What the user has said may be deleted.
enum Confirmed {
    /// Everything, or it is only tried.
    Everything,
    /// These objects, by UID, once somebody was asked.
    Objects(Option<BTreeSet<String>>),
}

impl Confirmed {
    fn new(options: &DeleteOptions) -> Self {
        let is_tried = options.writing.dry_run != DryRun::None;
        if is_tried || options.confirmation == Confirmation::Given {
            Self::Everything
        } else {
            Self::Objects(None)
        }
    }

    fn refusal(&self, opened: &OpenedSet, plan: &Plan) -> Option<Refusal> {
        let Self::Objects(shown) = self else { return None };
        let mut planned = plan.prunes.iter().flatten();
        if let Some(shown) = shown
            && planned.all(|live| shown.contains(&live.uid))
        {
            return None;
        }
        let objects = plan.prunes.iter().flatten().map(|live| live.key.clone());
        Some(Refusal::DeletesSet {
            parent: opened.set.parent.clone(),
            objects: objects.collect(),
        })
    }

    fn note(&mut self, plan: &Plan) {
        if let Self::Objects(shown) = self {
            let uids = plan.prunes.iter().flatten().map(|live| live.uid.clone());
            *shown = Some(uids.collect());
        }
    }
}

/// Reads what there is of the set; `None` where there is nothing. Refused where the parent
/// may not be written.
async fn read(
    cluster: &mut Cluster,
    opened: &mut OpenedSet,
    parent_policy: ParentPolicy,
    options: &DeleteOptions,
) -> Result<Option<Found>, Error> {
    let server = &cluster.server.clone();
    let read = read::whole_parent(server, &opened.resource, &opened.set.parent).await;
    let object = read.map_err(|error| Error::Read {
        what: format!("the set's parent {}", opened.set.parent),
        error,
    })?;
    opened.set.parent_uid = object.as_ref().map(|object| object.live.uid.clone());
    let is_bare = |object: &WholeParent| object.object.reading == Reading::NoBookkeeping;
    let has_bare_object = object.as_ref().is_some_and(is_bare);
    let mut parent = object.filter(|object| !is_bare(object));
    let standing = match &parent {
        None => Standing::New,
        Some(parent) => plan::judge_for_deletion(&opened.set, &parent.object, parent_policy)
            .map_err(|refusals| membership::refused(refusals, Operation::Delete))?,
    };
    if let Standing::Recorded(bookkeeping) = &standing {
        // A delete leaves whose the set is as it was.
        opened.set.tooling = bookkeeping.tooling.clone();
    }
    let nothing = Desired::default();
    let concurrency = options.writing.concurrency;
    let rules = Rules {
        policy: &options.policy,
        parent_policy,
        field_manager: &options.writing.field_manager,
        concurrency,
    };
    let home = situation::read_home(&cluster.server, opened, &standing).await?;
    let Scope { survey, widened, .. } =
        unrecorded::scope_of_members(cluster, opened, standing, &home, rules.search()).await?;
    let mut warnings = survey.warnings();
    let (hidden, left_out) = widened
        .map(|widened| (widened.hidden, widened.left_out))
        .unwrap_or_default();
    if !hidden.is_empty() {
        warnings.push(unrecorded::no_record(&hidden));
    }
    warnings.extend(left_out.warnings.iter().cloned());
    let (members, comparisons) =
        situation::read_members(server, opened, &nothing, &survey.places, rules).await?;
    if parent.is_none() && members.is_empty() {
        let parent = opened.set.parent.clone();
        return match (hidden.is_empty(), left_out.warnings.is_empty()) {
            (true, true) => Ok(None),
            (true, false) => Err(Error::LabelledElsewhere {
                parent,
                left_out: left_out.warnings,
            }),
            (false, _) => Err(Error::NobodyKnows { parent, hidden }),
        };
    }
    let mut observed = Observed {
        recorded: survey.recorded,
        unlisted: survey.unlisted,
        members,
        comparisons,
        parent: parent
            .as_ref()
            .and_then(|parent| situation::dependant(opened, &parent.object)),
        ..Observed::default()
    };
    // What the parent lives in goes only where the parent goes before it.
    let stays = has_bare_object || !goes(&opened.set, parent.as_mut(), &observed, options);
    let policy = policy(
        options,
        if stays {
            Pruning::Enabled
        } else {
            Pruning::WholeSet
        },
    );
    let containers = plan::containers(&opened.set, &nothing, &observed, &policy);
    observed.contents = cluster.contents(&containers, concurrency).await?;
    let resource = parent.as_ref().map(|_| &opened.resource);
    let holders = plan::holders(&opened.set, resource, &nothing, &observed, &policy);
    observed.holder_owners = situation::read_owners(server, holders, &home).await?;
    Ok(Some(Found {
        parent,
        places: survey.places,
        observed,
        policy,
        warnings,
        likely_members_left: left_out.likely_members,
    }))
}

/// Returns whether the parent goes with its set. Owners of it that go as well are taken from
/// `parent`: the run removes these references before it deletes anything.
fn goes(set: &Set, parent: Option<&mut WholeParent>, observed: &Observed, options: &DeleteOptions) -> bool {
    let Some(parent) = parent else { return true };
    if !parent.live.owners.is_empty() {
        let policy = policy(options, Pruning::WholeSet);
        let going = plan::plan(set, &Desired::default(), observed, &policy)
            .dependants
            .going;
        parent.live.owners.retain(|owner| !going.contains_key(&owner.uid));
    }
    let managers = parent_managers(&options.writing.field_manager);
    plan::parent_fate(set, &parent.live, &parent.content_writers, &managers) == ParentFate::Goes
}

fn policy(options: &DeleteOptions, pruning: Pruning) -> Policy {
    Policy {
        pruning,
        ..options.policy.clone()
    }
}
