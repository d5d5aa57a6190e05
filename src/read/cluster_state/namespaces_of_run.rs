//! The namespaces of a run: those of the manifests and of the parent.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::apiserver::ApiServer;
use crate::manifest::desired::Desired;
use crate::model::containers::NamespaceState;
use crate::model::live::Presence;
use crate::model::set::ParentObject;
use crate::plan::Refusal;
use crate::read::error::{MissingNamespace, ParentError};
use crate::read::{NamedSet, ReadError};

/// Reads the namespaces of the manifests and of the parent.
pub(super) async fn read(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
) -> Result<BTreeMap<String, NamespaceState>, ReadError> {
    let wanted = desired
        .members
        .iter()
        .filter_map(|member| member.key.namespace.as_deref());
    let names = wanted.chain(named.set.parent.namespace.as_deref()).collect();
    named.read_namespaces(server, &names).await
}

/// Refuses a missing namespace of a parent that does not exist.
pub(super) async fn check_parents(server: &ApiServer, named: &NamedSet) -> Result<(), ReadError> {
    let namespaces = read(server, named, &Desired::default()).await?;
    match &named.set.parent.namespace {
        Some(namespace) if !namespaces.contains_key(namespace) => {
            Err(ReadError::MissingNamespaces(vec![MissingNamespace {
                namespace: namespace.clone(),
                wanted_by: None,
            }]))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses a custom resource as the parent that neither exists nor is among the manifests: its content
/// is unknown.
pub(super) fn check_custom_parent(
    named: &NamedSet,
    parent: Option<&ParentObject>,
    desired: &Desired,
) -> Result<(), ParentError> {
    let is_plain = named.resource.group.is_empty();
    if is_plain || parent.is_some() || desired.parent.is_some() {
        return Ok(());
    }
    let parent = named.set.parent.clone();
    let kind = named.resource.kind.clone();
    Err(ParentError::CustomResourceMissing { parent, kind })
}

/// Refuses namespaces that neither exist nor are among the manifests, and a parent in a namespace that
/// is being deleted.
pub(super) fn check(
    named: &NamedSet,
    desired: &Desired,
    namespaces: &BTreeMap<String, NamespaceState>,
) -> Result<(), ReadError> {
    let parent_namespace = named.set.parent.namespace.as_deref();
    if let Some(name) = parent_namespace
        && namespaces
            .get(name)
            .is_some_and(|state| state.presence == Presence::Terminating)
    {
        let namespace = name.to_owned();
        return Err(ReadError::Refused(vec![Refusal::ParentNamespaceTerminating {
            namespace,
        }]));
    }
    let coming: BTreeSet<&str> = desired.namespaces().collect();
    let is_missing = |namespace: &&str| !namespaces.contains_key(*namespace) && !coming.contains(namespace);
    let mut wanted: BTreeMap<&str, _> = BTreeMap::new();
    for member in &desired.members {
        if let Some(namespace) = member.key.namespace.as_deref().filter(is_missing) {
            wanted
                .entry(namespace)
                .or_insert_with(|| Some((member.position.clone(), member.key.clone())));
        }
    }
    if let Some(name) = parent_namespace.filter(is_missing) {
        wanted.insert(name, None);
    }
    let missing: Vec<MissingNamespace> = wanted
        .into_iter()
        .map(|(namespace, wanted_by)| MissingNamespace {
            namespace: namespace.to_owned(),
            wanted_by,
        })
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(ReadError::MissingNamespaces(missing))
    }
}
