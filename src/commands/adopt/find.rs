//! Finds the objects to adopt: those that manifests name, or that a label selector matches. `inventory` finds those of
//! another tool.

use std::sync::Arc;

use serde_json::Value;

use super::object_selection::ObjectSelection;
use super::{FoundObjects, inventory};
use crate::cluster::discovery::KindLookup;
use crate::compare::ownership::LastAppliedTreatment;
use crate::error::Error;
use crate::manifest::desired::{self, MEMBER_VERBS};
use crate::manifest::{self, Manifests};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::list_targets::Reach;
use crate::model::live::Live;
use crate::model::resource::{Origin, Resource};
use crate::model::write_settings::Hooks;
use crate::plan::{MembershipKeepReason, MembershipSkip};
use crate::read::{self, Cluster, ListTargets, Selector, unknowable_kind};
use crate::session::adopt_move_disband::SetRead;
use crate::session::connect::find_resource_of_flag;
use crate::settings::{AdoptOptions, ObjectsToAdopt};

/// The kinds that `kubectl apply --prune` deletes without `--prune-allowlist` (kubectl 1.36,
/// `pkg/util/prune/prune.go`). Like kubectl, `adopt -l` lists the cluster-scoped kinds, even if it searches a single
/// namespace.
const PRUNED_BY_DEFAULT: [(&str, &str); 16] = [
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "ReplicationController"),
    ("", "Secret"),
    ("", "Service"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("networking.k8s.io", "Ingress"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "Namespace"),
    ("", "PersistentVolume"),
];

/// Finds the objects that the user has chosen.
pub(super) async fn find_objects(
    cluster: &mut Cluster,
    read: &SetRead,
    manifests: Manifests,
    options: &AdoptOptions,
) -> Result<FoundObjects, Error> {
    let concurrency = options.membership.writing.concurrency;
    match &options.choice {
        ObjectsToAdopt::Manifests(..) => {
            let desired = desired::resolve(manifests, read.named.context_for_manifests(cluster))?;
            let notes = manifest::notes_on_hooks_left_out(&desired.hooks, Hooks::Skipped);
            let objects = desired.members.into_iter().chain(desired.parent);
            let wanted: Vec<_> = objects.map(|member| (member.key, member.resource)).collect();
            let found = read_named_or_skip(cluster, wanted, ObjectSelection::Named, concurrency).await?;
            Ok(FoundObjects { notes, ..found })
        }
        ObjectsToAdopt::Labels {
            selector,
            kinds,
            reach,
        } => {
            let resources = find_resources_or_defaults(cluster, kinds)?;
            let namespace = match reach {
                Reach::Namespace => Some(cluster.namespace.clone()),
                Reach::Cluster => None,
            };
            let selection = ObjectSelection::Selected(options.membership.appliers.clone());
            find_labeled(cluster, resources, namespace, selector, selection, concurrency).await
        }
        ObjectsToAdopt::Inventory(reference) => {
            let new_owner = (!options.keep_field_ownership).then(|| {
                let manager = options.membership.writing.field_manager.clone();
                (
                    manager,
                    LastAppliedTreatment::for_tooling(&read.named.set.tooling),
                )
            });
            inventory::find_tracked(cluster, reference, new_owner, concurrency).await
        }
    }
}

/// Reads the objects with these keys.
pub(super) async fn read_named_or_skip(
    cluster: &Cluster,
    wanted: Vec<(ObjectKey, Arc<Resource>)>,
    selection: ObjectSelection,
    concurrency: usize,
) -> Result<FoundObjects, Error> {
    let candidates =
        read::read_metadata_of_each(&cluster.server, &wanted, concurrency, |object, resource| {
            Some(selection.to_candidate(object, Live::from_object(object, resource)?))
        });
    let candidates = candidates
        .await
        .map_err(|(key, error)| error.to_error_while_reading(&key))?;
    let mut found = FoundObjects::default();
    for ((key, resource), candidate) in wanted.into_iter().zip(candidates) {
        match candidate {
            Some(candidate) => found.candidates.push(candidate),
            None => found.missing.push(MembershipSkip {
                key,
                resource,
                uid: None,
                reason: match selection {
                    ObjectSelection::Named => MembershipKeepReason::NotFound,
                    ObjectSelection::Selected(_) | ObjectSelection::Tracked(_) => {
                        MembershipKeepReason::Missing
                    }
                },
            }),
        }
    }
    found.selection = selection;
    Ok(found)
}

/// Lists the objects of these resources that the selector `labels` matches. Namespaced resources are listed in
/// `namespace`, or in all namespaces if it is `None`.
pub(super) async fn find_labeled(
    cluster: &Cluster,
    resources: Vec<Arc<Resource>>,
    namespace: Option<String>,
    labels: &str,
    selection: ObjectSelection,
    concurrency: usize,
) -> Result<FoundObjects, Error> {
    let selector = Selector {
        labels: labels.to_owned(),
        accept: read::METADATA_LIST,
    };
    let pick = |object: &Value, resource: &Arc<Resource>| {
        Some(selection.to_candidate(object, Live::from_object(object, resource)?))
    };
    let server = &cluster.server;
    let listed = if namespace.is_some() {
        let targets = ListTargets {
            resources,
            namespaces: namespace.into_iter().collect(),
        };
        read::list_collections(server, &targets, &selector, concurrency, pick).await
    } else {
        read::list_in_all_namespaces(server, resources, &selector, concurrency, pick).await
    };
    let mut candidates = listed.map_err(|failure| read::failed_selection(failure, Some(labels)))?;
    candidates.sort_by(|one, other| one.live.key.cmp(&other.live.key));
    Ok(FoundObjects {
        candidates,
        selection,
        ..FoundObjects::default()
    })
}

/// Returns the resources of `--kinds`; without the flag, those of `kubectl apply --prune` that the server serves.
fn find_resources_or_defaults(cluster: &Cluster, kinds: &[String]) -> Result<Vec<Arc<Resource>>, Error> {
    let mut resources: Vec<Arc<Resource>> = Vec::new();
    if kinds.is_empty() {
        for (group, kind) in PRUNED_BY_DEFAULT {
            resources.extend(find_served(cluster, &GroupKind::new(group, kind))?);
        }
        return Ok(resources);
    }
    for kind in kinds {
        let resource = find_resource_of_flag(&cluster.discovery, "--kinds", kind)?;
        if let Some(verb) = find_missing_verb(resource) {
            return Err(Error::usage(
                format!(
                    "{} cannot be in a set: the server does not support {verb} for it",
                    resource.group_kind()
                ),
                "remove it from --kinds",
            ));
        }
        let is_new = resources
            .iter()
            .all(|known| known.group_kind() != resource.group_kind());
        if is_new {
            resources.push(Arc::new(resource.clone()));
        }
    }
    Ok(resources)
}

/// Finds the resource of a kind; `None` if the server does not serve it.
///
/// # Errors
///
/// Returns an error if discovery of the API group has failed, so that it is unknown whether the server serves the kind.
pub(super) fn find_served(cluster: &Cluster, kind: &GroupKind) -> Result<Option<Arc<Resource>>, Error> {
    match cluster.discovery.find_preferred(kind) {
        KindLookup::Found(resource) if resource.origin == Origin::Served => {
            Ok(Some(Arc::new(resource.clone())))
        }
        KindLookup::Found(_) | KindLookup::Absent => Ok(None),
        KindLookup::GroupFailed(failure) => Err(unknowable_kind(&kind.to_string(), failure)),
    }
}

/// Returns a verb that a resource needs for its objects to be members, and that this resource does not support.
pub(super) fn find_missing_verb(resource: &Resource) -> Option<&'static str> {
    MEMBER_VERBS.into_iter().find(|verb| !resource.supports(verb))
}
