//! Lists many collections even if some of them cannot be listed, and reads possible parents of sets.
//!
//! The result names the collections that could not be listed: that no object was found in them does not prove that
//! there is none. `found_set` and `verify` judge the findings.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::list::{ListError, Selector};
use super::parent::{METADATA, ObjectMetadata};
use super::served_version::list_in_served_version;
use super::single_objects::{self, unreadable};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::model::applyset::ID_LABEL;
use crate::model::applyset::parent::{Pairs, ParentIdentity, is_applyset_key};
use crate::model::list_targets::{ListTarget, ListTargets, Reach};
use crate::model::resource::{Resource, Scope};
use crate::model::set::ParentObject;

/// The result of listing many collections.
#[derive(Debug)]
pub struct ListResults<T> {
    /// The objects.
    pub found: Vec<T>,
    /// The collections that could not be read, with the errors. For a namespaced resource, a target without a namespace
    /// means that the list over all namespaces failed.
    pub unread: Vec<(ListTarget, ListError)>,
}

impl<T> Default for ListResults<T> {
    fn default() -> Self {
        Self {
            found: Vec::new(),
            unread: Vec::new(),
        }
    }
}

impl<T> ListResults<T> {
    fn add(&mut self, place: ListTarget, read: Result<Vec<T>, ListError>) {
        match read {
            Ok(found) => self.found.extend(found),
            Err(error) => self.unread.push((place, error)),
        }
    }
}

/// Lists objects of these resources over all namespaces. If that fails for a resource, lists it in each of
/// `fallback_namespaces`.
pub async fn list_visible_everywhere<T>(
    server: &ApiServer,
    resources: &[Arc<Resource>],
    fallback_namespaces: &BTreeSet<String>,
    options: ListOptions<'_>,
    reduce: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> ListResults<T> {
    let reduce = &reduce;
    let mut lists = stream::iter(resources)
        .map(|resource| async move {
            let whole = ListTarget::new(resource, None);
            let read = list_in_served_version(server, &whole, options.selector, reduce).await;
            let mut listed = ListResults::default();
            if read.is_err() && resource.scope == Scope::Namespaced {
                let names = fallback_namespaces.iter();
                let places = names.map(|namespace| ListTarget::new(resource, Some(namespace)));
                listed = list_each(server, places.collect(), options, reduce).await;
            }
            listed.add(whole, read);
            listed
        })
        .buffer_unordered(options.concurrency);
    let mut all = ListResults::default();
    while let Some(listed) = lists.next().await {
        (options.seen)();
        all.found.extend(listed.found);
        all.unread.extend(listed.unread);
    }
    all
}

/// Lists these collections with the fewest requests: each by itself, or each resource over all namespaces. Objects in
/// other namespaces are left out, so that the result does not depend on how it was listed.
pub async fn list_visible<T>(
    server: &ApiServer,
    places: &ListTargets,
    options: ListOptions<'_>,
    reduce: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> ListResults<T> {
    let reduce = |item: &Value, resource: &Arc<Resource>| {
        let is_inside = places.includes_namespace_of_item(resource, item);
        is_inside.then(|| reduce(item, resource)).flatten()
    };
    match places.cheapest_reach() {
        Reach::Cluster => {
            list_visible_everywhere(server, &places.resources, &places.namespaces, options, reduce).await
        }
        Reach::Namespace => {
            list_each(server, places.each_collection(Reach::Namespace), options, reduce).await
        }
    }
}

/// Settings of the lists.
#[derive(Clone, Copy)]
pub struct ListOptions<'a> {
    /// The label selector, and whether the objects are listed whole or as metadata.
    pub selector: &'a Selector,
    /// The concurrency limit.
    pub concurrency: usize,
    /// Called after each resource that [`list_visible_everywhere`] has listed.
    pub seen: &'a dyn Fn(),
}

impl<'a> ListOptions<'a> {
    /// Creates settings without a progress report.
    pub fn new(selector: &'a Selector, concurrency: usize) -> Self {
        Self {
            selector,
            concurrency,
            seen: &|| {},
        }
    }
}

/// Lists each of these collections, even if some of them cannot be listed.
async fn list_each<T>(
    server: &ApiServer,
    places: Vec<ListTarget>,
    options: ListOptions<'_>,
    reduce: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> ListResults<T> {
    let reduce = &reduce;
    let mut looks = stream::iter(places)
        .map(|place| async move {
            (
                list_in_served_version(server, &place, options.selector, reduce).await,
                place,
            )
        })
        .buffer_unordered(options.concurrency);
    let mut all = ListResults::default();
    while let Some((read, place)) = looks.next().await {
        all.add(place, read);
    }
    all
}

/// An object that is, claims to be, or may have been the parent of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentCandidate {
    pub identity: ParentIdentity,
    /// The resource through which the object was read.
    pub resource: Arc<Resource>,
    /// The parent as a run would read it.
    pub object: ParentObject,
    pub labels: Pairs,
    /// Field managers that own ApplySet metadata of the object, by any operation.
    pub writers: BTreeSet<String>,
    /// Field managers that own ApplySet metadata of the object by server-side apply, as tools that manage sets do.
    pub appliers: BTreeSet<String>,
}

impl ParentCandidate {
    /// Reduces an object that a GET returned, or an item of a LIST; `None` if it has no valid metadata. `now` is the
    /// time by the server's clock.
    pub fn from_object(object: &Value, resource: &Arc<Resource>, now: Timestamp) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let fields = ObjectMetadata::deserialize(metadata).ok()?;
        let identity = ParentIdentity {
            group_kind: resource.group_kind(),
            namespace: fields.namespace().map(str::to_owned),
            name: fields.name().to_owned(),
        };
        Some(Self {
            labels: fields.labels.clone(),
            writers: find_writers_of_applyset_metadata(metadata, |_| true),
            appliers: find_writers_of_applyset_metadata(metadata, |entry| entry["operation"] == "Apply"),
            resource: Arc::clone(resource),
            object: ParentObject::new(&identity, fields, now),
            identity,
        })
    }

    /// Returns whether the object has any ApplySet metadata of a parent.
    pub fn has_applyset_metadata(&self) -> bool {
        self.labels.contains_key(ID_LABEL) || self.object.annotations.keys().any(|key| is_applyset_key(key))
    }
}

/// Returns the field managers that own the id label or an annotation of the convention, by those entries of
/// `managedFields` that `counts` selects.
fn find_writers_of_applyset_metadata(metadata: &Value, counts: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let entries = metadata["managedFields"].as_array().into_iter().flatten();
    entries
        .filter(|entry| counts(entry))
        .filter(|entry| {
            let owned = &entry["fieldsV1"]["f:metadata"];
            let mut annotations = owned["f:annotations"].as_object().into_iter().flat_map(Map::keys);
            owned["f:labels"].get(format!("f:{ID_LABEL}")).is_some()
                || annotations.any(|key| key.strip_prefix("f:").is_some_and(is_applyset_key))
        })
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
        .collect()
}

/// Reads one object as a possible parent; `None` if it does not exist.
pub async fn read_parent_candidate(
    server: &ApiServer,
    resource: &Arc<Resource>,
    identity: &ParentIdentity,
) -> Result<Option<ParentCandidate>, ApiError> {
    let Some(object) = single_objects::read(server, identity, resource, METADATA).await? else {
        return Ok(None);
    };
    let candidate = ParentCandidate::from_object(&object, resource, server.now());
    candidate
        .map(Some)
        .ok_or_else(|| unreadable(resource, identity, "it has no identity".to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::applyset::{GROUP_KINDS_ANNOTATION, PART_OF_LABEL};
    use crate::plan::fixtures::resource;

    #[test]
    fn who_keeps_the_books_is_read_from_field_ownership() {
        let owns = |manager: &str, field: &str, key: &str| json!({"manager": manager, "fieldsV1": {"f:metadata": {field: {(format!("f:{key}")): {}, ".": {}}}}});
        let mut metadata = json!({"managedFields": [
            owns("a", "f:annotations", GROUP_KINDS_ANNOTATION),
            owns("b", "f:labels", ID_LABEL),
            owns("c", "f:annotations", "note"),
            owns("d", "f:labels", PART_OF_LABEL),
            {"manager": "e", "fieldsV1": {"f:data": {}}},
        ]});
        metadata["managedFields"][1]["operation"] = json!("Apply");
        metadata["managedFields"][3]["operation"] = json!("Apply");
        let resource = resource("Secret", Scope::Namespaced);
        let parent =
            ParentCandidate::from_object(&json!({"metadata": metadata}), &resource, Timestamp::UNIX_EPOCH);
        let parent = parent.expect("an object");
        assert_eq!(parent.writers, ["a", "b"].map(str::to_owned).into());
        assert_eq!(parent.appliers, ["b".to_owned()].into());
    }
}
