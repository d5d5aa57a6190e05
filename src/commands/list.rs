//! `list`: the sets of a namespace or of the cluster.

use std::slice;

use futures_util::future::{join_all, try_join};

use crate::cli::{GlobalFlags, List};
use crate::error::Error;
use crate::exit::Exit;
use crate::read::found_set::FoundSet;
use crate::read::{self, Wanted};
use crate::report::{self, ContextAndServer, ListDocument, SetListing, Style};
use crate::session::connect;
use crate::session::signals::{listen, run_unless_interrupted};
use crate::settings;
use crate::verify::describe_record_inconsistencies_of_sets;

/// Runs `list`.
pub(super) async fn run(arguments: &List, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::read_style(shared);
    let mut place = ContextAndServer::default();
    let listed = run_unless_interrupted(
        &listen(),
        read_and_print_sets(arguments, shared, style, &mut place),
    )
    .await;
    // A usage error has no document.
    if let Err(error) = &listed
        && error.exit() != Exit::Usage
    {
        report::print_if_json_or_yaml(&ListDocument::from_error(error), &place, style);
    }
    listed.map(|()| Exit::Done)
}

/// Reads and prints the sets. `place` gets the context and the server once there is a connection, so that the document
/// has them even if a later step fails.
async fn read_and_print_sets(
    arguments: &List,
    shared: &GlobalFlags,
    style: Style,
    place: &mut ContextAndServer,
) -> Result<(), Error> {
    let connection = connect::connect(shared).await?;
    *place = connect::context_and_server(&connection);
    let server = connection.server.clone();
    let discovering = connect::discover(connection, connect::unlimited_kind_waits(style), Wanted::Nothing);
    let custom = Box::pin(async { Ok(read::list_custom_parent_kinds(&server).await) });
    let (mut cluster, custom) = try_join(discovering, custom).await?;
    let mut warnings = Vec::new();
    let mut kinds = read::find_served_parent_kinds(&cluster, custom, &mut warnings).await;
    read::add_kinds_of_config_sync(&mut kinds, &cluster.discovery);
    let namespace = (!arguments.all_namespaces).then(|| cluster.namespace.clone());
    let mut parents = Vec::new();
    let mut unread = Vec::new();
    let lists = kinds
        .iter()
        .map(|kind| read::list_parents(&server, slice::from_ref(kind), namespace.as_deref()));
    for listed in join_all(lists).await {
        // If the user may not list one kind, the sets with parents of other kinds are still shown.
        match listed {
            Ok(found) => parents.extend(found),
            Err(failure) => unread.push(failure),
        }
    }
    // A script would take an empty list for the fact that there are no sets, but there may be parents that the user may
    // not list.
    if parents.is_empty()
        && let Some(position) = read::position_of_unread_built_in_kind(&unread)
    {
        return Err(unread.swap_remove(position).into());
    }
    parents.sort_by(|(one, _), (other, _)| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    let unread = read::unread_reasons(unread);
    let is_complete = warnings.is_empty() && unread.is_empty();
    warnings.extend(read::unread_warnings(&unread));
    let mut sets: Vec<FoundSet> = parents
        .into_iter()
        .map(|(identity, parent)| FoundSet::new(identity, &parent))
        .collect();
    cluster.judge_missing_kinds_without_waiting(&sets).await;
    let concurrency = usize::from(shared.concurrency);
    read::add_visible_members_to_sets(&cluster, &mut sets, concurrency, &mut warnings).await;
    warnings.extend(describe_record_inconsistencies_of_sets(&sets, &cluster.discovery));
    let listings = sets.iter().map(|set| SetListing::new(set, &cluster.discovery));
    let document = ListDocument::new(listings.collect(), warnings);
    for warning in &document.warnings {
        report::print_warning(warning, style);
    }
    if document.sets.is_empty() {
        let searched = namespace.map_or_else(String::new, |namespace| {
            format!(" in namespace {namespace}; use -A for all namespaces")
        });
        let found = if is_complete {
            "no sets found"
        } else {
            "no sets found among those that you can list"
        };
        report::print_note(&format!("{found}{searched}"), style);
    }
    report::print_listing(&document, place, style);
    Ok(())
}
