//! The kinds that may be parents, and the parents of other sets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cluster::Cluster;
use super::list::{ListError, METADATA_LIST, Selector};
use super::list_all::{Looking, list_all};
use super::parent::custom_parent_kinds;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::model::applyset::{ApplySetId, ID_LABEL, ParentIdentity};
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::resource::{Origin, Resource};
use crate::plan::OtherParents;

/// Returns the kinds that may be parents: Secrets, ConfigMaps, and custom resources whose CRD is
/// labelled for it, which are `custom`. Warns of those that may have objects and cannot be listed: their
/// sets are not gone.
pub async fn parent_kinds(
    cluster: &Cluster,
    custom: Result<Vec<GroupKind>, ListError>,
    warnings: &mut Vec<String>,
) -> Vec<Arc<Resource>> {
    let mut kinds = vec![GroupKind::new("", "Secret"), GroupKind::new("", "ConfigMap")];
    match custom {
        Ok(custom) => kinds.extend(custom),
        Err(error) => warnings.push(format!(
            "sets with custom resources as parents are not shown: cannot list CustomResourceDefinitions: {error}"
        )),
    }
    let unlisted = |discovery: &Discovery| -> BTreeSet<GroupKind> {
        let unlisted = kinds.iter().filter(|kind| is_unlisted(discovery, kind));
        unlisted.cloned().collect()
    };
    let mut discovery = Cow::Borrowed(&cluster.discovery);
    let mut unsettled = None;
    if !unlisted(&discovery).is_empty() {
        let settled = cluster.settle_kinds(discovery.to_mut(), unlisted).await;
        unsettled = settled.err();
    }
    let mut resources = Vec::new();
    for kind in &kinds {
        let hidden = match discovery.preferred(kind) {
            KindLookup::Found(resource) if resource.origin == Origin::Served => {
                resources.push(Arc::new(resource.clone()));
                None
            }
            KindLookup::GroupFailed(failure) => Some(failure.to_string()),
            KindLookup::Found(_) | KindLookup::Absent => match (discovery.missing_kind(kind), &unsettled) {
                (Some(missing), _) => missing.hidden_reason(),
                (None, Some(error)) => Some(error.to_string()),
                (None, None) => None,
            },
        };
        warnings
            .extend(hidden.map(|reason| format!("sets with parents of kind {kind} are not shown: {reason}")));
    }
    resources
}

/// Returns whether the server may serve a kind that this discovery does not show.
fn is_unlisted(discovery: &Discovery, kind: &GroupKind) -> bool {
    match discovery.preferred(kind) {
        KindLookup::Found(resource) => resource.origin == Origin::NotYetServed,
        KindLookup::Absent => true,
        KindLookup::GroupFailed(_) => false,
    }
}

/// Finds the parents of the sets with these ids. For a user who may not list all namespaces, these are
/// searched in `namespaces` and that of the connection, where the other set probably is.
pub async fn parents_of_sets(
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
    let looking = Looking {
        selector: &selector,
        concurrency,
        seen: &|| (),
    };
    let look = list_all(&cluster.server, &kinds, &namespaces, looking, Live::of).await;
    let parents = look.found.into_iter();
    let found: BTreeMap<String, ParentIdentity> = parents
        .map(|parent| (ApplySetId::of(&parent.key).to_string(), parent.key))
        .filter(|(id, _)| ids.contains(id.as_str()))
        .collect();
    if found.len() < ids.len() {
        warnings.extend(doubts.iter().cloned());
    }
    OtherParents {
        found,
        some_unseen: !doubts.is_empty() || !look.unread.is_empty(),
    }
}
