//! The kinds that may be parents.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::cluster::Cluster;
use super::kinds_missing_from_discovery::await_or_judge_missing_kinds;
use super::list::{ListError, Selector, WHOLE_OBJECTS, list};
use crate::cluster::apiserver::ApiServer;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::model::applyset::IS_PARENT_TYPE_LABEL;
use crate::model::applyset::tooling::CONFIG_SYNC;
use crate::model::identity::GroupKind;
use crate::model::list_targets::ListTarget;
use crate::model::resource::{Origin, Resource};

/// Lists the kinds whose CRDs have the label that permits their objects to be parents.
pub async fn list_custom_parent_kinds(server: &ApiServer) -> Result<Vec<GroupKind>, ListError> {
    let selector = Selector::new(IS_PARENT_TYPE_LABEL, WHOLE_OBJECTS);
    let definitions = Resource::crd_resource();
    list(server, &definitions, None, &selector, GroupKind::defined_by_crd).await
}

/// Returns the served kinds that may be parents: Secrets, ConfigMaps, and the kinds in `custom`, whose CRDs are labeled
/// for it. Warns of kinds that may have objects and cannot be listed: without the warning, the sets with such parents
/// would seem to be gone.
pub async fn find_served_parent_kinds(
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
    let find_missing = |discovery: &Discovery| -> BTreeSet<GroupKind> {
        let missing = kinds.iter().filter(|kind| is_missing(discovery, kind));
        missing.cloned().collect()
    };
    let mut discovery = Cow::Borrowed(&cluster.discovery);
    let mut error_of_missing = None;
    if !find_missing(&discovery).is_empty() {
        let wait = cluster.kind_waits.start();
        let settled =
            await_or_judge_missing_kinds(&cluster.server, discovery.to_mut(), find_missing, &wait).await;
        error_of_missing = settled.err();
    }
    let mut resources = Vec::new();
    for kind in &kinds {
        let hidden_reason = match discovery.find_preferred(kind) {
            KindLookup::Found(resource) if resource.origin == Origin::Served => {
                resources.push(Arc::new(resource.clone()));
                None
            }
            KindLookup::GroupFailed(failure) => Some(failure.to_string()),
            KindLookup::Found(_) | KindLookup::Absent => {
                match (discovery.judgement_on_missing_kind(kind), &error_of_missing) {
                    (Some(missing), _) => missing.reason_for_hidden_objects(),
                    (None, Some(error)) => Some(error.to_string()),
                    (None, None) => None,
                }
            }
        };
        warnings.extend(
            hidden_reason.map(|reason| format!("sets with parents of kind {kind} are not shown: {reason}")),
        );
    }
    resources
}

/// Adds the kinds of Config Sync's parents, if the server serves them: their CRDs do not have the label. Its parents
/// record no kinds, so commands that write do not need them.
pub fn add_kinds_of_config_sync(kinds: &mut Vec<Arc<Resource>>, discovery: &Discovery) {
    for kind in ["RootSync", "RepoSync"].map(|kind| GroupKind::new(CONFIG_SYNC, kind)) {
        let is_known = kinds.iter().any(|resource| resource.group_kind() == kind);
        if let KindLookup::Found(resource) = discovery.find_preferred(&kind)
            && resource.origin == Origin::Served
            && !is_known
        {
            kinds.push(Arc::new(resource.clone()));
        }
    }
}

/// Returns the position of the first failed list of Secrets or ConfigMaps in `unread`. If one failed, most sets may be
/// hidden, and finding no set does not mean that there is none. Custom resources are parents so rarely that a failed
/// list of them is only a warning.
pub fn position_of_unread_built_in_kind(unread: &[(ListTarget, ListError)]) -> Option<usize> {
    unread
        .iter()
        .position(|(place, _)| place.resource.group.is_empty())
}

/// Returns whether this discovery does not list the kind as served, although its group was discovered: the server may
/// serve the kind all the same.
fn is_missing(discovery: &Discovery, kind: &GroupKind) -> bool {
    match discovery.find_preferred(kind) {
        KindLookup::Found(resource) => resource.origin == Origin::NotYetServed,
        KindLookup::Absent => true,
        KindLookup::GroupFailed(_) => false,
    }
}
