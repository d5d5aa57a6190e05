//! What there is of any kind in some namespaces, or with a part-of label. Knows nothing of what a
//! parent records, so nothing can hide from it.

use futures_util::future::join_all;
use http::{Method, StatusCode};
use serde_json::Value;
use ureq::Agent;

use super::{Cluster, PART_OF, objects, own_names, runtime};

/// Asks for the discovery of all groups in one document.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// The second group that serves the Events of the core group.
const EVENTS: &str = "events.k8s.io";

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// These namespaces and everything in them.
    InNamespaces(&'a [&'a str]),
    /// Everything that carries this part-of label.
    PartOf(&'a str),
}

/// An object that was found.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    /// `Kind.group`, a core kind bare.
    pub(super) group_kind: String,
    /// Namespace; `None` for a cluster-scoped object.
    pub(super) namespace: Option<String>,
    /// Name.
    pub(super) name: String,
    /// `metadata.resourceVersion`.
    pub(super) version: String,
    /// Whether it has a deletion timestamp.
    pub(super) is_terminating: bool,
}

/// What shows all that etcd keeps, in one request.
#[derive(Debug)]
pub(super) struct Objects {
    url: String,
    agent: Agent,
}

impl Objects {
    pub(super) fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            // A proxy of the environment does not reach this machine.
            agent: Agent::config_builder().proxy(None).build().into(),
        }
    }

    fn find(&self, wanted: Wanted<'_>) -> Vec<Found> {
        let request = self.agent.get(&self.url);
        let request = match wanted {
            Wanted::InNamespaces(namespaces) => {
                request.query_pairs(namespaces.iter().map(|namespace| ("namespace", *namespace)))
            }
            Wanted::PartOf(id) => request.query("label", format!("{PART_OF}={id}")),
        };
        let mut answer = request.call().expect("the objects");
        let text = answer.body_mut().read_to_vec().expect("the objects");
        let objects: Vec<Value> = serde_json::from_slice(&text).expect("a list of objects");
        objects.iter().map(shown).collect()
    }
}

impl Cluster {
    /// Everything that is wanted. Kinds of a group that only a test had which is over count as gone.
    pub(super) fn find(&self, wanted: Wanted<'_>) -> Vec<Found> {
        let mut found = match &self.objects {
            Some(objects) => objects.find(wanted),
            None => self.list_everything(wanted),
        };
        found.retain(|object| {
            let (_, group) = object.group_kind.split_once('.').unwrap_or_default();
            !own_names::is_left_over(group)
        });
        found
    }

    /// The same from a list of each kind, where etcd is a program of its own.
    fn list_everything(&self, wanted: Wanted<'_>) -> Vec<Found> {
        runtime().block_on(async {
            let collections = self.collections().await;
            let lists = collections.iter().flat_map(|collection| {
                let paths = collection.paths(wanted).into_iter();
                paths.map(move |path| async move {
                    let items = self.items(&path).await;
                    let found = items.iter().map(|item| found(item, &collection.group_kind));
                    found.collect::<Vec<_>>()
                })
            });
            join_all(lists).await.into_iter().flatten().collect()
        })
    }

    async fn collections(&self) -> Vec<Collection> {
        let mut collections = Vec::new();
        for root in ["/api", "/apis"] {
            let (status, groups) = self.send(Method::GET, root, AGGREGATED, None).await;
            assert_eq!(status, StatusCode::OK, "GET {root}: {groups}");
            for group in array(&groups["items"]) {
                let name = group["metadata"]["name"].as_str().unwrap_or_default();
                if name != EVENTS && !own_names::is_left_over(name) {
                    collections.extend(collections_of(root, group));
                }
            }
        }
        collections
    }
}

struct Collection {
    group_kind: String,
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    root: String,
    plural: String,
    is_namespaced: bool,
}

impl Collection {
    /// The lists that hold what is wanted.
    fn paths(&self, wanted: Wanted<'_>) -> Vec<String> {
        let Self { root, plural, .. } = self;
        match wanted {
            Wanted::PartOf(id) => vec![format!("{root}/{plural}?labelSelector={PART_OF}%3D{id}")],
            Wanted::InNamespaces(namespaces) if self.is_namespaced => namespaces
                .iter()
                .map(|namespace| format!("{root}/namespaces/{namespace}/{plural}"))
                .collect(),
            Wanted::InNamespaces(namespaces) if self.group_kind == "Namespace" => namespaces
                .iter()
                .map(|namespace| format!("{root}/{plural}?fieldSelector=metadata.name%3D{namespace}"))
                .collect(),
            Wanted::InNamespaces(_) => Vec::new(),
        }
    }
}

/// The collections of a group, each in the version that the server prefers.
fn collections_of(root: &str, group: &Value) -> Vec<Collection> {
    let name = group["metadata"]["name"].as_str().unwrap_or_default();
    let mut collections: Vec<Collection> = Vec::new();
    for version in array(&group["versions"]) {
        let version_name = version["version"].as_str().unwrap_or_default();
        for resource in array(&version["resources"]) {
            let plural = resource["resource"].as_str().unwrap_or_default();
            let is_listable = array(&resource["verbs"]).iter().any(|verb| verb == "list");
            let is_known = collections.iter().any(|known| known.plural == plural);
            if !is_listable || is_known {
                continue;
            }
            let kind = resource["responseKind"]["kind"].as_str().unwrap_or_default();
            let (group_kind, root) = if name.is_empty() {
                (kind.to_owned(), format!("{root}/{version_name}"))
            } else {
                (format!("{kind}.{name}"), format!("{root}/{name}/{version_name}"))
            };
            collections.push(Collection {
                group_kind,
                root,
                plural: plural.to_owned(),
                is_namespaced: resource["scope"] == "Namespaced",
            });
        }
    }
    collections
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An item of a list, which does not say its kind.
fn found(item: &Value, group_kind: &str) -> Found {
    let metadata = &item["metadata"];
    let text = |key: &str| metadata[key].as_str().map(str::to_owned);
    Found {
        group_kind: group_kind.to_owned(),
        namespace: text("namespace"),
        name: text("name").expect("a name"),
        version: text("resourceVersion").expect("a resourceVersion"),
        is_terminating: !metadata["deletionTimestamp"].is_null(),
    }
}

/// An object as etcd shows it.
fn shown(object: &Value) -> Found {
    let text = |key: &str| object[key].as_str().map(str::to_owned);
    Found {
        group_kind: objects::group_kind(object),
        namespace: text("namespace"),
        name: text("name").expect("a name"),
        version: text("resourceVersion").expect("a resourceVersion"),
        is_terminating: object["isTerminating"] == true,
    }
}

#[test]
fn etcd_shows_what_the_lists_of_all_kinds_hold() {
    use super::{
        cluster, cluster_role, config_map, custom_resource, definition, fresh, namespace_object, with,
    };
    let [home, group, id] = ["home", "g", "set"].map(fresh);
    let group = format!("{group}.example.com");
    cluster().define(&definition(&group, "Namespaced"));
    let event = serde_json::json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": home, "name": "event"},
        "involvedObject": {"kind": "ConfigMap", "namespace": home, "name": "one"},
    });
    let held = serde_json::json!({"metadata": {"finalizers": ["example.com/held"]}});
    let going = with(config_map(&home, "going", "1"), &held);
    let label = serde_json::json!({"metadata": {"labels": {PART_OF: id}}});
    cluster().create(&namespace_object(&home));
    cluster().create(&config_map(&home, "unlabeled", "1"));
    for object in [
        custom_resource(&group, Some(&home), "one"),
        cluster_role(&home),
        event,
        going.clone(),
    ] {
        cluster().create(&with(object, &label));
    }
    cluster().delete(&going);

    for (wanted, count) in [(Wanted::PartOf(&id), 4), (Wanted::InNamespaces(&[&home]), 5)] {
        let [mut one, mut other] = [cluster().find(wanted), cluster().list_everything(wanted)];
        one.sort();
        other.sort();
        assert_eq!(one, other, "{wanted:?}");
        assert_eq!(one.len(), count, "{one:?}");
    }
    cluster().patch(&going, &serde_json::json!({"metadata": {"finalizers": null}}));
}
