//! One paged LIST, read to its end or not at all.
//!
//! What is listed, and what becomes of the items, is the caller's business.

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::apiserver::{ApiError, ApiServer, query};
use crate::discovery::Resource;

/// Objects asked for in one page: the default of client-go's pager.
const PAGE_SIZE: usize = 500;
/// How often a list is started afresh when its continue token has expired.
const FRESH_STARTS: usize = 3;
/// Pages that one list may have: no cluster holds fifty million objects of a kind.
const MOST_PAGES: usize = 100_000;

/// A label selector, and how much of each object is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// In the syntax of the API, such as `a=b`.
    pub labels: String,
    /// `Accept` header: whole objects or their metadata.
    pub accept: &'static str,
}

/// `Accept` header of a list of whole objects.
pub(crate) const WHOLE_OBJECTS: &str = "application/json";
/// `Accept` header of a list of metadata.
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A list that could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A request did not succeed.
    #[error("{}", .0.kind)]
    Request(#[from] ApiError),
    /// The list expired again and again while it was read.
    #[error("the list {path} expired {FRESH_STARTS} times while it was read")]
    KeepsExpiring {
        /// The path of the collection.
        path: String,
    },
    /// The server's pages lead nowhere.
    #[error("the server answers {path} with a list that {fault}")]
    Senseless {
        /// The path of the collection.
        path: String,
        /// What is wrong with it.
        fault: String,
    },
}

impl ListError {
    /// Whether the server serves the resource no more: its definition was deleted since
    /// discovery, and all its objects with it.
    pub fn is_not_served(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::NOT_FOUND))
    }

    /// Whether the server denied the list to this user.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::FORBIDDEN))
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    /// `null` where Go had an empty slice; missing where this is no list at all.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    continue_token: Option<String>,
}

/// Reads the collection of `resource` in `namespace` (`None`: all of the cluster),
/// reducing each item with `reduce`; items that it answers with `None` are left out.
pub(super) async fn list<T>(
    server: &ApiServer,
    resource: &Resource,
    namespace: Option<&str>,
    selector: &Selector,
    mut reduce: impl FnMut(&Value) -> Option<T>,
) -> Result<Vec<T>, ListError> {
    let path = resource.path(namespace, None);
    for _ in 0..FRESH_STARTS {
        if let Some(found) = list_once(server, &path, selector, &mut reduce).await? {
            return Ok(found);
        }
    }
    Err(ListError::KeepsExpiring { path })
}

/// `None` when the list expired between two pages: what was read of it is of no use,
/// since its pages would come from two moments.
async fn list_once<T>(
    server: &ApiServer,
    path: &str,
    selector: &Selector,
    reduce: &mut impl FnMut(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>, ListError> {
    let mut found = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let query = page_query(selector, token.as_deref());
        let reply = match server.get(&format!("{path}?{query}"), selector.accept).await {
            Ok(reply) => reply,
            Err(error) if token.is_some() && error.is(StatusCode::GONE) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let page: Page = serde_json::from_slice(&reply.body).map_err(|error| ListError::Senseless {
            path: path.to_owned(),
            fault: format!("cannot be read: {error}"),
        })?;
        found.extend(page.items.iter().flatten().filter_map(&mut *reduce));
        let next = page.metadata.continue_token.filter(|next| !next.is_empty());
        if next.is_none() {
            return Ok(Some(found));
        }
        if next == token {
            break;
        }
        token = next;
    }
    Err(ListError::Senseless {
        path: path.to_owned(),
        fault: "never ends".to_owned(),
    })
}

fn page_query(selector: &Selector, token: Option<&str>) -> String {
    let limit = PAGE_SIZE.to_string();
    let mut parameters = vec![("labelSelector", selector.labels.as_str()), ("limit", &limit)];
    parameters.extend(token.map(|token| ("continue", token)));
    query(&parameters)
}
