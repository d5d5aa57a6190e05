//! One paged LIST, read to its end or not at all, and a watch from there.
//!
//! The caller chooses what is listed, and what is kept of the items.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::live::owners;
use super::objects::lacks_version;
use super::page::read_page;
use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiServer, Watch, query};
use crate::error::{Error, ErrorKind};
use crate::model::applyset::{ApplySetId, PART_OF_LABEL};
use crate::model::list_targets::ListTarget;
use crate::model::resource::Resource;

/// Limit of objects in the first page: the default of client-go's pager.
const FIRST_PAGE: usize = 500;
/// Limit of objects in later pages. For each page, an API server goes through all objects that are left
/// (`GetList` of its watch cache), so many small pages take it longer than few large ones
/// (docs/decisions/reading.md).
const LATER_PAGES: usize = 2_000;
/// Bytes that a page should not exceed: a page is held in memory as a whole, and so is one of
/// each list that is read at the same time.
const PAGE_BYTES: usize = 8 << 20;
/// Limit of restarts of a list whose continue token has expired.
const FRESH_STARTS: usize = 3;
/// Pages that one list may have: with `PAGE_BYTES` each, they hold more than the largest etcd (8 GiB), and a list that
/// never ends is given up within a minute or two.
const MOST_PAGES: usize = 1_200;
/// The time after the end of a watch until its connection counts as dead.
const GRACE: Duration = Duration::from_secs(30);

/// A label selector, and the form of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// In the syntax of the API, such as `a=b`.
    pub labels: String,
    /// `Accept` header: whole objects or their metadata.
    pub accept: &'static str,
}

/// Selects the metadata of all objects.
pub(super) static EVERYTHING: Selector = Selector {
    labels: String::new(),
    accept: METADATA_LIST,
};

impl Selector {
    /// Selects the objects with the label of a set.
    pub fn for_members(id: &ApplySetId, accept: &'static str) -> Self {
        Self::new(format!("{PART_OF_LABEL}={id}"), accept)
    }

    pub fn new(labels: impl Into<String>, accept: &'static str) -> Self {
        Self {
            labels: labels.into(),
            accept,
        }
    }
}

/// `Accept` header of a list of whole objects.
pub const WHOLE_OBJECTS: &str = "application/json";
/// `Accept` header of a list of metadata.
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A list that could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A request did not succeed.
    #[error("{}", .0.kind)]
    Request(#[from] ApiError),
    /// The list expired too often while it was read.
    #[error("{path}: the list expired {FRESH_STARTS} times while reading it")]
    KeepsExpiring {
        /// The path of the collection.
        path: String,
    },
    /// The pages of the server are invalid.
    #[error("{path}: invalid list: it {fault}")]
    Senseless {
        /// The path of the collection.
        path: String,
        fault: String,
    },
}

impl ListTarget {
    pub(super) fn new(resource: &Arc<Resource>, namespace: Option<&str>) -> Self {
        Self {
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
        }
    }
}

impl From<(ListTarget, ListError)> for Error {
    /// The error of a run that could not list a collection.
    fn from((place, error): (ListTarget, ListError)) -> Self {
        let kind = if error.is_forbidden() {
            ErrorKind::ListForbidden
        } else {
            ErrorKind::Cluster
        };
        let hint = match &error {
            ListError::Request(request) => request.hint(),
            ListError::KeepsExpiring { .. } | ListError::Senseless { .. } => {
                "run the same command again".to_owned()
            }
        };
        let (plural, namespace) = (&place.resource.plural, in_namespace(place.namespace.as_deref()));
        Self::new(kind, format!("{plural}{namespace}: cannot be listed: {error}")).with_hint(hint)
    }
}

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"))
}

impl ListError {
    /// Returns whether the server does not know the path: it serves the kind in another version by
    /// now, or not any more (`not_found`).
    pub(super) fn is_not_served(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::NOT_FOUND))
    }

    /// Returns whether it is about the cluster or the user rather than this collection: any other list
    /// would have failed, too.
    pub(super) fn is_of_the_cluster(&self) -> bool {
        let Self::Request(error) = self else {
            return false;
        };
        match &*error.kind {
            ApiErrorKind::Status(status) => [401, 429].contains(&status.code),
            ApiErrorKind::Connection { .. }
            | ApiErrorKind::Untrusted { .. }
            | ApiErrorKind::Credential(_)
            | ApiErrorKind::Timeout { .. }
            | ApiErrorKind::NotSent { .. }
            | ApiErrorKind::LeaseLost(_)
            | ApiErrorKind::TooLarge(_)
            | ApiErrorKind::Unreadable(_) => true,
        }
    }

    /// Returns whether the server itself has failed.
    pub(super) fn is_internal(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// Returns whether the server denied the list to this user.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::FORBIDDEN))
    }
}

/// Reads the collection of `resource` in `namespace` (`None`: all of the cluster), reducing each item
/// with `reduce`; items for which it returns `None` are left out.
pub(super) async fn list<T>(
    server: &ApiServer,
    resource: &Resource,
    namespace: Option<&str>,
    selector: &Selector,
    reduce: impl FnMut(&Value) -> Option<T>,
) -> Result<Vec<T>, ListError> {
    let listed = list_at_version(server, resource, namespace, selector, reduce).await;
    listed.map(|(found, _)| found)
}

/// The same with the resourceVersion of the list, from which a watch is complete.
pub async fn list_at_version<T>(
    server: &ApiServer,
    resource: &Resource,
    namespace: Option<&str>,
    selector: &Selector,
    mut reduce: impl FnMut(&Value) -> Option<T>,
) -> Result<(Vec<T>, String), ListError> {
    let path = resource.path(namespace, None);
    let mut fault = None;
    let mut reduce = |item: &Value| {
        fault = fault.or_else(|| fault_of(item, resource, namespace));
        reduce(item)
    };
    let mut most = LATER_PAGES;
    for _ in 0..FRESH_STARTS {
        let Some(found) = list_once(server, &path, selector, &mut most, &mut reduce).await? else {
            continue;
        };
        // The record forgets objects that are missing from a list.
        return match fault {
            Some(fault) => Err(senseless(path, fault)),
            None => Ok(found),
        };
    }
    Err(ListError::KeepsExpiring { path })
}

fn senseless(path: String, fault: &str) -> ListError {
    ListError::Senseless {
        path,
        fault: fault.to_owned(),
    }
}

/// Returns why an item cannot be one of the requested objects.
fn fault_of(item: &Value, resource: &Resource, namespace: Option<&str>) -> Option<&'static str> {
    let text = |pointer| item.pointer(pointer).and_then(Value::as_str);
    if text("/metadata/name").is_none_or(str::is_empty) {
        Some("has an item without a name")
    } else if lacks_version(item, resource) {
        Some("has an item that lacks a UID or a resourceVersion")
    } else if namespace.is_some() && text("/metadata/namespace") != namespace {
        Some("has an item of another namespace")
    } else if owners(&item["metadata"]).is_err() {
        Some("has an item whose owner references cannot be read")
    } else {
        None
    }
}

/// Reads all pages, of at most so many objects, or fewer if they are too large. `None` if the list expired
/// between two pages: the pages would be of two moments.
async fn list_once<T>(
    server: &ApiServer,
    path: &str,
    selector: &Selector,
    most: &mut usize,
    reduce: &mut impl FnMut(&Value) -> Option<T>,
) -> Result<Option<(Vec<T>, String)>, ListError> {
    let mut found = Vec::new();
    let mut token: Option<String> = None;
    let mut limit = FIRST_PAGE.min(*most);
    for _ in 0..MOST_PAGES {
        let query = page_query(selector, limit, token.as_deref());
        let reply = match server.get_list(&format!("{path}?{query}"), selector.accept).await {
            Ok(reply) => reply,
            Err(error) if token.is_some() && error.is(StatusCode::GONE) => return Ok(None),
            Err(error) if is_page_too_large(&error.kind, limit) => {
                limit = (limit / 4).max(1);
                *most = limit;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut items = 0;
        let page = read_page(&reply.body, &mut found, |item| {
            items += 1;
            reduce(item)
        })
        .map_err(|error| unreadable(path, &error))?;
        limit = next_limit(limit, reply.body.len(), items, *most);
        let next = page.continue_token.filter(|next| !next.is_empty());
        if next.is_none() {
            return Ok(Some((found, page.resource_version)));
        }
        if next == token {
            break;
        }
        token = next;
    }
    Err(senseless(path.to_owned(), "never ends"))
}

/// Returns how many objects the next page is asked for, after one of so many bytes and items that was
/// asked for `limit`; never more than `most`. Pages grow slowly, since large objects may be anywhere in a list.
fn next_limit(limit: usize, bytes: usize, items: usize, most: usize) -> usize {
    let bytes_per_item = (bytes / items.max(1)).max(1);
    let fitting = PAGE_BYTES / bytes_per_item;
    fitting.clamp(1, most).min(limit * 2)
}

/// Returns whether this error of a page may pass if fewer objects are asked for: large ones may come after
/// small ones, and a link may be slow.
fn is_page_too_large(error: &ApiErrorKind, limit: usize) -> bool {
    match error {
        ApiErrorKind::TooLarge(_) => limit > 1,
        ApiErrorKind::Timeout { .. } => limit > FIRST_PAGE,
        _ => false,
    }
}

fn unreadable(path: &str, error: &serde_json::Error) -> ListError {
    ListError::Senseless {
        path: path.to_owned(),
        fault: format!("cannot be read: {error}"),
    }
}

/// Reads the first page of the whole collection of `resource`; `None` if there are more.
pub(super) async fn first_page<T>(
    server: &ApiServer,
    resource: &Resource,
    selector: &Selector,
    mut reduce: impl FnMut(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>, ListError> {
    let path = resource.path(None, None);
    let query = page_query(selector, FIRST_PAGE, None);
    let reply = server
        .get_list(&format!("{path}?{query}"), selector.accept)
        .await?;
    let mut found = Vec::new();
    let mut fault = None;
    let page = read_page(&reply.body, &mut found, |item| {
        fault = fault.or_else(|| fault_of(item, resource, None));
        reduce(item)
    })
    .map_err(|error| unreadable(&path, &error))?;
    if let Some(fault) = fault {
        return Err(senseless(path, fault));
    }
    let is_last = page.continue_token.is_none_or(|token| token.is_empty());
    Ok(is_last.then_some(found))
}

fn page_query(selector: &Selector, limit: usize, token: Option<&str>) -> String {
    let limit = limit.to_string();
    let mut parameters = vec![("labelSelector", selector.labels.as_str()), ("limit", &limit)];
    parameters.extend(token.map(|token| ("continue", token)));
    query(&parameters)
}

/// Watches a collection from a resourceVersion on. The server ends the watch after `limit`, which
/// is rounded down to seconds.
pub async fn watch(
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

#[cfg(test)]
mod tests;
