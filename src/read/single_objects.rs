//! Reads single objects by name.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use serde_json::Value;

use super::list::{ListError, WHOLE_OBJECTS};
use super::live::read_owners;
use super::parent::METADATA;
use super::served_version::is_object_gone;
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTarget;
use crate::model::live::Live;
use crate::model::resource::{Origin, Resource};

/// Reads the metadata of each of the objects `wanted`, `concurrency` at a time, and keeps of it what `pick` returns.
/// The results have the order of `wanted`, with `None` for an object that does not exist. An answer about another
/// object is an error.
pub async fn read_metadata_of_each<T>(
    server: &ApiServer,
    wanted: &[(ObjectKey, Arc<Resource>)],
    concurrency: usize,
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<Option<T>>, (ObjectKey, ApiError)> {
    let pick = &pick;
    let reads = wanted.iter().map(async |(key, resource)| {
        if resource.origin == Origin::NotYetServed {
            return Ok(None);
        }
        let object = read(server, key, resource, METADATA)
            .await
            .map_err(|error| (key.clone(), error))?;
        Ok(object.and_then(|object| pick(&object, resource)))
    });
    stream::iter(reads).buffered(concurrency).try_collect().await
}

/// Reads the metadata of those of the objects `wanted` that exist, whatever their labels, `concurrency` at a time.
///
/// # Errors
///
/// A request failed. An object that cannot be read does not count as absent.
pub async fn find_existing(
    server: &ApiServer,
    wanted: &[(ObjectKey, Arc<Resource>)],
    concurrency: usize,
) -> Result<Vec<Live>, (ListTarget, ListError)> {
    let reads = wanted.iter().map(async |(key, resource)| {
        let object = read_metadata(server, resource, key)
            .await
            .map_err(|error| (ListTarget::new(resource, key.namespace.as_deref()), error.into()))?;
        Ok(object.and_then(|object| Live::from_object(&object, resource)))
    });
    let found: Vec<Option<Live>> = stream::iter(reads).buffered(concurrency).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// Reads an object as a whole; `None` if it does not exist. An answer about another object is
/// an error.
pub async fn read_object(
    server: &ApiServer,
    resource: &Resource,
    key: &ObjectKey,
) -> Result<Option<Value>, ApiError> {
    read(server, key, resource, WHOLE_OBJECTS).await
}

/// Reads the metadata of an object; `None` if it does not exist. An answer about another
/// object is an error.
pub async fn read_metadata(
    server: &ApiServer,
    resource: &Resource,
    key: &ObjectKey,
) -> Result<Option<Value>, ApiError> {
    read(server, key, resource, METADATA).await
}

/// Reads an object as `accept` says; `None` if it does not exist. An answer about another
/// object is an error.
pub(super) async fn read(
    server: &ApiServer,
    key: &ObjectKey,
    resource: &Resource,
    accept: &str,
) -> Result<Option<Value>, ApiError> {
    let path = resource.path_of(key);
    let mut reply = server.get(&path, accept).await;
    // Reads again at once: if a proxy has cut off the body of an answer, a 404 for a missing object looks like this,
    // too.
    if let Err(error) = &reply
        && error.has_status_code(StatusCode::NOT_FOUND)
        && !error.is_missing_object()
    {
        reply = server.get(&path, accept).await;
    }
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) if is_object_gone(server, resource, &error).await? => return Ok(None),
        Err(error) => return Err(error),
    };
    match reply.json() {
        Ok(object) if has_name_and_namespace_of(&object, key) => match read_owners(&object["metadata"]) {
            Ok(_) if lacks_uid_or_version(&object, resource) => {
                let reason = "it lacks a UID or a resourceVersion".to_owned();
                Err(unreadable(resource, key, reason))
            }
            Ok(_) => Ok(Some(object)),
            Err(error) => {
                let reason = format!("its owner references cannot be read: {error}");
                Err(unreadable(resource, key, reason))
            }
        },
        Ok(_) => Err(unreadable(resource, key, format!("it is not {key}"))),
        Err(error) => Err(unreadable(resource, key, error.to_string())),
    }
}

/// The error for an answer about this object without its content.
pub(super) fn unreadable(resource: &Resource, key: &ObjectKey, reason: String) -> ApiError {
    ApiError::for_invalid_answer(resource.path_of(key), reason)
}

/// Returns whether the object has this name, in this namespace.
fn has_name_and_namespace_of(object: &Value, key: &ObjectKey) -> bool {
    let metadata = &object["metadata"];
    metadata["name"].as_str() == Some(&key.name) && metadata["namespace"].as_str() == key.namespace.as_deref()
}

/// Returns whether an object of a deletable kind lacks the UID or the resourceVersion, which a delete sends as
/// preconditions. Objects that cannot be deleted, such as the metrics of Pods, may lack a UID.
pub(super) fn lacks_uid_or_version(object: &Value, resource: &Resource) -> bool {
    resource.supports("delete")
        && ["uid", "resourceVersion"]
            .iter()
            .any(|field| object["metadata"][field].as_str().is_none_or(str::is_empty))
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::model::identity::GroupKind;
    use crate::model::resource::Scope;
    use crate::plan::fixtures;

    /// A server that gives this answer to all requests.
    fn answering(object: &Value) -> ApiServer {
        let body = object.to_string();
        let service = tower::service_fn(move |_: Request<Body>| {
            let body = Body::from(body.clone().into_bytes());
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    #[tokio::test]
    async fn an_answer_that_does_not_describe_the_object_is_an_error() {
        let resource = Resource::with_regular_names("", "v1", "ConfigMap", Scope::Namespaced);
        let key = ObjectKey {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let table = [
            (json!({"metadata": {"name": "web", "namespace": "shop"}}), true),
            (
                json!({"metadata": {"name": "web", "namespace": "kube-system"}}),
                false,
            ),
            (json!({"metadata": {"name": "web"}}), false),
            (
                json!({"metadata": {"name": "impostor", "namespace": "shop"}}),
                false,
            ),
            (json!({"kind": "ConfigMap"}), false),
            (json!([]), false),
            (
                json!({"metadata": {"name": "web", "namespace": "shop", "ownerReferences": [{"name": "a"}]}}),
                false,
            ),
        ];
        for (answer, is_it) in table {
            let server = answering(&answer);
            let read = read_object(&server, &resource, &key).await;
            assert_eq!(read.is_ok_and(|read| read.is_some()), is_it, "{answer}");
            // What cannot be read is not taken for absent.
            let wanted = [(key.clone(), Arc::new(resource.clone()))];
            assert_eq!(
                find_existing(&server, &wanted, 4).await.is_ok(),
                is_it,
                "{answer}"
            );
        }
        // An object that can be deleted has both. Without them, it must not count as absent.
        let deletable = fixtures::resource("ConfigMap", Scope::Namespaced);
        for (uid, version, is_it) in [
            (None, Some("1"), false),
            (Some("u"), None, false),
            (Some("u"), Some("1"), true),
        ] {
            let answer = json!({"metadata": {
                "name": "web", "namespace": "shop", "uid": uid, "resourceVersion": version,
            }});
            let read = read_object(&answering(&answer), &deletable, &key).await;
            assert_eq!(read.is_ok_and(|read| read.is_some()), is_it, "{answer}");
        }
    }
}
