//! One paged LIST, read to its end or not at all.
//!
//! What is listed, and what becomes of the items, is the caller's business.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::live::owners;
use crate::apiserver::{ApiError, ApiErrorKind, ApiServer, query};
use crate::discovery::Resource;

/// Objects asked for in one page: the default of client-go's pager.
const PAGE_SIZE: usize = 500;
/// How often a list is started afresh when its continue token has expired.
const FRESH_STARTS: usize = 3;
/// Pages that one list may have: no cluster holds five million members of a kind.
const MOST_PAGES: usize = 10_000;

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
    /// Whether the server does not know the path: it serves the kind in another version by
    /// now, or no more. What is there then is told by `served`.
    pub(super) fn is_not_served(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::NOT_FOUND))
    }

    /// Whether it says more about the cluster, or who asks, than about this collection: any other
    /// list would have failed likewise.
    pub(super) fn is_of_the_cluster(&self) -> bool {
        let Self::Request(error) = self else {
            return false;
        };
        match &*error.kind {
            ApiErrorKind::Status(status) => [401, 429].contains(&status.code),
            ApiErrorKind::Connection { .. }
            | ApiErrorKind::Untrusted { .. }
            | ApiErrorKind::Credential(_)
            | ApiErrorKind::Timeout(_)
            | ApiErrorKind::Unreadable(_) => true,
        }
    }

    /// Whether the server itself has failed.
    pub(super) fn is_internal(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// Whether the server denied the list to this user.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Request(error) if error.is(StatusCode::FORBIDDEN))
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    #[serde(rename = "resourceVersion")]
    resource_version: String,
}

/// Reads a page item by item, so that never more than one of them is a value in memory.
struct PageSeed<'p, T, F> {
    reduce: &'p mut F,
    found: &'p mut Vec<T>,
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> DeserializeSeed<'de> for PageSeed<'_, T, F> {
    type Value = PageMetadata;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PageMetadata, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> Visitor<'de> for PageSeed<'_, T, F> {
    type Value = PageMetadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<PageMetadata, A::Error> {
        let Self { reduce, found } = self;
        let mut metadata = PageMetadata::default();
        let mut has_items = false;
        while let Some(field) = access.next_key::<Cow<'_, str>>()? {
            match &*field {
                "metadata" => metadata = access.next_value()?,
                "items" => {
                    has_items = true;
                    access.next_value_seed(ItemsSeed { reduce, found })?;
                }
                _ => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        if has_items {
            Ok(metadata)
        } else {
            Err(A::Error::missing_field("items"))
        }
    }
}

/// The items of a page: `null` where Go had an empty slice.
struct ItemsSeed<'p, T, F> {
    reduce: &'p mut F,
    found: &'p mut Vec<T>,
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> DeserializeSeed<'de> for ItemsSeed<'_, T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T, F: FnMut(&Value) -> Option<T>> Visitor<'de> for ItemsSeed<'_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(item) = access.next_element::<Value>()? {
            self.found.extend((self.reduce)(&item));
        }
        Ok(())
    }
}

/// Reads one page into `found`.
fn read_page<T>(
    body: &[u8],
    reduce: &mut impl FnMut(&Value) -> Option<T>,
    found: &mut Vec<T>,
) -> serde_json::Result<PageMetadata> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let metadata = PageSeed { reduce, found }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(metadata)
}

/// Reads the collection of `resource` in `namespace` (`None`: all of the cluster),
/// reducing each item with `reduce`; items that it answers with `None` are left out.
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

/// The same with the resourceVersion of the list, from which a watch goes on.
pub(super) async fn list_at_version<T>(
    server: &ApiServer,
    resource: &Resource,
    namespace: Option<&str>,
    selector: &Selector,
    mut reduce: impl FnMut(&Value) -> Option<T>,
) -> Result<(Vec<T>, String), ListError> {
    let path = resource.path(namespace, None);
    let mut fault = None;
    let mut reduce = |item: &Value| {
        fault = fault.or_else(|| fault_of(item, namespace));
        reduce(item)
    };
    for _ in 0..FRESH_STARTS {
        let Some(found) = list_once(server, &path, selector, &mut reduce).await? else {
            continue;
        };
        // What is left out of a list is forgotten by the record.
        return match fault {
            Some(fault) => Err(ListError::Senseless {
                path,
                fault: fault.to_owned(),
            }),
            None => Ok(found),
        };
    }
    Err(ListError::KeepsExpiring { path })
}

/// Why an item cannot be one of the objects that were asked for.
fn fault_of(item: &Value, namespace: Option<&str>) -> Option<&'static str> {
    let text = |pointer| item.pointer(pointer).and_then(Value::as_str);
    if text("/metadata/name").is_none_or(str::is_empty) {
        Some("has an item without a name")
    } else if namespace.is_some() && text("/metadata/namespace") != namespace {
        Some("has an item of another namespace")
    } else if owners(&item["metadata"]).is_err() {
        Some("has an item whose owner references cannot be read")
    } else {
        None
    }
}

/// `None` when the list expired between two pages: what was read of it is of no use,
/// since its pages would come from two moments.
async fn list_once<T>(
    server: &ApiServer,
    path: &str,
    selector: &Selector,
    reduce: &mut impl FnMut(&Value) -> Option<T>,
) -> Result<Option<(Vec<T>, String)>, ListError> {
    let mut found = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let query = page_query(selector, token.as_deref());
        let reply = match server.get(&format!("{path}?{query}"), selector.accept).await {
            Ok(reply) => reply,
            Err(error) if token.is_some() && error.is(StatusCode::GONE) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let page = read_page(&reply.body, reduce, &mut found).map_err(|error| ListError::Senseless {
            path: path.to_owned(),
            fault: format!("cannot be read: {error}"),
        })?;
        let next = page.continue_token.filter(|next| !next.is_empty());
        if next.is_none() {
            return Ok(Some((found, page.resource_version)));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(body: &str) -> Result<(Vec<i64>, Option<String>), String> {
        let mut found = Vec::new();
        read_page(body.as_bytes(), &mut Value::as_i64, &mut found)
            .map(|metadata| (found, metadata.continue_token))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn items_have_to_be_what_was_asked_for() {
        let item = |more: Value| {
            let mut metadata = json!({"name": "a", "namespace": "n"});
            if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
                metadata.extend(more);
            }
            fault_of(&json!({"metadata": metadata}), Some("n"))
        };
        assert_eq!(item(json!({})), None);
        assert_eq!(item(json!({"name": ""})), Some("has an item without a name"));
        assert_eq!(
            item(json!({"namespace": "m"})),
            Some("has an item of another namespace")
        );
        for owners in [json!({}), json!("x"), json!([{"name": "owner"}])] {
            assert_eq!(
                item(json!({"ownerReferences": owners})),
                Some("has an item whose owner references cannot be read")
            );
        }
    }

    #[test]
    fn a_page_is_a_list_to_its_end_or_nothing() {
        let token = Some("next".to_owned());
        for (body, expected) in [
            (r#"{"items":[1,"left out",2]}"#, (vec![1, 2], None)),
            (r#"{"items":null,"metadata":{}}"#, (vec![], None)),
            (
                r#"{"kind":"L","items":[3],"metadata":{"continue":"next","x":[]}}"#,
                (vec![3], token),
            ),
        ] {
            assert_eq!(page(body), Ok(expected), "{body}");
        }
        for body in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"kind":"Status"}"#,
            r#"{"items":[1"#,
            r#"{"items":[1]} x"#,
            r#"{"items":{}}"#,
        ] {
            assert!(page(body).is_err(), "{body}");
        }
    }
}
