//! Which namespaces exist, and which set each is a member of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use http::StatusCode;
use serde::Deserialize as _;

use super::Presence;
use super::list::{ListError, METADATA_LIST, Selector, list};
use super::members::Place;
use super::parent::{Fields, metadata};
use crate::apiserver::ApiServer;
use crate::discovery::{Origin, Resource, Scope};

/// From this many namespaces on, one LIST of all is cheaper than a GET for each.
const NAMESPACES_WORTH_A_LIST: usize = 4;

/// What is known of a namespace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceState {
    /// Its UID; `None` where the user may not read it.
    pub uid: Option<String>,
    /// The set that it is a member of.
    pub part_of: Option<String>,
    /// Whether it is being deleted, with everything in it.
    pub presence: Presence,
}

/// The state of each of `names` that exists.
///
/// A user who may not read namespaces is told that they all exist: the server checks
/// that again for each object, and most users in a namespace may not read namespaces.
pub async fn namespaces(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, NamespaceState>, (Place, ListError)> {
    let found = if names.len() < NAMESPACES_WORTH_A_LIST {
        get_each(server, names).await
    } else {
        list_all(server, names).await
    };
    match found {
        Err(error) if error.is_forbidden() => {
            Ok(names.iter().map(|name| ((*name).to_owned(), UNKNOWN)).collect())
        }
        found => found.map_err(|error| {
            let place = Place {
                resource: Arc::new(resource()),
                namespace: None,
            };
            (place, error)
        }),
    }
}

/// The names of all namespaces.
pub async fn namespace_names(server: &ApiServer) -> Result<Vec<String>, ListError> {
    list(server, &resource(), None, &everything(), |item| {
        Some(item.pointer("/metadata/name")?.as_str()?.to_owned())
    })
    .await
}

fn everything() -> Selector {
    Selector {
        labels: String::new(),
        accept: METADATA_LIST,
    }
}

const UNKNOWN: NamespaceState = NamespaceState {
    uid: None,
    part_of: None,
    presence: Presence::Present,
};

async fn get_each(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, NamespaceState>, ListError> {
    let resource = resource();
    let gets = names.iter().map(async |name| {
        let state = match metadata(server, &resource.path(None, Some(name))).await {
            Ok(fields) => fields.map(|fields| fields.namespace_state()),
            Err(error) if error.is(StatusCode::FORBIDDEN) => Some(UNKNOWN),
            Err(error) => return Err(ListError::Request(error)),
        };
        Ok(state.map(|state| ((*name).to_owned(), state)))
    });
    let found = try_join_all(gets).await?;
    Ok(found.into_iter().flatten().collect())
}

async fn list_all(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, NamespaceState>, ListError> {
    let (namespaces, everything) = (resource(), everything());
    let all = list(server, &namespaces, None, &everything, |item| {
        let name = item.pointer("/metadata/name")?.as_str()?;
        let fields = Fields::deserialize(&item["metadata"]).ok()?;
        names
            .contains(name)
            .then(|| (name.to_owned(), fields.namespace_state()))
    });
    Ok(all.await?.into_iter().collect())
}

fn resource() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        singular: "namespace".to_owned(),
        short_names: Vec::new(),
        scope: Scope::Cluster,
        verbs: Vec::new(),
        origin: Origin::Served,
    }
}
