#![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, header};
use kube::client::Body;

use super::*;
use crate::cluster::discovery::{KindLookup, Lookup};
use crate::model::identity::{GroupKind, GroupVersionKind};

const AGGREGATED_API: &str = include_str!("../../../../testdata/discovery/aggregated-api.json");
const AGGREGATED_APIS: &str = include_str!("../../../../testdata/discovery/aggregated-apis.json");
const INDEX_API: &str = include_str!("../../../../testdata/discovery/index-api.json");
const INDEX_APIS: &str = include_str!("../../../../testdata/discovery/index-apis.json");
const RESOURCES_APPS_V1: &str = include_str!("../../../../testdata/discovery/resources-apps-v1.json");
const NO_RESOURCES: &str = r#"{"kind": "APIResourceList", "resources": []}"#;
const FORBIDDEN: &str = r#"{"kind": "Status", "message": "no rights", "reason": "Forbidden", "code": 403}"#;
const HTML: &str = "<!DOCTYPE html><html><body>Sign in</body></html>";

/// A server that gives these answers, 404 to everything else, and remembers what it was asked.
struct FakeServer {
    server: ApiServer,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl FakeServer {
    fn new(answers: &[(&'static str, u16, &'static str)]) -> Self {
        let answers: Arc<HashMap<_, _>> = Arc::new(
            answers
                .iter()
                .map(|&(path, code, body)| (path, (code, body)))
                .collect(),
        );
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (code, body) = answers
                .get(request.uri().path())
                .copied()
                .unwrap_or((404, "not found"));
            let accept = &request.headers()[header::ACCEPT];
            log.lock().expect("no test panics while it holds the lock").push((
                request.uri().to_string(),
                accept.to_str().expect("the header is ASCII").to_owned(),
            ));
            async move {
                let response = Response::builder()
                    .status(code)
                    .body(Body::from(body.as_bytes().to_vec()));
                Ok::<_, Infallible>(response.expect("a valid response"))
            }
        });
        let client = kube::Client::new(service, "default");
        Self {
            server: ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1)),
            asked,
        }
    }

    fn asked(&self) -> Vec<(String, String)> {
        let mut asked = self
            .asked
            .lock()
            .expect("no test panics while it holds the lock")
            .clone();
        asked.sort();
        asked
    }
}

#[tokio::test]
async fn a_new_server_is_asked_twice() {
    let fake = FakeServer::new(&[("/api", 200, AGGREGATED_API), ("/apis", 200, AGGREGATED_APIS)]);
    let discovery = fetch(&fake.server).await.expect("discovery succeeds");

    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
        application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    assert_eq!(
        fake.asked(),
        [("/api", accept), ("/apis", accept)].map(|(path, accept)| (path.into(), accept.into()))
    );
    assert_eq!(discovery.listable().count(), 13);
    // The core group comes first, whichever answer arrived first.
    assert_eq!(
        discovery.listable().next().map(|first| first.plural.as_str()),
        Some("configmaps")
    );
    assert_eq!(discovery.failures().len(), 1);
}

#[tokio::test]
async fn an_old_server_is_asked_for_each_group_version_and_one_may_fail() {
    for (code, body, reason) in [
        (404, "not found", "404"),
        (403, FORBIDDEN, "no rights"),
        (401, "", "401"),
        (200, HTML, "not a complete JSON object"),
        (
            200,
            r#"{"kind": "APIResourceList", "resources": [{"name": "po"#,
            "not a complete JSON object",
        ),
        (200, r#"{"kind": "Status"}"#, "Status"),
    ] {
        let fake = FakeServer::new(&[
            ("/api", 200, INDEX_API),
            ("/apis", 200, INDEX_APIS),
            (
                "/api/v1",
                200,
                r#"{"kind": "APIResourceList", "resources": [{"name": "secrets", "kind": "Secret"}]}"#,
            ),
            ("/apis/apps/v1", 200, RESOURCES_APPS_V1),
            ("/apis/autoscaling/v2", 200, NO_RESOURCES),
            ("/apis/autoscaling/v1", 200, NO_RESOURCES),
            ("/apis/metrics.k8s.io/v1beta1", code, body),
        ]);
        let discovery = fetch(&fake.server)
            .await
            .expect("one group does not spoil the others");

        // An answer that was cut off is asked for once more.
        let asked: BTreeSet<_> = fake.asked().into_iter().collect();
        assert_eq!(asked.len(), 7);
        assert!(matches!(
            discovery.find_resource(&GroupVersionKind::from_api_version("apps/v1", "Deployment")),
            Lookup::Found(_)
        ));
        assert!(matches!(
            discovery.find_preferred(&GroupKind::new("", "Secret")),
            KindLookup::Found(_)
        ));
        assert_eq!(
            discovery.find_preferred(&GroupKind::new("autoscaling", "Gone")),
            KindLookup::Absent
        );
        let KindLookup::GroupFailed(failure) =
            discovery.find_preferred(&GroupKind::new("metrics.k8s.io", "PodMetrics"))
        else {
            panic!("the group failed");
        };
        assert_eq!(
            (failure.group.as_str(), failure.version.as_str()),
            ("metrics.k8s.io", "v1beta1")
        );
        assert!(failure.reason.contains(reason), "{failure}");
    }
}

#[tokio::test]
async fn a_hostile_index_cannot_lead_elsewhere() {
    let fake = FakeServer::new(&[
        (
            "/api",
            200,
            r#"{"kind": "APIVersions", "versions": ["v1/secrets?watch=true#"]}"#,
        ),
        (
            "/apis",
            200,
            r#"{"kind": "APIGroupList", "groups": [{"name": "a b/c", "versions": [{"version": "%2e"}]}]}"#,
        ),
    ]);
    let discovery = fetch(&fake.server).await.expect("the index can be read");
    assert_eq!(discovery.failures().len(), 2);
    let paths: Vec<String> = fake.asked().into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "/api",
            "/api/v1%2Fsecrets%3Fwatch=true%23",
            "/apis",
            "/apis/a%20b%2Fc/%252e"
        ]
    );
}

#[tokio::test]
async fn failures_of_discovery_are_classified() {
    let truncated = &AGGREGATED_APIS[..4000];
    for (path, code, body, expected) in [
        ("/apis", 401, "", "the server does not accept these credentials: "),
        ("/apis", 403, FORBIDDEN, "discovery: forbidden: "),
        ("/api", 403, FORBIDDEN, "discovery: forbidden: "),
        ("/apis", 404, "not found", "discovery: invalid response: "),
        ("/apis", 500, "", "discovery: invalid response: "),
        ("/apis", 200, HTML, "discovery: invalid response: "),
        ("/apis", 200, truncated, "discovery: invalid response: "),
        (
            "/apis",
            200,
            r#"{"kind": "APIGroupDiscoveryList", "items": []}"#,
            "discovery: invalid response: ",
        ),
    ] {
        let other = if path == "/api" {
            ("/apis", 200, AGGREGATED_APIS)
        } else {
            ("/api", 200, AGGREGATED_API)
        };
        let fake = FakeServer::new(&[(path, code, body), other]);
        let error = fetch(&fake.server).await.expect_err("the root cannot be had");
        assert!(error.to_string().starts_with(expected), "{code} {body}: {error}");
        assert_eq!(error.request.path, path);
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_unreachable() {
    let refusing = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>(std::io::Error::other("connection refused"))
    });
    let server = ApiServer::new(
        kube::Client::new(refusing, "default"),
        "https://127.0.0.1:6443",
        Duration::from_mins(1),
    );
    let error = fetch(&server).await.expect_err("no server answers");
    let expected = "discovery: the server cannot be reached: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}
