//! Reads which namespaces exist, and which set each is a member of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use serde::Deserialize as _;

use super::list::{EVERYTHING, ListError, list};
use super::parent::{ObjectMetadata, read_metadata_at};
use crate::cluster::apiserver::ApiServer;
use crate::model::containers::NamespaceState;
use crate::model::list_targets::ListTarget;
use crate::model::live::Presence;
use crate::model::resource::{Resource, Scope};

/// From this many namespaces on, one LIST of all namespaces is cheaper than a GET for each.
const NAMESPACES_WORTH_A_LIST: usize = 4;
/// Limit of concurrent GETs.
const MAX_CONCURRENT_GETS: usize = 16;

/// Reads the state of each of these namespaces that exists.
///
/// A namespace that the user may not read is assumed to exist, because many users who may write into a namespace may
/// not read it. If it does not exist, the server refuses the objects in it.
pub async fn read_namespaces(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, NamespaceState>, (ListTarget, ListError)> {
    let found = if names.len() < NAMESPACES_WORTH_A_LIST {
        get_each_or_assume_present(server, names).await
    } else {
        match list_all_and_keep_named(server, names).await {
            // The permissions that `rbac` prints allow to get the namespaces of the set, and not to list all.
            Err(error) if error.is_forbidden() => get_each_or_assume_present(server, names).await,
            found => found,
        }
    };
    found.map_err(|error| (ListTarget::new(&Arc::new(namespace_resource()), None), error))
}

/// Lists the names of all namespaces.
pub async fn list_namespace_names(server: &ApiServer) -> Result<Vec<String>, ListError> {
    list(server, &namespace_resource(), None, &EVERYTHING, |item| {
        Some(item.pointer("/metadata/name")?.as_str()?.to_owned())
    })
    .await
}

/// The state of a namespace that the user may not read: it is assumed to exist, and not to be a member of a set.
const ASSUMED_PRESENT: NamespaceState = NamespaceState {
    uid: None,
    part_of: None,
    presence: Presence::Present,
    owners: Vec::new(),
};

async fn get_each_or_assume_present(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, NamespaceState>, ListError> {
    let resource = namespace_resource();
    let gets = names.iter().map(async |name| {
        let state = match read_metadata_at(server, &resource.path(None, Some(name))).await {
            Ok(metadata) => metadata.map(|metadata| metadata.to_namespace_state()),
            Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => Some(ASSUMED_PRESENT),
            Err(error) => return Err(ListError::Request(error)),
        };
        Ok(state.map(|state| ((*name).to_owned(), state)))
    });
    let gets = stream::iter(gets).buffer_unordered(MAX_CONCURRENT_GETS);
    // Leaves out the namespaces that do not exist.
    gets.try_filter_map(async |found| Ok(found)).try_collect().await
}

async fn list_all_and_keep_named(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, NamespaceState>, ListError> {
    let resource = namespace_resource();
    let all = list(server, &resource, None, &EVERYTHING, |item| {
        let name = item.pointer("/metadata/name")?.as_str()?;
        // `list` fails if an item has metadata that cannot be read, so no namespace is lost here.
        let metadata = ObjectMetadata::deserialize(&item["metadata"]).ok()?;
        names
            .contains(name)
            .then(|| (name.to_owned(), metadata.to_namespace_state()))
    });
    Ok(all.await?.into_iter().collect())
}

fn namespace_resource() -> Resource {
    Resource::with_regular_names("", "v1", "Namespace", Scope::Cluster)
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

    /// A server that answers a request by its path.
    fn server(answer: impl Fn(&str) -> (u16, Value) + Send + 'static) -> ApiServer {
        let service = tower::service_fn(move |request: Request<Body>| {
            let (code, body) = answer(request.uri().path());
            let body = Body::from(body.to_string().into_bytes());
            let response = Response::builder().status(code).body(body);
            async move { Ok::<_, Infallible>(response.expect("a valid response")) }
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    #[tokio::test]
    async fn namespaces_that_cannot_be_listed_are_read_one_by_one() {
        let server = server(|path| match path {
            "/api/v1/namespaces/a" => (200, json!({"metadata": {"name": "a", "uid": "of-a"}})),
            "/api/v1/namespaces/gone" => (404, json!({"message": "not found", "details": {"name": "gone"}})),
            _ => (403, json!({"message": "forbidden"})),
        });
        for others in [&[][..], &["c", "d", "e"]] {
            let mut names = BTreeSet::from(["a", "b", "gone"]);
            names.extend(others);
            let found = read_namespaces(&server, &names).await.expect("an answer");
            assert_eq!(found["a"].uid.as_deref(), Some("of-a"));
            assert_eq!(found["b"], ASSUMED_PRESENT);
            assert_eq!(found.len(), names.len() - 1, "{found:?}");
        }
    }

    #[tokio::test]
    async fn a_namespace_with_unreadable_metadata_does_not_seem_absent() {
        let names = BTreeSet::from(["a", "b", "c", "d"]);
        for (field, unreadable) in [("uid", json!(1)), ("deletionTimestamp", json!(1))] {
            let server = server(move |_| {
                let mut item = json!({"metadata": {"name": "a", "uid": "of-a", "resourceVersion": "1"}});
                item["metadata"][field] = unreadable.clone();
                (200, json!({"metadata": {}, "items": [item]}))
            });
            let found = read_namespaces(&server, &names).await;
            assert!(
                matches!(found, Err((_, ListError::Invalid { .. }))),
                "{field}: {found:?}"
            );
        }
    }
}
