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
const CONCURRENCY: usize = 16;

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
            // Such a user may still get each one: `rbac` prints the permissions to get the set's namespaces, not to
            // list.
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

/// The state of a namespace that the user may not read: it is assumed to exist, and to be no member of a set.
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
            Ok(fields) => fields.map(|fields| fields.to_namespace_state()),
            Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => Some(ASSUMED_PRESENT),
            Err(error) => return Err(ListError::Request(error)),
        };
        Ok(state.map(|state| ((*name).to_owned(), state)))
    });
    let gets = stream::iter(gets).buffer_unordered(CONCURRENCY);
    gets.try_filter_map(async |found| Ok(found)).try_collect().await
}

async fn list_all_and_keep_named(
    server: &ApiServer,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, NamespaceState>, ListError> {
    let resource = namespace_resource();
    let all = list(server, &resource, None, &EVERYTHING, |item| {
        let name = item.pointer("/metadata/name")?.as_str()?;
        let fields = ObjectMetadata::deserialize(&item["metadata"]).ok()?;
        names
            .contains(name)
            .then(|| (name.to_owned(), fields.to_namespace_state()))
    });
    Ok(all.await?.into_iter().collect())
}

fn namespace_resource() -> Resource {
    Resource::with_regular_names("", "v1", "Namespace", Scope::Cluster)
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "a server that is a function")]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    const HOME: &str = "/api/v1/namespaces/";

    /// A server for a user who may get `a` and `gone`, of which the latter is not there, and
    /// may list nothing.
    fn server() -> ApiServer {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let (code, body) = match request.uri().path().strip_prefix(HOME) {
                Some("a") => (200, json!({"metadata": {"name": "a", "uid": "of-a"}})),
                Some("gone") => (404, json!({"message": "not found", "details": {"name": "gone"}})),
                _ => (403, json!({"message": "forbidden"})),
            };
            let body = Body::from(body.to_string().into_bytes());
            let response = Response::builder().status(code).body(body);
            Ok::<_, Infallible>(response.expect("a valid response"))
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    #[test]
    fn metadata_with_nulls_can_be_read() {
        let nulls = json!({"name": null, "namespace": null, "uid": null, "resourceVersion": null, "labels": null,
            "annotations": null, "ownerReferences": null, "deletionTimestamp": null});
        let read = ObjectMetadata::deserialize(&nulls).expect("metadata");
        assert_eq!(read.to_namespace_state().owners, Vec::<String>::new());
    }

    #[tokio::test]
    async fn namespaces_that_cannot_be_listed_are_read_one_by_one() {
        for others in [&[][..], &["c", "d", "e"]] {
            let mut names = BTreeSet::from(["a", "b", "gone"]);
            names.extend(others);
            let found = read_namespaces(&server(), &names).await.expect("an answer");
            assert_eq!(found["a"].uid.as_deref(), Some("of-a"));
            assert_eq!(found["b"], ASSUMED_PRESENT);
            assert_eq!(found.len(), names.len() - 1, "{found:?}");
        }
    }
}
