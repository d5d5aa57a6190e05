//! One collection now, and what changes in it from then on.

use std::time::Duration;

use serde_json::Value;

use super::list::{ListError, Selector, list_at_version};
use super::members::Place;
use crate::apiserver::{ApiError, ApiServer, Watch, query};

/// After this many seconds the server ends a watch, and it is begun anew.
const LONGEST_WATCH: u64 = 240;
/// What may go by after that before the connection is taken for dead.
const GRACE: u64 = 30;

/// Lists a collection, and says at which resourceVersion: a watch from there misses nothing.
pub async fn objects_at_version<T>(
    server: &ApiServer,
    place: &Place,
    selector: &Selector,
    reduce: impl FnMut(&Value) -> Option<T>,
) -> Result<(Vec<T>, String), ListError> {
    let namespace = place.namespace.as_deref();
    list_at_version(server, &place.resource, namespace, selector, reduce).await
}

/// Watches a collection from a resourceVersion on.
pub async fn changes(
    server: &ApiServer,
    place: &Place,
    selector: &Selector,
    resource_version: &str,
) -> Result<Watch, ApiError> {
    let seconds = LONGEST_WATCH.to_string();
    let parameters = [
        ("watch", "true"),
        ("labelSelector", selector.labels.as_str()),
        ("resourceVersion", resource_version),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &seconds),
    ];
    let path = place.resource.path(place.namespace.as_deref(), None);
    let silence = Duration::from_secs(LONGEST_WATCH + GRACE);
    server
        .watch(&format!("{path}?{}", query(&parameters)), silence)
        .await
}
