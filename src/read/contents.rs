//! Lists the contents of namespaces and CRDs, which are deleted with them.
//!
//! The rule for what counts as a loss is in `plan::data_loss`.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use super::kinds_missing_from_discovery::{KindWait, await_all_kinds};
use super::list::{EVERYTHING, ListError};
use super::served_version::list_in_served_version;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::error::Error;
use crate::model::containers::{Contents, HeldObject};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::list_targets::ListTarget;
use crate::model::live::{Live, Presence};
use crate::model::resource::{Resource, Scope};

/// Lists the contents of the `containers`, which are namespaces and CRDs.
///
/// For each namespace, each resource takes one LIST. That is no more than the namespace controller sends anyway when it
/// deletes the namespaces.
///
/// Resources that cannot be listed are named in the result, because a deletion would delete their objects, too. For a
/// namespace, it is an error if the cluster cannot be reached, or refuses the user.
///
/// A namespace may hold objects of a kind that discovery does not list yet, so this function waits for such kinds.
pub async fn list_contents_of_namespaces_and_crds(
    server: &ApiServer,
    discovery: &mut Discovery,
    containers: &[Live],
    concurrency: usize,
    wait: &KindWait<'_>,
) -> Result<BTreeMap<ObjectKey, Contents>, Error> {
    let mut hidden_kinds = None;
    if containers.iter().any(|live| live.key.group_kind.is_namespace()) {
        // `unserved` of the result is not used: deleting a namespace does not delete objects of kinds whose definitions
        // serve no version, and `unanswering` has the APIs that do not answer.
        hidden_kinds = await_all_kinds(server, discovery, wait).await?.without_permission;
    }
    let mut contents = list_contents_without_waiting(server, discovery, containers, concurrency).await?;
    for (key, held) in &mut contents {
        if key.group_kind.is_namespace() {
            held.unknown.extend(hidden_kinds.clone());
        }
    }
    Ok(contents)
}

async fn list_contents_without_waiting(
    server: &ApiServer,
    discovery: &Discovery,
    containers: &[Live],
    concurrency: usize,
) -> Result<BTreeMap<ObjectKey, Contents>, Error> {
    let mut contents = BTreeMap::new();
    let mut namespaces: Vec<&ObjectKey> = Vec::new();
    for live in containers {
        let held = if live.key.group_kind.is_namespace() {
            namespaces.push(&live.key);
            contents_of_namespace_before_its_lists(discovery)
        } else {
            list_contents_of_crd(server, discovery, live.defines.as_ref()).await
        };
        contents.insert(live.key.clone(), held);
    }
    if !namespaces.is_empty() {
        let resources = resources_deleted_with_namespaces(discovery);
        list_objects_of_namespaces(server, &namespaces, &resources, concurrency, &mut contents).await?;
    }
    for held in contents.values_mut() {
        held.sort_and_deduplicate();
    }
    Ok(contents)
}

/// Returns the contents of a namespace, without the objects.
fn contents_of_namespace_before_its_lists(discovery: &Discovery) -> Contents {
    let failures = discovery.failures().iter();
    Contents {
        unanswering: failures
            .map(|failure| (failure.api_service_name(), failure.to_string()))
            .collect(),
        ..Contents::default()
    }
}

/// Lists the contents of a CRD that defines `kind`; `None` for a CRD whose definition could not be read. If the objects
/// cannot be listed, for whatever reason, they are unknown.
async fn list_contents_of_crd(
    server: &ApiServer,
    discovery: &Discovery,
    kind: Option<&GroupKind>,
) -> Contents {
    let mut held = Contents::default();
    match kind.map(|kind| (kind, discovery.find_preferred(kind))) {
        Some((_, KindLookup::Found(resource))) => {
            let everywhere = ListTarget::new(&Arc::new(resource.clone()), None);
            match list_objects(server, &everywhere).await {
                Ok(objects) => held.objects = objects,
                Err(_) => held.unknown.push(resource.plural.clone()),
            }
        }
        Some((_, KindLookup::GroupFailed(failure))) => held.unknown.push(failure.to_string()),
        // The CRD exists, so its objects may exist, too.
        Some((kind, KindLookup::Absent)) => {
            held.unknown
                .push(format!("{kind}, which the server does not serve"));
        }
        None => held.unknown.push("the kind that it defines".to_owned()),
    }
    held
}

async fn list_objects(server: &ApiServer, place: &ListTarget) -> Result<Vec<HeldObject>, ListError> {
    list_in_served_version(
        server,
        place,
        &EVERYTHING,
        HeldObject::from_object_unless_terminating,
    )
    .await
}

/// Lists all of these resources in all of these namespaces, `concurrency` requests at a time.
async fn list_objects_of_namespaces(
    server: &ApiServer,
    namespaces: &[&ObjectKey],
    resources: &[Arc<Resource>],
    concurrency: usize,
    contents: &mut BTreeMap<ObjectKey, Contents>,
) -> Result<(), Error> {
    let places = resources.iter().flat_map(|resource| {
        namespaces
            .iter()
            .map(|key| (*key, ListTarget::new(resource, Some(&key.name))))
    });
    let mut lists = stream::iter(places)
        .map(|(key, place)| async move {
            let listed = list_objects(server, &place).await;
            (key, place, listed)
        })
        .buffer_unordered(concurrency);
    while let Some((key, place, listed)) = lists.next().await {
        let held = contents.entry(key.clone()).or_default();
        match listed {
            Ok(objects) => held.objects.extend(objects),
            Err(error) if error.is_same_for_every_list() => return Err((place, error).into()),
            // For example forbidden to this user: the namespace then holds something unknown.
            Err(_) => held.unknown.push(place.resource.plural.clone()),
        }
    }
    Ok(())
}

impl HeldObject {
    /// Reduces an item of a LIST; `None` if it is being deleted.
    pub fn from_object_unless_terminating(item: &Value, resource: &Arc<Resource>) -> Option<Self> {
        let live = Live::from_object(item, resource)?;
        (live.presence == Presence::Present).then(|| Self {
            owners: live.owners.into_iter().map(|owner| owner.uid).collect(),
            keep_annotation: live.keep_annotation,
            key: live.key,
            uid: live.uid,
        })
    }
}

/// Returns the listable namespaced resources that the namespace controller deletes, without Events: losing Events does
/// not matter, and they may be numerous.
fn resources_deleted_with_namespaces(discovery: &Discovery) -> Vec<Arc<Resource>> {
    discovery
        .listable()
        .filter(|resource| resource.scope == Scope::Namespaced && resource.supports("delete"))
        .filter(|resource| {
            resource.kind != "Event" || !["", "events.k8s.io"].contains(&resource.group.as_str())
        })
        .cloned()
        .map(Arc::new)
        .collect()
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

    use super::*;
    use crate::plan::fixtures::live;

    /// Lists objects of each of `namespaces`, in pages of two, and writes down the paths.
    fn server(namespaces: &[&str], paths: &Arc<Mutex<Vec<String>>>) -> ApiServer {
        let all: Vec<String> = namespaces.iter().map(|&name| name.to_owned()).collect();
        let paths = Arc::clone(paths);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let in_namespace = path.strip_prefix("/api/v1/namespaces/").expect("a namespace");
            let namespace = in_namespace.split('/').next().unwrap_or_default();
            let query = request.uri().query().unwrap_or_default();
            let start: usize = if query.contains("continue=2") { 2 } else { 0 };
            let inside = all.iter().filter(|name| **name == namespace).count();
            let items: Vec<Value> = (start..inside.min(start + 2))
                .map(|index| {
                    json!({"metadata": {
                        "name": index.to_string(), "namespace": namespace, "resourceVersion": "1",
                        "uid": format!("{namespace}-{index}"),
                    }})
                })
                .collect();
            let more = if inside > start + 2 { "2" } else { "" };
            let body = json!({"items": items, "metadata": {"continue": more, "resourceVersion": "1"}});
            paths.lock().expect("no panic").push(path);
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes()))) }
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    fn discovery() -> Discovery {
        let resource = |kind| Resource {
            verbs: ["list", "delete"].map(str::to_owned).to_vec(),
            ..Resource::with_regular_names("", "v1", kind, Scope::Namespaced)
        };
        let undeletable = Resource {
            verbs: vec!["list".to_owned()],
            ..resource("Metric")
        };
        Discovery::from_resources(vec![resource("ConfigMap"), resource("Event"), undeletable])
    }

    #[tokio::test]
    async fn a_namespace_with_an_object_without_a_uid_holds_something_unknown() {
        let service = tower::service_fn(|_: Request<Body>| {
            let item = json!({"metadata": {"name": "x", "namespace": "a"}});
            let body = json!({"items": [item], "metadata": {"resourceVersion": "1"}}).to_string();
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes()))) }
        });
        let client = kube::Client::new(service, "default");
        let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
        let container = live("Namespace", None, "a");
        let containers = std::slice::from_ref(&container);
        let found = list_contents_without_waiting(&server, &discovery(), containers, 1).await;
        assert_eq!(found.expect("contents")[&container.key].unknown, ["configmaps"]);
    }

    /// Returns the number of objects in each of the namespaces, and the collections that were read for that.
    async fn counts_and_paths(
        containers: &[&str],
        objects_in: &[&str],
    ) -> (BTreeMap<String, usize>, Vec<String>) {
        let paths = Arc::default();
        let server = server(objects_in, &paths);
        let containers: Vec<Live> = containers
            .iter()
            .map(|name| live("Namespace", None, name))
            .collect();
        let found = list_contents_without_waiting(&server, &discovery(), &containers, 1).await;
        let mut counts = BTreeMap::new();
        for (key, held) in found.expect("contents") {
            if !held.objects.is_empty() {
                counts.insert(key.name, held.objects.len());
            }
        }
        let mut paths = paths.lock().expect("no panic").clone();
        paths.dedup();
        (counts, paths)
    }

    #[tokio::test]
    async fn only_the_namespaces_are_read() {
        let each = |names: &[&str]| -> Vec<String> {
            names
                .iter()
                .map(|name| format!("/api/v1/namespaces/{name}/configmaps"))
                .collect()
        };
        let counts = |pairs: &[(&str, usize)]| -> BTreeMap<String, usize> {
            pairs
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let few = ["a", "b"];
        let (found, paths) = counts_and_paths(&few, &["a", "other"]).await;
        assert_eq!((found, paths), (counts(&[("a", 1)]), each(&few)));

        let many = ["a", "b", "c", "d"];
        let (found, paths) = counts_and_paths(&many, &["other", "a", "a", "a", "d"]).await;
        assert_eq!((found, paths), (counts(&[("a", 3), ("d", 1)]), each(&many)));
    }
}
