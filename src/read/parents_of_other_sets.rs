//! The parents of other sets, found by their ids.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Cluster;
use super::list::{METADATA_LIST, Selector};
use super::list_all::{ListOptions, list_all};
use super::parent::custom_parent_kinds;
use super::parent_kinds::parent_kinds;
use crate::model::applyset::{ApplySetId, ID_LABEL, ParentIdentity};
use crate::model::live::Live;
use crate::plan::OtherParents;

/// Finds the parents of the sets with these ids. For a user who may not list all namespaces, these are
/// searched in `namespaces` and that of the connection, where the other set probably is.
pub async fn parents_of_other_sets(
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
    let custom = custom_parent_kinds(&cluster.server).await;
    let kinds = parent_kinds(cluster, custom, &mut doubts).await;
    let selector = Selector {
        labels: ID_LABEL.to_owned(),
        accept: METADATA_LIST,
    };
    let options = ListOptions {
        selector: &selector,
        concurrency,
        seen: &|| (),
    };
    let look = list_all(&cluster.server, &kinds, &namespaces, options, Live::from_object).await;
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
