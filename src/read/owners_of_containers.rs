//! Reads the owners of namespaces and CRDs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;

use super::list::ListError;
use super::namespaces::read_namespaces;
use super::parent::{crd_path, read_metadata_at};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::model::containers::{Containers, NamespaceState, Owners};
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTarget;
use crate::model::resource::Resource;

/// Limit of concurrent GETs.
const CONCURRENCY: usize = 16;

/// Reads the owners of the containers that exist. The states of namespaces in `known_namespaces` were read before, and
/// are not read again.
pub async fn read_owners_of_namespaces_and_crds(
    server: &ApiServer,
    containers: &Containers,
    known_namespaces: &BTreeMap<String, NamespaceState>,
) -> Result<BTreeMap<ObjectKey, Owners>, (ListTarget, ListError)> {
    let names = &containers.namespaces;
    let unread = names.iter().filter(|name| !known_namespaces.contains_key(*name));
    let states = read_namespaces(server, &unread.map(String::as_str).collect()).await?;
    let known = known_namespaces.iter().filter(|(name, _)| names.contains(*name));
    let mut owners: BTreeMap<ObjectKey, Owners> = states
        .iter()
        .chain(known)
        .map(|(name, state)| (Containers::namespace_key(name), Owners::from_namespace(state)))
        .collect();
    let definitions = containers.definitions.iter().map(async |(key, resource)| {
        let found = read_crd_owners(server, resource).await?;
        Ok::<_, ApiError>(found.map(|owners| (key.clone(), owners)))
    });
    let definitions: Vec<Option<_>> = stream::iter(definitions)
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
        .map_err(|error| {
            let definitions = Arc::new(Resource::crd_resource());
            (ListTarget::new(&definitions, None), ListError::Request(error))
        })?;
    owners.extend(definitions.into_iter().flatten());
    Ok(owners)
}

/// Reads the owners of the definition of a resource; `None` if it has no definition.
async fn read_crd_owners(server: &ApiServer, resource: &Resource) -> Result<Option<Owners>, ApiError> {
    match read_metadata_at(server, &crd_path(resource)).await {
        Ok(fields) => Ok(fields.map(|fields| Owners::Known(fields.owner_uids()))),
        // A 404 that does not name the definition proves nothing: a proxy may have cut off the answer.
        Err(error)
            if error.has_status_code(StatusCode::FORBIDDEN)
                || error.has_status_code(StatusCode::NOT_FOUND) =>
        {
            Ok(Some(Owners::Forbidden))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::resource::Scope;

    /// A server that gives this answer to all requests.
    fn answering(code: u16, body: &Value) -> ApiServer {
        let body = body.to_string();
        let service = tower::service_fn(move |_: Request<Body>| {
            let body = Body::from(body.clone().into_bytes());
            let response = Response::builder().status(code).body(body);
            async move { Ok::<_, Infallible>(response.expect("a valid response")) }
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    #[tokio::test]
    async fn only_a_404_that_names_the_definition_proves_that_it_has_no_owners() {
        let resource = Resource::with_regular_names("example.com", "v1", "Widget", Scope::Cluster);
        let owned = json!({"metadata": {"name": "widgets.example.com", "uid": "u", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Any", "name": "any", "uid": "owner"},
        ]}});
        let missing = json!({"message": "not found", "details": {"name": "widgets.example.com"}});
        let none = json!({"message": "no"});
        for (code, body, owners) in [
            (200, &owned, Some(Owners::Known(vec!["owner".to_owned()]))),
            (404, &missing, None),
            (404, &none, Some(Owners::Forbidden)),
            (403, &none, Some(Owners::Forbidden)),
        ] {
            let read = read_crd_owners(&answering(code, body), &resource).await;
            assert_eq!(read.expect("an answer"), owners, "{code} {body}");
        }
    }
}
