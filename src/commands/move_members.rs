//! `move`: moves all or some members of a set to another set. One write of each member replaces the label, so that the
//! member is in one of the two sets at any time.

use std::collections::BTreeSet;

use crate::cli::{GlobalFlags, Move};
use crate::error::Error;
use crate::event::{Interrupt, Operation};
use crate::execute::{JoinedSet, LeftSet, MembershipExecution, Obstacles, ParentAim};
use crate::exit::Exit;
use crate::manifest::Manifests;
use crate::manifest::desired;
use crate::model::applyset::Record;
use crate::model::expiry::expiry_text;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Scope;
use crate::model::set::{ParentObject, Set};
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::plan::{self, MembershipKeepReason, MembershipPlan, MembershipSkip};
use crate::read::{Cluster, Goal, NamedSet, list_objects_with_lost_label, no_set_to_move, resolve_named_set};
use crate::report::SetDocument;
use crate::session::adopt_move_disband::{self, MembershipCommand, SetRead};
use crate::session::command_run::CommandRun;
use crate::settings::{MembersToMove, MoveOptions};

/// Runs `move`. The report is about the set that members join.
pub(super) async fn run(arguments: &Move, shared: &GlobalFlags) -> Result<Exit, Error> {
    let options = MoveOptions::new(arguments, shared)?;
    let (membership, manifests) = (&options.membership, options.selection.manifests());
    let command = MoveCommand {
        options: &options,
        shared,
    };
    adopt_move_disband::run(command, &options.new, membership, manifests, shared).await
}

struct MoveCommand<'a> {
    options: &'a MoveOptions,
    shared: &'a GlobalFlags,
}

/// Both sets as they were read, and what moves.
struct PlannedMove {
    cluster: Cluster,
    manifests: Manifests,
    /// The old set, which the members leave.
    from: SetRead,
    /// The parent of the old set.
    former: ParentObject,
    /// The new set, which the members join.
    into: SetRead,
    /// The number of members of the new set before the move.
    members_before: usize,
    plan: MembershipPlan,
    /// The record of the new set after the move.
    record: Record,
    /// What becomes of the old parent.
    aim: ParentAim,
    /// What keeps the old parent, although the whole set was to move.
    obstacles: Obstacles,
}

impl MembershipCommand for MoveCommand<'_> {
    const OPERATION: Operation = Operation::Move;
    type Planned = PlannedMove;

    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<PlannedMove>,
    ) -> Result<PlannedMove, Error> {
        let (cluster, manifests) = adopt_move_disband::discover_and_read_manifests_once(
            run,
            self.shared,
            self.options.selection.manifests(),
            // A hook that is a member moves like any other member.
            Manifests::with_hooks_not_separated,
            outdated.map(|outdated| (outdated.cluster, outdated.manifests)),
        )
        .await?;
        read_and_plan(run, cluster, manifests, self.options).await
    }

    fn execution<'p>(
        &'p self,
        planned: &'p PlannedMove,
        interrupt: &'p Interrupt,
    ) -> MembershipExecution<'p> {
        let MoveOptions {
            membership,
            selection,
            ..
        } = self.options;
        let PlannedMove {
            cluster, from, into, ..
        } = planned;
        MembershipExecution {
            joined: Some(JoinedSet {
                parent: into.parent_writing(cluster, membership, interrupt),
                state: &into.state,
                record: &planned.record,
            }),
            left: Some(LeftSet {
                parent: from.parent_writing(cluster, membership, interrupt),
                former: &planned.former,
                state: &from.state,
                appliers: &membership.appliers,
                aim: planned.aim,
                obstacles: &planned.obstacles,
            }),
            plan: &planned.plan,
            selector: selection.labels(),
            judge: Box::new(|_, live| {
                plan::judge_move(live, &from.named.set, &into.named.set, &membership.appliers)
            }),
        }
    }

    fn report_done(&self, run: &mut CommandRun, planned: &PlannedMove) {
        let [from, into] = [&planned.from, &planned.into].map(|read| &read.named.set);
        let namespace = note_on_manifests_without_namespace(from, into, &planned.plan)
            .filter(|_| self.options.membership.writing.dry_run == DryRun::None);
        let merged = note_on_manifests_to_merge(into, planned.members_before, &planned.plan);
        run.report_new_notes(namespace.into_iter().chain(merged).collect());
    }
}

/// Returns the note that manifests without a namespace now get the namespace of the new parent. `None` if the namespace
/// of the parent is the same, or if no moved member is in the old one.
fn note_on_manifests_without_namespace(from: &Set, into: &Set, plan: &MembershipPlan) -> Option<String> {
    let [old, new] = [from, into].map(|set| set.parent.namespace.as_ref());
    let (old, new) = old.zip(new).filter(|(old, new)| old != new)?;
    let mut moved = plan.changes.iter();
    moved
        .any(|live| live.key.namespace.as_ref() == Some(old))
        .then(|| {
            format!(
                "manifests without a namespace now belong to namespace {new}; \
                 set metadata.namespace: {old} in them before the next apply"
            )
        })
}

/// Returns the note that the next apply of the new set prunes the moved objects if it lacks their manifests. `None` if
/// the new set had no members, so that it has no manifests of its own.
fn note_on_manifests_to_merge(into: &Set, members_before: usize, plan: &MembershipPlan) -> Option<String> {
    let is_merge = members_before > 0 && !plan.changes.is_empty();
    is_merge.then(|| {
        format!(
            "{} already had {}; add the manifests of the moved objects to those of that set, otherwise its next apply deletes these objects",
            into.parent,
            counted(members_before, "member")
        )
    })
}

/// Returns the note that the new set does not expire, although the old one does: the time belongs to the set for which
/// somebody gave it.
fn note_on_expiry(from: &SetRead, into: &SetRead) -> Option<String> {
    let [old_expires, new_expires] = [from, into].map(|read| {
        let annotations = read.parent().map(|parent| &parent.annotations);
        annotations.and_then(expiry_text).is_some()
    });
    let text = "does not expire; `apply --expires` sets a time";
    (old_expires && !new_expires).then(|| format!("{} {text}", into.named.set.parent))
}

async fn read_and_plan(
    run: &mut CommandRun,
    mut cluster: Cluster,
    manifests: Manifests,
    options: &MoveOptions,
) -> Result<PlannedMove, Error> {
    let membership = &options.membership;
    let old = resolve_named_set(&mut cluster, &membership.set, membership.tooling.clone(), &[]).await?;
    let new = resolve_named_set(&mut cluster, &options.new, membership.tooling.clone(), &[]).await?;
    run.set = SetDocument::from(&new.set);
    check_target_of_move(&old, &new, options)?;
    let leaving = Goal::Leave(Operation::Move);
    let mut from = adopt_move_disband::read_set(&mut cluster, old, leaving, membership).await?;
    let Some(former) = from.parent().cloned() else {
        return Err(no_set_to_move(&from.named.set.parent));
    };
    let joining = Goal::Join(Operation::Move);
    let into = adopt_move_disband::read_set(&mut cluster, new, joining, membership).await?;
    run.report_new_warnings(&from.state.warnings);
    run.report_new_warnings(&into.state.warnings);

    let requested = resolve_requested_objects(&cluster, &into, manifests.clone(), &options.selection)?;
    let labels = options.selection.labels();
    let concurrency = membership.writing.concurrency;
    let (members, old_members) = list_movable_and_old_members(
        &cluster,
        [&from, &into],
        requested.as_deref(),
        labels,
        concurrency,
    )
    .await?;
    let [old_set, new_set] = [&from, &into].map(|read| &read.named.set);
    let mut plan = plan::plan_move(old_set, new_set, &members, requested, &membership.appliers);
    if let Some(labels) = labels
        && plan.count_reported_objects() == 0
    {
        return Err(Error::usage(
            format!("no member has the labels {labels:?}"),
            "list the members with `kubectl applyset view SET`",
        ));
    }
    let (record, too_large) = into.widened_record_and_refusal(&plan.build_record_of_members(new_set));
    plan.refusals.extend(too_large);

    let members_of_new_set = into
        .list_members(&cluster, None, &BTreeSet::new(), concurrency)
        .await?;
    let remaining = find_remaining(&from.named.set, &old_members, &plan, &membership.appliers);
    if remaining.is_empty() {
        // The old parent may be deleted. Objects that have lost the label would then be in the scope of no record.
        let places = &from.state.places;
        let unlabeled = list_objects_with_lost_label(&cluster.server, places, concurrency).await?;
        from.state
            .warn_and_keep_unlabeled_in_record(&unlabeled, &from.named);
        run.report_new_warnings(&from.state.warnings);
    }
    let obstacles = Obstacles {
        unlisted: from.state.observed.record_to_keep.clone(),
        owned: find_object_owned_by_old_parent(&from.named.set, &members_of_new_set, &into),
        members: remaining,
    };
    run.report_new_notes(note_on_expiry(&from, &into).into_iter().collect());
    let (aim, obstacles) = decide_old_parent_aim(obstacles, &options.selection);
    Ok(PlannedMove {
        cluster,
        manifests,
        from,
        former,
        into,
        members_before: members_of_new_set.len(),
        plan,
        record,
        aim,
        obstacles,
    })
}

/// Refuses `--to-namespace` for a cluster-scoped parent, and a move of a set into itself.
fn check_target_of_move(old: &NamedSet, new: &NamedSet, options: &MoveOptions) -> Result<(), Error> {
    if options.new.namespace.is_some() && new.resource.scope == Scope::Cluster {
        return Err(Error::usage(
            format!(
                "{}: --to-namespace: a {} has no namespace",
                new.set.parent, new.resource.kind
            ),
            "omit --to-namespace",
        ));
    }
    if old.set.parent == new.set.parent {
        return Err(Error::usage(
            format!("{}: source and target are the same set", old.set.parent),
            "name another set as the target, or another namespace with --to-namespace",
        ));
    }
    Ok(())
}

/// Lists the members that the run may move, and all members of the old set.
///
/// The former are the members of the old set that match the labels. Members of the new set are among them if manifests
/// name the members, or if no member of the old set matches: then the run reports what an earlier run has moved
/// already.
async fn list_movable_and_old_members(
    cluster: &Cluster,
    [from, into]: [&SetRead; 2],
    requested: Option<&[MembershipSkip]>,
    labels: Option<&str>,
    concurrency: usize,
) -> Result<(Vec<Live>, Vec<Live>), Error> {
    let keys = requested
        .into_iter()
        .flatten()
        .map(|object| object.key.clone())
        .collect();
    let mut members = from.list_members(cluster, labels, &keys, concurrency).await?;
    let old_members = if labels.is_some() {
        from.list_members(cluster, None, &keys, concurrency).await?
    } else {
        members.clone()
    };
    if requested.is_some() || members.is_empty() {
        members.extend(into.list_members(cluster, labels, &keys, concurrency).await?);
    }
    Ok((members, old_members))
}

/// Decides what becomes of the old parent. It is deleted if no member is left and nothing else keeps it. If the
/// user wanted to move the whole set, the obstacles are returned, to be reported. If the user has chosen some members
/// and others are left, the parent is expected to stay, and no obstacles are returned.
fn decide_old_parent_aim(obstacles: Obstacles, selection: &MembersToMove) -> (ParentAim, Obstacles) {
    let has_members_left = !obstacles.members.is_empty() || !obstacles.unlisted.is_empty();
    match selection {
        _ if obstacles == Obstacles::default() => (ParentAim::Delete, obstacles),
        MembersToMove::Labels(_) | MembersToMove::Manifests(..) if has_members_left => {
            (ParentAim::Narrow, Obstacles::default())
        }
        MembersToMove::All | MembersToMove::Labels(_) | MembersToMove::Manifests(..) => {
            (ParentAim::Narrow, obstacles)
        }
    }
}

/// Returns the members that the old set still has after the move.
fn find_remaining(
    from: &Set,
    old_members: &[Live],
    plan: &MembershipPlan,
    appliers: &BTreeSet<String>,
) -> Vec<Live> {
    let moved: BTreeSet<&str> = plan.changes.iter().map(|live| live.uid.as_str()).collect();
    old_members
        .iter()
        .filter(|live| !moved.contains(live.uid.as_str()) && !plan::is_owned_copy(live, from, appliers))
        .cloned()
        .collect()
}

/// Returns a member of the new set, or its parent, that names the old parent as its owner. If the old parent were
/// deleted, the garbage collector would delete that object.
fn find_object_owned_by_old_parent(from: &Set, members: &[Live], into: &SetRead) -> Option<ObjectKey> {
    if let Some(member) = members
        .iter()
        .find(|live| from.is_parent_among_owners(&live.owners))
    {
        return Some(member.key.clone());
    }
    let parent = into
        .parent()
        .filter(|parent| from.is_parent_among_owners(&parent.owners));
    parent.map(|_| into.named.set.parent.clone())
}

/// Returns the objects of the manifests, if manifests name the members to move. Each has the reason that
/// is reported if the object turns out not to be a member.
fn resolve_requested_objects(
    cluster: &Cluster,
    into: &SetRead,
    manifests: Manifests,
    selection: &MembersToMove,
) -> Result<Option<Vec<MembershipSkip>>, Error> {
    let MembersToMove::Manifests(..) = selection else {
        return Ok(None);
    };
    let desired = desired::resolve(manifests, into.named.context_for_manifests(cluster))?;
    let members = desired.members.into_iter();
    let requested = members.map(|member| MembershipSkip {
        key: member.key,
        resource: member.resource,
        uid: None,
        reason: MembershipKeepReason::NotAMember,
    });
    Ok(Some(requested.collect()))
}
