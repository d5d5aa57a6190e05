//! Finds objects of the manifests that are members of other sets, and the parents of those sets.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Cluster;
use super::list::{METADATA_LIST, Selector};
use super::list_collections::list_collections;
use super::list_visible::{ListOptions, list_visible_everywhere};
use super::named_set::NamedSet;
use super::parent_kinds::{find_served_parent_kinds, list_custom_parent_kinds};
use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::applyset::{ApplySetId, ID_LABEL, PART_OF_LABEL, ParentIdentity};
use crate::model::list_targets::ListTargets;
use crate::model::live::Live;
use crate::plan::{self, OtherParents};

/// Finds objects of the manifests that are members of other sets. Sends nothing if all of them are
/// members of this set already.
pub(super) async fn list_members_of_other_sets(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
    own_members: &[Live],
    concurrency: usize,
) -> Result<Vec<Live>, Error> {
    let places = plan::scope_of_newcomers(desired, own_members);
    let selector = Selector::new(
        format!("{PART_OF_LABEL},{PART_OF_LABEL}!={}", named.set.id),
        METADATA_LIST,
    );
    Ok(list_collections(server, &places, &selector, concurrency, Live::from_object).await?)
}

/// For a set without a parent, finds objects of the manifests that are members of other sets. Returns `None` if this
/// set itself has members, or if `places` do not cover the manifests: then the members have to be listed as whole
/// objects. A set without a parent hardly ever has members, so usually one LIST for each kind and namespace is enough
/// instead of two.
pub(super) async fn list_other_members_if_set_empty(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
    places: &ListTargets,
    concurrency: usize,
) -> Result<Option<Vec<Live>>, Error> {
    if !places.covers(&plan::scope_of_newcomers(desired, &[])) {
        return Ok(None);
    }
    let selector = Selector::new(PART_OF_LABEL, METADATA_LIST);
    let found = list_collections(server, places, &selector, concurrency, Live::from_object).await?;
    let mut ids = found.iter().filter_map(|live| live.part_of.as_deref());
    let has_member = ids.any(|id| id == named.set.id.as_str());
    Ok((!has_member).then_some(found))
}

/// Finds the parents of those other sets that hold objects of the manifests, so that the refusal can name them.
/// `others` may also hold members of sets without such objects.
pub(super) async fn find_parents_of_sets_with_desired_objects(
    cluster: &Cluster,
    named: &NamedSet,
    desired: &Desired,
    others: &[Live],
    concurrency: usize,
    warnings: &mut Vec<String>,
) -> OtherParents {
    let wanted: BTreeSet<_> = desired.members.iter().map(|member| &member.key).collect();
    let ids = others
        .iter()
        .filter(|live| wanted.contains(&live.key))
        .filter_map(|live| live.part_of.as_deref())
        .collect();
    let of_members = wanted.iter().filter_map(|key| key.namespace.clone());
    let namespaces = of_members.chain(named.set.parent.namespace.clone()).collect();
    find_parents_of_sets(cluster, &ids, namespaces, concurrency, warnings).await
}

/// Finds the parents of the sets with these ids. If the user may not list all namespaces, searches `namespaces` and
/// that of the connection, where the other sets probably are.
pub async fn find_parents_of_sets(
    cluster: &Cluster,
    ids: &BTreeSet<&str>,
    mut namespaces: BTreeSet<String>,
    concurrency: usize,
    warnings: &mut Vec<String>,
) -> OtherParents {
    if ids.is_empty() {
        return OtherParents::default();
    }
    namespaces.insert(cluster.namespace.clone());
    let mut doubts = Vec::new();
    let custom = list_custom_parent_kinds(&cluster.server).await;
    let kinds = find_served_parent_kinds(cluster, custom, &mut doubts).await;
    let selector = Selector::new(ID_LABEL, METADATA_LIST);
    let options = ListOptions::new(&selector, concurrency);
    let look =
        list_visible_everywhere(&cluster.server, &kinds, &namespaces, options, Live::from_object).await;
    let parents = look.found.into_iter();
    let found: BTreeMap<String, ParentIdentity> = parents
        .map(|parent| (ApplySetId::for_parent(&parent.key).to_string(), parent.key))
        .filter(|(id, _)| ids.contains(id.as_str()))
        .collect();
    if found.len() < ids.len() {
        warnings.extend(doubts.iter().cloned());
    }
    OtherParents {
        found,
        is_incomplete: !doubts.is_empty() || !look.unread.is_empty(),
    }
}
