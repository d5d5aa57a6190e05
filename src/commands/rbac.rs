//! `rbac`: prints the least permissions for applying a set from its manifests, as RBAC objects for the user to review
//! and apply.

use std::collections::BTreeSet;

use crate::cli::{GlobalFlags, Rbac};
use crate::error::{Error, ErrorKind};
use crate::exit::Exit;
use crate::manifest::desired::{self, Desired};
use crate::manifest::{self, Manifests};
use crate::model::applyset::Tooling;
use crate::model::permission::{Permission, Verb};
use crate::model::text::{counted, first_names_and_more};
use crate::plan::permissions::{self, Grant, Past, comment_on_secrets};
use crate::plan::recorded_kinds;
use crate::plan::{self, Refusal};
use crate::read::found_set::{self, FoundSet};
use crate::read::{Cluster, NamedSet, add_members_to_sets, resolve_named_set};
use crate::report;
use crate::session::connect::{
    connect_as_user_of_context, discover_and_read_manifests, unlimited_kind_waits,
};
use crate::session::prepare::resolve_recreate_kinds;
use crate::session::signals::{listen, run_unless_interrupted};
use crate::settings::{self, RbacOptions};

/// Runs `rbac`. The cluster is read as the user of the kubeconfig, not as the user of `--as`: here, `--as` names the
/// subject of the permissions, who may have none yet.
pub(super) async fn run(arguments: &Rbac, shared: &GlobalFlags) -> Result<Exit, Error> {
    run_unless_interrupted(&listen(), read_and_print_permissions(arguments, shared)).await
}

async fn read_and_print_permissions(arguments: &Rbac, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::read_style(shared);
    let options = RbacOptions::new(arguments, shared)?;
    let connection = connect_as_user_of_context(shared).await?;
    let (mut cluster, manifests) = discover_and_read_manifests(
        connection,
        options.sources,
        options.recursion,
        unlimited_kind_waits(style),
        |manifests| Manifests::with_hooks_separated(manifests, options.hooks),
        None,
    )
    .await?;
    let named = resolve_named_set(
        &mut cluster,
        &options.set,
        Tooling::this_program(),
        &manifests.applied,
    )
    .await?;
    let recreate = resolve_recreate_kinds(&options.recreate, &options.recreate_kinds, &cluster.discovery)?;
    let desired = desired::resolve(manifests, named.context_for_manifests(&cluster))?;
    if let Some(refusal) = plan::refuse_hooks(&desired, options.hooks) {
        return Err(Refusal::error(&[refusal]));
    }
    let mut notes = manifest::notes_on_hooks_left_out(&desired.hooks, options.hooks);
    // Without permission to read the set, the permissions for the manifests alone are printed.
    let (past, writers) =
        match read_past_and_record_writers(&mut cluster, &named, usize::from(shared.concurrency)).await {
            Err(error) if is_forbidden(&error) => {
                notes.push(format!("{error}; printing permissions for the manifests alone"));
                (Past::default(), Vec::new())
            }
            past => past?,
        };
    let mut needed = find_needed(&named, &desired, &past, &cluster, options.grant);
    if !options.include_recorded {
        let needed_for_manifests = find_needed(&named, &desired, &Past::default(), &cluster, options.grant);
        notes.extend(note_on_left_out(&(&needed - &needed_for_manifests), &writers));
        needed = needed_for_manifests;
    }
    if options.grant == Grant::Runs {
        needed.extend(permissions::needed_to_recreate(&desired, &recreate));
    }
    notes.extend(list_remarks(&needed, &desired));
    for note in &notes {
        report::print_note(note, style);
    }
    let name = permissions::name_for_set(&named.set.parent, options.grant);
    let namespace = named
        .set
        .parent
        .namespace
        .as_deref()
        .unwrap_or(&cluster.namespace);
    let objects = permissions::objects_that_grant(&name, &needed, &options.subjects, namespace);
    match options.grant {
        Grant::Runs => report::print_objects(&objects, |_| None, style),
        Grant::ReadOnly => report::print_objects(&objects, comment_on_secrets, style),
    }
    Ok(Exit::Done)
}

fn find_needed(
    named: &NamedSet,
    desired: &Desired,
    past: &Past,
    cluster: &Cluster,
    grant: Grant,
) -> BTreeSet<Permission> {
    let find = match grant {
        Grant::Runs => permissions::needed_for_every_run,
        Grant::ReadOnly => permissions::needed_to_compare,
    };
    find(&named.set, &named.resource, desired, past, &cluster.discovery)
}

/// Reads what earlier runs have left: the record and the members of the set, and the field managers that have written
/// the record. Both are empty if the set does not exist.
async fn read_past_and_record_writers(
    cluster: &mut Cluster,
    named: &NamedSet,
    concurrency: usize,
) -> Result<(Past, Vec<String>), Error> {
    let Some(parent) = named.read_parent(&cluster.server).await? else {
        return Ok((Past::default(), Vec::new()));
    };
    let mut sets = [FoundSet::new(named.set.parent.clone(), &parent.object)];
    cluster.judge_missing_kinds_without_waiting(&sets).await;
    let places = found_set::determine_places_of_sets(&sets, &cluster.discovery);
    let record = sets[0].recorded();
    let undiscovered =
        record.map(|record| recorded_kinds::find_undiscovered(&record.kinds, &cluster.discovery));
    add_members_to_sets(cluster, &mut sets, concurrency).await?;
    let [set] = sets;
    let past = Past {
        places,
        members: set.members,
        undiscovered: undiscovered.unwrap_or_default(),
    };
    Ok((past, parent.record_writers))
}

/// Returns the note on permissions that only the record or members need, and no manifest. They are left out by default:
/// a tenant who may write the record or label objects would otherwise choose what the subject may do.
fn note_on_left_out(left_out: &BTreeSet<Permission>, writers: &[String]) -> Option<String> {
    let writers = match writers {
        [] => "an unknown field manager".to_owned(),
        _ => writers.join(" and "),
    };
    let objects: BTreeSet<String> = left_out.iter().map(Permission::describe_object).collect();
    (!objects.is_empty()).then(|| {
        format!(
            "left out, because no manifest needs them: permissions on {}. Only the record (written by {writers}) or members name these. If you recognize them, pass --include-recorded; without it, a run that prunes the last object of such a kind is denied, because it needs list and delete",
            first_names_and_more(objects)
        )
    })
}

fn is_forbidden(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Forbidden | ErrorKind::ListForbidden)
}

/// Returns the notes that the user should read before granting these permissions.
fn list_remarks(needed: &BTreeSet<Permission>, desired: &Desired) -> Vec<String> {
    let mut remarks = Vec::new();
    if desired.defined_namespaces().next().is_some() {
        remarks.push(
            "pruning a namespace needs --allow-data-loss, because these permissions cannot list all that it contains"
                .to_owned(),
        );
    }
    let powerful: Vec<String> = needed
        .iter()
        .filter(|permission| matches!(permission.verb, Verb::Bind | Verb::Escalate))
        .map(ToString::to_string)
        .collect();
    if !powerful.is_empty() {
        remarks.push(format!(
            "{} to bind or escalate roles: {}; remove them if the subject already has the permissions of these roles",
            counted(powerful.len(), "grant"),
            powerful.join(", ")
        ));
    }
    remarks
}
