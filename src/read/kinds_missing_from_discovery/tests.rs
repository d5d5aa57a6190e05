#![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// A server that has one definition, and discovery that lists its kind from the answer with this
/// number on.
struct FakeServer {
    server: ApiServer,
    paths: Arc<Mutex<Vec<String>>>,
}

impl FakeServer {
    fn new(definition: Value, listed_from: usize) -> Self {
        let paths: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&paths);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let mut paths = log.lock().expect("no panic");
            let answers = paths.iter().filter(|sent| *sent == "/apis").count();
            let body = match path.as_str() {
                "/api" => groups(&[""]),
                "/apis" if answers >= listed_from => groups(&["other.example.com", "example.com"]),
                "/apis" => groups(&["other.example.com"]),
                path if path.ends_with("/widgets.example.com") => definition.clone(),
                path if path.ends_with("/customresourcedefinitions") => {
                    json!({"items": [{"metadata": definition["metadata"]}], "metadata": {}})
                }
                _ => json!({"items": [], "metadata": {}}),
            };
            paths.push(path);
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes()))) }
        });
        let client = kube::Client::new(service, "default");
        Self {
            server: ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1)),
            paths,
        }
    }

    /// Searches all kinds with an earlier discovery, and returns what cannot be listed, with the number
    /// of discoveries.
    async fn look(&self, wait: &KindWait<'_>) -> (Result<HiddenKinds, Error>, usize) {
        let mut discovery = discovery::fetch(&self.server).await.expect("a discovery");
        let hidden_kinds = await_all_kinds(&self.server, &mut discovery, wait).await;
        let paths = self.paths.lock().expect("no panic");
        let discoveries = paths.iter().filter(|path| *path == "/apis").count();
        (hidden_kinds, discoveries - 1)
    }
}

fn groups(groups: &[&str]) -> Value {
    let group = |name: &&str| {
        json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": [{
            "resource": "widgets", "singularResource": "widget", "scope": "Namespaced", "verbs": ["list"],
            "responseKind": {"group": "", "version": "", "kind": "Widget"},
        }]}]})
    };
    let items: Vec<Value> = groups.iter().map(group).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
}

/// A definition of widgets that is established, or not, and serves its version, or not.
fn definition(established: &str, served: &Value) -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": served}],
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    })
}

fn hidden(names: &[&str]) -> HiddenKinds {
    HiddenKinds {
        without_permission: None,
        unserved: names.iter().map(|&name| name.to_owned()).collect(),
    }
}

#[tokio::test]
async fn a_kind_that_is_served_is_waited_for_until_discovery_lists_it() {
    for listed_from in 1..4 {
        let fake = FakeServer::new(definition("True", &json!(true)), listed_from);
        let notes = Cell::new(0);
        let note = |_: &str| notes.set(notes.get() + 1);
        let (hidden_kinds, discoveries) = fake.look(&KindWait::new(None, &note)).await;
        assert_eq!(hidden_kinds.expect("it is listed"), hidden(&[]));
        assert_eq!(discoveries, listed_from);
        // A discovery that is only older than the definition causes no wait.
        assert_eq!(notes.get(), usize::from(listed_from > 1));
    }
}

#[tokio::test]
async fn a_kind_is_not_gone_if_discovery_lists_the_former_kind_of_its_definition() {
    let mut replaced = definition("True", &json!(true));
    replaced["spec"]["names"]["kind"] = json!("Gadget");
    let FakeServer { server, .. } = FakeServer::new(replaced, 0);
    let discovery = discovery::fetch(&server).await.expect("a discovery");
    let defined = ReasonToExpectKind::Defined("widgets.example.com".to_owned());
    for (kind, expected) in [
        ("Gadget", MissingKind::Expected(defined)),
        ("Gizmo", MissingKind::Gone),
    ] {
        let kind = GroupKind::new("example.com", kind);
        let found = determine_missing_kind(&server, &discovery, &kind).await;
        assert_eq!(found.expect("evidence"), expected, "{kind}");
    }
}

#[tokio::test]
async fn a_kind_that_discovery_never_lists_ends_the_wait_with_an_error() {
    let fake = FakeServer::new(definition("True", &json!(true)), usize::MAX);
    let (hidden_kinds, _) = fake.look(&KindWait::never()).await;
    let error = hidden_kinds.expect_err("nothing can be concluded").to_string();
    assert!(error.contains("widgets.example.com"), "{error}");
}

#[tokio::test]
async fn what_serves_nothing_is_not_waited_for() {
    let mut terminating = definition("True", &json!(false));
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (definition, expected) in [
        (
            definition("True", &json!(false)),
            hidden(&["widgets.example.com"]),
        ),
        (definition("False", &json!(true)), hidden(&[])),
        (terminating, hidden(&[])),
    ] {
        let fake = FakeServer::new(definition, usize::MAX);
        let (hidden_kinds, discoveries) = fake.look(&KindWait::without_report()).await;
        assert_eq!(
            (hidden_kinds.expect("nothing is expected"), discoveries),
            (expected, 0)
        );
    }
}
