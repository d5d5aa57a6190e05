//! The owners of namespaces and definitions that hold desired or kept objects.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::model::containers::{Containers, NamespaceState, Owners};
use crate::model::identity::ObjectKey;
use crate::read::owners_of_containers;

/// Reads the owners, except those of namespaces that were read before.
pub(super) async fn owners(
    server: &ApiServer,
    mut containers: Containers,
    namespaces: &BTreeMap<String, NamespaceState>,
) -> Result<BTreeMap<ObjectKey, Owners>, Error> {
    let known: BTreeSet<String>;
    (known, containers.namespaces) = containers
        .namespaces
        .into_iter()
        .partition(|name| namespaces.contains_key(name));
    let mut owners = owners_of_containers(server, &containers).await?;
    owners.extend(known.iter().filter_map(|name| {
        let state = namespaces.get(name)?;
        Some((Containers::namespace_key(name), Owners::from_namespace(state)))
    }));
    Ok(owners)
}
