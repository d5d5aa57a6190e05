//! Finds out which of the objects with given names exist, whatever their labels.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::list::{EVERYTHING, ListError};
use super::served_version::list_in_served_version;
use super::single_objects::read_metadata;
use crate::cluster::apiserver::ApiServer;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::list_targets::ListTarget;
use crate::model::live::Live;
use crate::model::resource::Resource;

/// From this many objects of one kind and namespace on, a LIST is cheaper than a GET of each.
const OBJECTS_WORTH_A_LIST: usize = 16;

/// A request for one or several objects of one kind in one namespace.
enum ObjectRequest {
    /// A GET of the metadata of one object.
    Object(ObjectKey, Arc<Resource>),
    /// A paged LIST of metadata, of which only these objects are kept.
    Collection(ListTarget, BTreeSet<ObjectKey>),
}

/// Reads the metadata of those of the objects `wanted` that exist, `concurrency` requests at a time.
///
/// # Errors
///
/// A request failed. An object that cannot be read does not count as absent.
pub async fn find_existing(
    server: &ApiServer,
    wanted: &[(ObjectKey, Arc<Resource>)],
    concurrency: usize,
) -> Result<Vec<Live>, (ListTarget, ListError)> {
    let requests = plan_requests(wanted)
        .into_iter()
        .map(|request| request.send(server));
    let found: Vec<Vec<Live>> = stream::iter(requests)
        .buffer_unordered(concurrency)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

fn plan_requests(wanted: &[(ObjectKey, Arc<Resource>)]) -> Vec<ObjectRequest> {
    type Objects = (Arc<Resource>, BTreeSet<ObjectKey>);
    let mut places: BTreeMap<(&GroupKind, Option<&String>), Objects> = BTreeMap::new();
    for (key, resource) in wanted {
        let place = places.entry((&key.group_kind, key.namespace.as_ref()));
        let (_, keys) = place.or_insert_with(|| (Arc::clone(resource), BTreeSet::new()));
        keys.insert(key.clone());
    }
    let mut requests = Vec::new();
    for ((_, namespace), (resource, keys)) in places {
        if keys.len() < OBJECTS_WORTH_A_LIST {
            for key in keys {
                requests.push(ObjectRequest::Object(key, Arc::clone(&resource)));
            }
        } else {
            let namespace = namespace.cloned();
            let target = ListTarget { resource, namespace };
            requests.push(ObjectRequest::Collection(target, keys));
        }
    }
    requests
}

impl ObjectRequest {
    async fn send(self, server: &ApiServer) -> Result<Vec<Live>, (ListTarget, ListError)> {
        match self {
            Self::Object(key, resource) => match read_metadata(server, &resource, &key).await {
                Ok(object) => Ok(object
                    .and_then(|object| Live::from_object(&object, &resource))
                    .into_iter()
                    .collect()),
                Err(error) => {
                    let namespace = key.namespace;
                    Err((ListTarget { resource, namespace }, error.into()))
                }
            },
            Self::Collection(place, keys) => {
                let listed = list_in_served_version(server, &place, &EVERYTHING, |item, resource| {
                    Live::from_object(item, resource).filter(|live| keys.contains(&live.key))
                });
                listed.await.map_err(|error| (place, error))
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::time::Duration;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::resource::Scope;

    fn item(namespace: &str, name: &str) -> Value {
        json!({"metadata": {
            "name": name, "namespace": namespace, "uid": name, "resourceVersion": "1",
        }})
    }

    /// Answers for a namespace with the objects `1` to `1000` on pages of 500, and with `code` for
    /// any other object.
    fn answer(path: &str, code: StatusCode) -> (StatusCode, Value) {
        let namespace = path.split('/').nth(4).unwrap_or_default();
        let names = |range: std::ops::RangeInclusive<usize>| -> Vec<Value> {
            range.map(|number| item(namespace, &number.to_string())).collect()
        };
        let list = |items, next| {
            let metadata = json!({"resourceVersion": "1", "continue": next});
            (StatusCode::OK, json!({"items": items, "metadata": metadata}))
        };
        match path.rsplit_once('/').map(|(_, last)| last) {
            Some(last) if last.contains("continue=") => list(names(501..=1000), ""),
            Some(last) if last.contains('?') => list(names(1..=500), "more"),
            Some(name) if name.parse::<usize>().is_ok_and(|number| number <= 1000) => {
                (StatusCode::OK, item(namespace, name))
            }
            name => (
                code,
                json!({"kind": "Status", "code": code.as_u16(), "details": {"name": name, "kind": "configmaps"}}),
            ),
        }
    }

    /// The names that are found of `names` in namespace `shop`, and the number of requests.
    async fn look(names: &[String], code: StatusCode) -> (Result<Vec<String>, ()>, usize) {
        let requests: &'static Mutex<usize> = Box::leak(Box::default());
        let service = tower::service_fn(move |request: Request<Body>| {
            *requests.lock().expect("no panic") += 1;
            let path = request.uri().path_and_query().map_or("", |path| path.as_str());
            let (status, body) = answer(path, code);
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = status;
            async move { Ok::<_, Infallible>(response) }
        });
        let client = kube::Client::new(service, "default");
        let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
        let resource = Arc::new(Resource::with_regular_names(
            "",
            "v1",
            "ConfigMap",
            Scope::Namespaced,
        ));
        let wanted = names.iter().map(|name| {
            let key = ObjectKey {
                group_kind: resource.group_kind(),
                namespace: Some("shop".to_owned()),
                name: name.clone(),
            };
            (key, Arc::clone(&resource))
        });
        let wanted: Vec<_> = wanted.collect();
        let found = find_existing(&server, &wanted, 4).await.map_err(|_| ());
        let names = found.map(|found| {
            let numbers = found.iter().filter_map(|live| live.key.name.parse().ok());
            let numbers: BTreeSet<usize> = numbers.collect();
            numbers.iter().map(ToString::to_string).collect()
        });
        let requests = *requests.lock().expect("no panic");
        (names, requests)
    }

    #[tokio::test]
    async fn few_objects_are_read_one_by_one_and_many_are_listed() {
        let names =
            |range: std::ops::Range<usize>| range.map(|number| number.to_string()).collect::<Vec<_>>();
        let few = names(999..1003);
        let found = look(&few, StatusCode::NOT_FOUND).await;
        assert_eq!(found, (Ok(names(999..1001)), 4));
        let many = names(491..1100);
        let found = look(&many, StatusCode::NOT_FOUND).await;
        assert_eq!(found, (Ok(names(491..1001)), 2));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_not_taken_for_absent() {
        let (found, _) = look(&["x".to_owned()], StatusCode::FORBIDDEN).await;
        assert_eq!(found, Err(()));
    }
}
