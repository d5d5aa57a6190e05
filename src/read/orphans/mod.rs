//! Orphans: the members of a set whose parent is gone or has no record. They may be of any kind
//! and in any namespace.

mod members_outside_known_namespaces;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use members_outside_known_namespaces::{Credible, LabeledNonMembers};

use super::cluster::Cluster;
use super::list::{METADATA_LIST, Selector};
use super::list_collections::unique_by_uid;
use super::list_visible::{ListOptions, ListResults, list_visible_everywhere};
use super::named_set::NamedSet;
use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::manifest::desired::{Desired, MEMBER_VERBS};
use crate::model::applyset::Record;
use crate::model::list_targets::ListTarget;
use crate::model::live::Live;
use crate::model::resource::{Resource, Scope};
use crate::model::text::{counted, members_missed_warning};
use crate::plan::{self, MemberScope};

/// The result of a search of the whole cluster for a set without a record.
#[derive(Debug)]
pub(super) struct OrphanSearchResult {
    pub(super) members: usize,
    /// Names of everything that could not be listed in all namespaces: resources by their plural, kinds that
    /// definitions do not serve, APIs that do not answer.
    pub(super) hidden: Vec<String>,
    /// Names of the kinds and APIs that the server does not serve, so that no permission would show their objects.
    unserved: Vec<String>,
    /// Objects that have the label but do not count as members.
    pub(super) left_out: LabeledNonMembers,
}

/// The rules of a search for members.
#[derive(Clone, Copy)]
pub(super) struct SearchRules<'a> {
    /// Field managers whose part-of labels make an object a member.
    pub(super) appliers: &'a BTreeSet<String>,
    pub(super) concurrency: usize,
}

/// Searches the whole cluster for members of a set that has no record of their kinds and namespaces. Extends the scope
/// by the kinds and namespaces of all credible orphans. A kind that the user may not list in all namespaces is searched
/// only in the namespaces of the scope and of the connection.
///
/// # Errors
///
/// A kind exists and is not served, or the server did not answer a list. The run must not go on without these members:
/// it would write a record without them, and later runs would search only where the record says.
pub(super) async fn find_and_extend_scope(
    cluster: &mut Cluster,
    named: &NamedSet,
    member_scope: &mut MemberScope,
    search: SearchRules<'_>,
) -> Result<OrphanSearchResult, Error> {
    let hidden_kinds = cluster.await_all_kinds().await?;
    // Objects that cannot be applied and deleted, such as the metrics of Pods, are not members of sets.
    let resources: Vec<Arc<Resource>> = cluster
        .discovery
        .listable()
        .filter(|resource| MEMBER_VERBS.iter().all(|verb| resource.supports(verb)))
        .cloned()
        .map(Arc::new)
        .collect();
    let mut namespaces = member_scope.places.namespaces.clone();
    namespaces.insert(cluster.namespace.clone());
    let server = &cluster.server;
    let listed = list_labeled_where_allowed(
        server,
        named,
        &resources,
        &namespaces,
        search.concurrency,
        Live::from_object,
    );
    let (mut found, forbidden) = listed.await?;
    found.retain(|live| !named.set.is_parent(live));
    let recorded = &member_scope.recorded;
    unique_by_uid(
        &mut found,
        |live| live,
        |key| recorded.group_kinds.contains(&key.group_kind),
    );
    let Credible { found, left_out } = members_outside_known_namespaces::separate_members_from_doubtful(
        &cluster.server,
        found,
        &namespaces,
        search,
    )
    .await;
    extend_scope(member_scope, named, &found);
    let plurals: BTreeSet<&String> = forbidden.iter().map(|place| &place.resource.plural).collect();
    Ok(OrphanSearchResult {
        members: found.len(),
        hidden: plurals.into_iter().cloned().chain(hidden_kinds.names()).collect(),
        unserved: hidden_kinds.unserved,
        left_out,
    })
}

/// Lists the namespaced kinds of the manifests in all namespaces, each with one LIST, as far as the user may. Returns
/// whether the set has members there. A list that fails for another reason is an error, as in
/// [`find_and_extend_scope`].
///
/// A run that creates a parent calls this function, because the set may have had a parent before, whose record is gone.
/// If that set has members in namespaces that the new record does not name, no later run would find them.
pub(super) async fn has_members_of_desired_kinds(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
    concurrency: usize,
) -> Result<bool, Error> {
    let mut kinds = plan::scope_of_newcomers(desired, &[]).resources;
    // The search in the scope lists cluster-scoped kinds completely.
    kinds.retain(|resource| resource.scope == Scope::Namespaced);
    let no_namespaces = BTreeSet::new();
    let listed =
        list_labeled_where_allowed(
            server,
            named,
            &kinds,
            &no_namespaces,
            concurrency,
            |_, _| Some(()),
        );
    let (found, _) = listed.await?;
    Ok(!found.is_empty())
}

/// Lists the objects of these kinds that carry the label of the set, in all namespaces. A kind that the user may not
/// list there is listed in `namespaces`. Returns also the collections that the user may not list. A list that fails for
/// another reason is an error: later runs have a record, and would not search that collection again.
async fn list_labeled_where_allowed<T>(
    server: &ApiServer,
    named: &NamedSet,
    kinds: &[Arc<Resource>],
    namespaces: &BTreeSet<String>,
    concurrency: usize,
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<(Vec<T>, Vec<ListTarget>), Error> {
    let selector = Selector::for_members(&named.set.id, METADATA_LIST);
    let options = ListOptions::new(&selector, concurrency);
    let ListResults { found, unread } =
        list_visible_everywhere(server, kinds, namespaces, options, pick).await;
    let (forbidden, failed): (Vec<_>, Vec<_>) =
        unread.into_iter().partition(|(_, error)| error.is_forbidden());
    match failed.into_iter().next() {
        Some(failed) => Err(failed.into()),
        None => Ok((found, forbidden.into_iter().map(|(place, _)| place).collect())),
    }
}

/// Extends the scope by the kinds and namespaces of these members.
fn extend_scope(member_scope: &mut MemberScope, named: &NamedSet, members: &[Live]) {
    let namespaces = members.iter().filter_map(|live| live.key.namespace.clone());
    member_scope.places.namespaces.extend(namespaces);
    member_scope
        .places
        .add_resources_of_new_kinds(members.iter().map(|live| Arc::clone(&live.resource)));
    let record = Record::from_members(members.iter().map(|live| &live.key), &named.set.parent);
    member_scope.recorded = member_scope.recorded.union(&record);
}

/// Presence of the parent of a set that has no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParentPresence {
    /// The parent exists, and may have had a record before.
    There,
    /// The parent does not exist.
    Gone,
}

impl OrphanSearchResult {
    /// Returns warnings of found members, of members that may have been missed, and of objects that were left out.
    pub(super) fn warnings(&self, named: &NamedSet, parent: ParentPresence) -> Vec<String> {
        let possibly_missed = match parent {
            ParentPresence::There => &self.hidden,
            // Most users may not list everything, so missing permissions are not worth a warning for every new set.
            ParentPresence::Gone => &self.unserved,
        };
        let found = match (self.members, parent) {
            (0, _) if possibly_missed.is_empty() => None,
            (0, _) => Some(warning_of_missing_record(possibly_missed)),
            (count, ParentPresence::Gone) => Some(warning_of_found_orphans(named, count, &self.hidden)),
            (count, ParentPresence::There) => Some(format!(
                "found {} of this set that its parent {} does not record{}",
                counted(count, "object"),
                named.set.parent,
                describe_members_perhaps_missed(&self.hidden)
            )),
        };
        found.into_iter().chain(self.left_out.warnings.clone()).collect()
    }

    /// Returns the warnings before a deletion. They do not mention the found members, because a deletion lists these.
    pub(super) fn warnings_before_deletion(&self) -> Vec<String> {
        let hidden = (!self.hidden.is_empty()).then(|| warning_of_missing_record(&self.hidden));
        hidden.into_iter().chain(self.left_out.warnings.clone()).collect()
    }
}

/// The warning that members were found whose parent is gone.
pub(super) fn warning_of_found_orphans(named: &NamedSet, count: usize, hidden: &[String]) -> String {
    format!(
        "found {} of this set, whose parent {} is gone; they become its members again{}",
        counted(count, "object"),
        named.set.parent,
        describe_members_perhaps_missed(hidden)
    )
}

fn describe_members_perhaps_missed(hidden: &[String]) -> String {
    if hidden.is_empty() {
        return String::new();
    }
    format!("; {}", members_missed_warning(hidden))
}

/// The warning that members of a set without a record may be missed.
fn warning_of_missing_record(hidden: &[String]) -> String {
    format!("the set has no record; {}", members_missed_warning(hidden))
}
