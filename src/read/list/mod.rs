//! One paged LIST, read to its end or not at all.
//!
//! The caller chooses the collection, and picks what is kept of each item.

mod parse_page;

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::live::read_owners;
use super::single_objects::lacks_uid_or_version;
use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiServer, encode_query};
use crate::error::{Error, ErrorKind};
use crate::model::applyset::{ApplySetId, PART_OF_LABEL};
use crate::model::list_targets::ListTarget;
use crate::model::resource::Resource;
use parse_page::parse_page;

/// Limit of objects in the first page: the default of client-go's pager.
const FIRST_PAGE: usize = 500;
/// Limit of objects in later pages. For each page, an API server goes through all objects that are left
/// (`GetList` of its watch cache), so many small pages take it longer than few large ones
/// (docs/decisions/reading.md).
const LATER_PAGES: usize = 2_000;
/// Bytes that a page should not exceed: memory holds a whole page of each list that is read at the same time.
const PAGE_BYTES: usize = 8 << 20;
/// The number of attempts to read a list from its beginning: its continue token may expire on the way.
const MOST_STARTS: usize = 3;
/// Limit of pages of one list. With `PAGE_BYTES` each, they hold more than the largest etcd (8 GiB). If a broken server
/// never ends a list, the run gives up within a minute or two.
const MOST_PAGES: usize = 1_200;

/// A label selector, and the form of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The label selector in the syntax of the API, such as `a=b`; empty for all objects.
    pub labels: String,
    /// The `Accept` header, which asks for whole objects or for their metadata.
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

/// The reason why a list could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A request did not succeed.
    #[error("{}", .0.kind)]
    Request(#[from] ApiError),
    /// The server's pages break a rule of the API, or the list expired too often while it was read.
    #[error("{path}: invalid list: it {fault}")]
    Invalid {
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
            ListError::Invalid { .. } => "run the same command again".to_owned(),
        };
        let (plural, namespace) = (
            &place.resource.plural,
            describe_namespace(place.namespace.as_deref()),
        );
        Self::new(kind, format!("{plural}{namespace}: cannot be listed: {error}")).with_hint(hint)
    }
}

fn describe_namespace(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"))
}

impl ListError {
    /// Returns whether the server does not know the path: by now, it serves the kind only in another version, or not at
    /// all. `served_version` determines which.
    pub(super) fn is_not_served(&self) -> bool {
        matches!(self, Self::Request(error) if error.has_status_code(StatusCode::NOT_FOUND))
    }

    /// Returns whether the error is about the cluster or the user rather than about this collection, so that any other
    /// list would have failed, too.
    pub(super) fn is_same_for_every_list(&self) -> bool {
        let Self::Request(error) = self else {
            return false;
        };
        match &*error.kind {
            ApiErrorKind::Status(status) => [401, 429].contains(&status.code),
            _ => true,
        }
    }

    /// Returns whether the server itself has failed.
    pub(super) fn is_internal(&self) -> bool {
        matches!(self, Self::Request(error) if error.has_status_code(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// Returns whether the server denied the list to this user.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Request(error) if error.has_status_code(StatusCode::FORBIDDEN))
    }
}

/// Reads the collection of `resource` in `namespace`, or in the whole cluster for `None`. Keeps of each item
/// what `pick` returns, and nothing if that is `None`.
pub(super) async fn list<T>(
    server: &ApiServer,
    resource: &Resource,
    namespace: Option<&str>,
    selector: &Selector,
    mut pick: impl FnMut(&Value) -> Option<T>,
) -> Result<Vec<T>, ListError> {
    let path = resource.path(namespace, None);
    let mut fault = None;
    let mut pick = |item: &Value| {
        fault = fault.or_else(|| find_fault(item, resource, namespace));
        pick(item)
    };
    let mut max_page_items = LATER_PAGES;
    for _ in 0..MOST_STARTS {
        let Some(picked) =
            read_pages_unless_expired(server, &path, selector, &mut max_page_items, &mut pick).await?
        else {
            continue;
        };
        // Such a list fails as a whole. If only the faulty item were left out, an object would seem not to exist, and
        // the run might drop its kind or namespace from the record.
        return match fault {
            Some(fault) => Err(invalid_list(path, fault)),
            None => Ok(picked),
        };
    }
    let fault = format!("expired {MOST_STARTS} times while it was read");
    Err(invalid_list(path, fault))
}

fn invalid_list(path: String, fault: impl Into<String>) -> ListError {
    let fault = fault.into();
    ListError::Invalid { path, fault }
}

/// Returns why an item cannot be one of the requested objects.
fn find_fault(item: &Value, resource: &Resource, namespace: Option<&str>) -> Option<&'static str> {
    let text = |pointer| item.pointer(pointer).and_then(Value::as_str);
    if text("/metadata/name").is_none_or(str::is_empty) {
        Some("has an item without a name")
    } else if lacks_uid_or_version(item, resource) {
        Some("has an item that lacks a UID or a resourceVersion")
    } else if ["uid", "resourceVersion", "namespace", "deletionTimestamp"]
        .iter()
        .any(|field| !is_null_or_string(&item["metadata"][field]))
    {
        Some("has an item whose metadata cannot be read")
    } else if namespace.is_some() && text("/metadata/namespace") != namespace {
        Some("has an item of another namespace")
    } else if read_owners(&item["metadata"]).is_err() {
        Some("has an item whose owner references cannot be read")
    } else if ["labels", "annotations"]
        .iter()
        .any(|field| !is_null_or_string_map(&item["metadata"][field]))
    {
        Some("has an item whose labels or annotations cannot be read")
    } else {
        None
    }
}

fn is_null_or_string(value: &Value) -> bool {
    value.is_null() || value.is_string()
}

/// Returns whether labels or annotations are a map of texts, or null.
fn is_null_or_string_map(pairs: &Value) -> bool {
    pairs.is_null()
        || pairs
            .as_object()
            .is_some_and(|pairs| pairs.values().all(Value::is_string))
}

/// Reads all pages, of at most `max_page_items` objects each. Lowers that limit if a page turns out to be too large.
/// Returns `None` if the continue token expired: the remaining pages would be of a later state than the first ones.
async fn read_pages_unless_expired<T>(
    server: &ApiServer,
    path: &str,
    selector: &Selector,
    max_page_items: &mut usize,
    pick: &mut impl FnMut(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>, ListError> {
    let mut picked = Vec::new();
    let mut token: Option<String> = None;
    let mut limit = FIRST_PAGE.min(*max_page_items);
    for _ in 0..MOST_PAGES {
        let query = page_query(selector, limit, token.as_deref());
        let reply = match server.get_list(&format!("{path}?{query}"), selector.accept).await {
            Ok(reply) => reply,
            Err(error) if token.is_some() && error.has_status_code(StatusCode::GONE) => return Ok(None),
            Err(error) if may_fit_smaller_page(&error.kind, limit) => {
                limit = (limit / 4).max(1);
                *max_page_items = limit;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut items = 0;
        let page = parse_page(&reply.body, &mut picked, |item| {
            items += 1;
            pick(item)
        })
        .map_err(|error| invalid_list(path.to_owned(), format!("cannot be read: {error}")))?;
        limit = limit_for_next_page(limit, reply.body.len(), items, *max_page_items);
        let next = page.continue_token.filter(|next| !next.is_empty());
        if next.is_none() {
            return Ok(Some(picked));
        }
        // The server would send the same page again and again.
        if next == token {
            break;
        }
        token = next;
    }
    Err(invalid_list(path.to_owned(), "never ends"))
}

/// Returns how many objects to ask for in the next page, after a page of `bytes` bytes and `items` items for which
/// `limit` objects were asked for. At most doubles the limit, since large objects may be anywhere in a list.
fn limit_for_next_page(limit: usize, bytes: usize, items: usize, max_page_items: usize) -> usize {
    let bytes_per_item = (bytes / items.max(1)).max(1);
    let fitting = PAGE_BYTES / bytes_per_item;
    fitting.clamp(1, max_page_items).min(limit * 2)
}

/// Returns whether a page that failed with this error may succeed with fewer objects: large objects may come after
/// small ones, and a link may be slow. A page that timed out with the first, small limit is not tried again.
fn may_fit_smaller_page(error: &ApiErrorKind, limit: usize) -> bool {
    match error {
        ApiErrorKind::TooLarge(_) => limit > 1,
        ApiErrorKind::Timeout { .. } => limit > FIRST_PAGE,
        _ => false,
    }
}

fn page_query(selector: &Selector, limit: usize, token: Option<&str>) -> String {
    let limit = limit.to_string();
    let mut parameters = vec![("labelSelector", selector.labels.as_str()), ("limit", &limit)];
    parameters.extend(token.map(|token| ("continue", token)));
    encode_query(&parameters)
}

#[cfg(test)]
mod tests;
