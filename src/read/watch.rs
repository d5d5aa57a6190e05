//! Lists and watches one collection.

use std::time::Duration;

use serde_json::Value;

use super::list::{ListError, Selector, list_at_version};
use crate::cluster::apiserver::{ApiError, ApiServer, Watch, query};
use crate::model::list_targets::ListTarget;

/// The time after the end of a watch until its connection counts as dead.
const GRACE: Duration = Duration::from_secs(30);

/// Lists a collection, and returns its resourceVersion: a watch from there is complete.
pub async fn objects_at_version<T>(
    server: &ApiServer,
    place: &ListTarget,
    selector: &Selector,
    reduce: impl FnMut(&Value) -> Option<T>,
) -> Result<(Vec<T>, String), ListError> {
    let namespace = place.namespace.as_deref();
    list_at_version(server, &place.resource, namespace, selector, reduce).await
}

/// Watches a collection from a resourceVersion on. The server ends the watch after `limit`, which
/// is rounded down to seconds.
pub async fn changes(
    server: &ApiServer,
    place: &ListTarget,
    selector: &Selector,
    resource_version: &str,
    limit: Duration,
) -> Result<Watch, ApiError> {
    let seconds = limit.as_secs().to_string();
    let parameters = [
        ("watch", "true"),
        ("labelSelector", selector.labels.as_str()),
        ("resourceVersion", resource_version),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &seconds),
    ];
    let path = place.resource.path(place.namespace.as_deref(), None);
    let path = format!("{path}?{}", query(&parameters));
    server.watch(&path, selector.accept, limit + GRACE).await
}
