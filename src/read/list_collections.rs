//! Lists the members of a set in the scope of its record and the manifests.
//!
//! One LIST per group-kind and namespace, or one over all namespaces if that is fewer requests and the
//! user is allowed to.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use super::list::{ListError, Selector};
use super::served_version::list_in_served_version;
use crate::cluster::apiserver::ApiServer;
use crate::model::identity::ObjectKey;
use crate::model::list_targets::{ListTarget, ListTargets, Reach};
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::Set;

/// Lists the collections of `places`, `concurrency` at a time, and keeps of each object what `pick` returns.
///
/// A list over all namespaces also shows objects of namespaces that are not in `places`. These may be numerous, so they
/// are dropped while the page is read, and `pick` does not get them.
pub async fn list_collections<T>(
    server: &ApiServer,
    places: &ListTargets,
    selector: &Selector,
    concurrency: usize,
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<T>, (ListTarget, ListError)> {
    let reach = places.cheapest_reach();
    let pick = |item: &Value, resource: &Arc<Resource>| {
        let is_inside = places.includes_namespace_of_item(resource, item);
        is_inside.then(|| pick(item, resource)).flatten()
    };
    match list_all_or_fail(
        server,
        places.each_collection(reach),
        selector,
        concurrency,
        &pick,
    )
    .await
    {
        // The user may be allowed to list only some namespaces. Or a custom resource that the server cannot convert, in
        // a namespace that does not matter here, makes the list over all namespaces fail.
        Err((_, error)) if reach == Reach::Cluster && (error.is_forbidden() || error.is_internal()) => {
            list_all_or_fail(
                server,
                places.each_collection(Reach::Namespace),
                selector,
                concurrency,
                &pick,
            )
            .await
        }
        outcome => outcome,
    }
}

/// Reads all of these lists, and fails if one of them cannot be read.
async fn list_all_or_fail<T>(
    server: &ApiServer,
    lists: Vec<ListTarget>,
    selector: &Selector,
    concurrency: usize,
    pick: &impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<T>, (ListTarget, ListError)> {
    let mut replies = stream::iter(lists)
        .map(|place| async move {
            let listed = list_in_served_version(server, &place, selector, pick).await;
            listed.map_err(|error| (place, error))
        })
        .buffer_unordered(concurrency);
    let mut found = Vec::new();
    while let Some(reply) = replies.next().await {
        let reply = reply?;
        if found.is_empty() {
            found = reply;
        } else {
            found.extend(reply);
        }
    }
    Ok(found)
}

/// Lists each of `resources` over all namespaces of the cluster, and fails if one of them cannot be listed.
pub async fn list_in_all_namespaces<T>(
    server: &ApiServer,
    resources: Vec<Arc<Resource>>,
    selector: &Selector,
    concurrency: usize,
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<T>, (ListTarget, ListError)> {
    let places = ListTargets {
        resources,
        ..ListTargets::default()
    };
    let lists = places.each_collection(Reach::Cluster);
    list_all_or_fail(server, lists, selector, concurrency, &pick).await
}

/// Lists the objects with the label of the set in these places, each once. The parent is left out: it is never a
/// member. `accept` is the media type that the lists are requested in.
pub async fn list_labeled_objects(
    server: &ApiServer,
    set: &Set,
    places: &ListTargets,
    concurrency: usize,
    accept: &'static str,
) -> Result<Vec<Live>, (ListTarget, ListError)> {
    let selector = Selector::for_members(&set.id, accept);
    let mut found = list_collections(server, places, &selector, concurrency, Live::from_object).await?;
    found.retain(|live| !set.is_parent(live));
    unique_by_uid(&mut found, |live| live, |_| false);
    Ok(found)
}

/// Keeps one entry for each object, by its UID. Two groups can serve one object, as the core group and `events.k8s.io`
/// do with Events, so a search may find it under two keys. The entry with a key that `is_preferred` is kept, else the
/// one with the first key in order. So a count of members is a count of objects.
pub fn unique_by_uid<T>(
    found: &mut Vec<T>,
    live: for<'t> fn(&'t T) -> &'t Live,
    is_preferred: impl Fn(&ObjectKey) -> bool,
) {
    let rank = |one: &T| !is_preferred(&live(one).key);
    let mut chosen: HashMap<&str, usize> = HashMap::with_capacity(found.len());
    for (index, one) in found.iter().enumerate() {
        let best = chosen.entry(&live(one).uid).or_insert(index);
        let other = &found[*best];
        if (rank(one), &live(one).key) < (rank(other), &live(other).key) {
            *best = index;
        }
    }
    if chosen.len() == found.len() {
        return;
    }
    let mut is_chosen = vec![false; found.len()];
    for index in chosen.into_values() {
        is_chosen[index] = true;
    }
    let mut answers = is_chosen.into_iter();
    found.retain(|_| answers.next() == Some(true));
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::super::METADATA_LIST;
    use super::super::list_visible::{ListOptions, list_visible};
    use super::*;
    use crate::model::identity::GroupKind;
    use crate::model::resource::Scope;
    use crate::plan::fixtures::live;

    /// A server of which each list has an object in each of these namespaces; `None` is an object
    /// in none.
    fn server(namespaces: &'static [Option<&str>]) -> ApiServer {
        let service = tower::service_fn(move |_: Request<Body>| {
            let item = |namespace: Option<&str>| {
                json!({"metadata": {
                    "name": "any", "namespace": namespace, "uid": "u", "resourceVersion": "1",
                }})
            };
            let items: Vec<Value> = namespaces.iter().copied().map(item).collect();
            let body = json!({"items": items, "metadata": {"resourceVersion": "1"}}).to_string();
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes()))) }
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    #[tokio::test]
    async fn what_other_namespaces_hold_is_dropped_before_anybody_looks_at_it() {
        let namespaces = ["a", "b", "c", "d"].map(str::to_owned);
        let looked_at = async |scope| {
            let places = ListTargets {
                resources: vec![Arc::new(Resource::with_regular_names(
                    "",
                    "v1",
                    "ConfigMap",
                    scope,
                ))],
                namespaces: namespaces.clone().into(),
            };
            assert_eq!(places.cheapest_reach(), Reach::Cluster);
            let seen: Mutex<Vec<Option<String>>> = Mutex::default();
            let look = |item: &Value, _: &Arc<Resource>| {
                let namespace = item["metadata"]["namespace"].as_str();
                seen.lock().expect("no panic").push(namespace.map(str::to_owned));
                Some(())
            };
            let selector = Selector::new("a=b", METADATA_LIST);
            let server = server(&[Some("a"), Some("other"), Some("d"), None]);
            let found = list_collections(&server, &places, &selector, 1, look).await;
            let seen = seen.lock().expect("no panic").clone();
            assert_eq!(found.expect("a list").len(), seen.len());
            let options = ListOptions::new(&selector, 1);
            let visible = list_visible(&server, &places, options, |_, _| Some(())).await;
            assert_eq!(visible.found.len(), seen.len());
            seen
        };
        let text = |name: &str| Some(name.to_owned());
        assert_eq!(looked_at(Scope::Namespaced).await, [text("a"), text("d"), None]);
        assert_eq!(looked_at(Scope::Cluster).await.len(), 4);
    }

    #[test]
    fn an_object_that_two_groups_serve_is_left_once() {
        let event = |group: &str, name: &str| {
            let mut event = live("Event", Some("shop"), name);
            event.key.group_kind = GroupKind::new(group, "Event");
            event
        };
        let [one, other] = ["", "events.k8s.io"].map(|group| event(group, "one"));
        let two = event("", "two");
        let all = [&other, &two, &one];
        let table: [(&[&Live], &str, &[&Live]); 4] = [
            (&all, "-", &[&two, &one]),
            (&all, "events.k8s.io", &[&other, &two]),
            (&[&one, &other], "events.k8s.io", &[&other]),
            (&[&two, &one], "events.k8s.io", &[&two, &one]),
        ];
        for (found, preferred, expected) in table {
            let mut found: Vec<Live> = found.iter().map(|&live| live.clone()).collect();
            unique_by_uid(&mut found, |live| live, |key| key.group_kind.group == preferred);
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{preferred}");
        }
    }
}
