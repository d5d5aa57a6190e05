//! Lists many collections even if some of them cannot be listed.
//!
//! The result names the collections that could not be listed: that no object was found in them does not prove that
//! there is none. `found_set` and `verify` judge the findings.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use super::list::{ListError, Selector};
use super::served_version::list_in_served_version;
use crate::cluster::apiserver::ApiServer;
use crate::model::list_targets::{ListTarget, ListTargets, Reach};
use crate::model::resource::{Resource, Scope};

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
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> ListResults<T> {
    let pick = &pick;
    let mut lists = stream::iter(resources)
        .map(|resource| async move {
            let everywhere = ListTarget::new(resource, None);
            let read = list_in_served_version(server, &everywhere, options.selector, pick).await;
            let mut listed = ListResults::default();
            if read.is_err() && resource.scope == Scope::Namespaced {
                let names = fallback_namespaces.iter();
                let places = names.map(|namespace| ListTarget::new(resource, Some(namespace)));
                listed = list_each(server, places.collect(), options, pick).await;
            }
            listed.add(everywhere, read);
            listed
        })
        .buffer_unordered(options.concurrency);
    let mut all = ListResults::default();
    while let Some(listed) = lists.next().await {
        all.found.extend(listed.found);
        all.unread.extend(listed.unread);
    }
    all
}

/// Lists these collections in the cheaper way: each by itself, or each resource over all namespaces. Objects in
/// other namespaces are left out, so that the result does not depend on how it was listed.
pub async fn list_visible<T>(
    server: &ApiServer,
    places: &ListTargets,
    options: ListOptions<'_>,
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> ListResults<T> {
    let pick = |item: &Value, resource: &Arc<Resource>| {
        let is_inside = places.includes_namespace_of_item(resource, item);
        is_inside.then(|| pick(item, resource)).flatten()
    };
    match places.cheapest_reach() {
        Reach::Cluster => {
            list_visible_everywhere(server, &places.resources, &places.namespaces, options, pick).await
        }
        Reach::Namespace => list_each(server, places.each_collection(Reach::Namespace), options, pick).await,
    }
}

/// Settings of the lists.
#[derive(Clone, Copy)]
pub struct ListOptions<'a> {
    /// The label selector, and whether the objects are listed whole or as metadata.
    pub selector: &'a Selector,
    /// The concurrency limit.
    pub concurrency: usize,
}

impl<'a> ListOptions<'a> {
    pub fn new(selector: &'a Selector, concurrency: usize) -> Self {
        Self {
            selector,
            concurrency,
        }
    }
}

/// Lists each of these collections, even if some of them cannot be listed.
async fn list_each<T>(
    server: &ApiServer,
    places: Vec<ListTarget>,
    options: ListOptions<'_>,
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> ListResults<T> {
    let pick = &pick;
    let mut looks = stream::iter(places)
        .map(|place| async move {
            (
                list_in_served_version(server, &place, options.selector, pick).await,
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
