//! The kinds that may be parents.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::cluster::Cluster;
use super::list::ListError;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::model::identity::GroupKind;
use crate::model::list_targets::ListTarget;
use crate::model::resource::{Origin, Resource};

/// Returns the kinds that may be parents: Secrets, ConfigMaps, and custom resources whose CRD is
/// labeled for it, which are `custom`. Warns of those that may have objects and cannot be listed: their
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

/// Returns the position of the first list of Secrets or ConfigMaps that failed. Then most sets may be hidden,
/// and to find none does not mean that there is none. Custom resources are parents so rarely that a kind of
/// them is only warned of.
pub fn built_in_parents_unread(unread: &[(ListTarget, ListError)]) -> Option<usize> {
    unread
        .iter()
        .position(|(place, _)| place.resource.group.is_empty())
}

/// Returns whether the server may serve a kind that this discovery does not show.
fn is_unlisted(discovery: &Discovery, kind: &GroupKind) -> bool {
    match discovery.preferred(kind) {
        KindLookup::Found(resource) => resource.origin == Origin::NotYetServed,
        KindLookup::Absent => true,
        KindLookup::GroupFailed(_) => false,
    }
}
