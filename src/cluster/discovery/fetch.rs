//! Sends the two requests of discovery.
//!
//! `parse` reads the answers.

use http::StatusCode;

use super::Discovery;
use super::parse::{self, Root, VersionResult};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::error::{Error, ErrorKind};

/// The formats in which `/api` and `/apis` can be read, the preferred one first, as client-go asks for them. The last
/// is the answer of a server before Kubernetes 1.27. It is not read, but it tells the server's age, which a 406 would
/// not.
const ACCEPT_ROOT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
    application/json";

/// Reads what the server serves.
///
/// A group-version whose API server does not answer is recorded as failed. It is an error only if `/api` or `/apis`
/// itself cannot be read.
pub async fn fetch(server: &ApiServer) -> Result<Discovery, Error> {
    request(server).await.map_err(|error| {
        let cause = error.cause();
        let text = match error.status() {
            Some(status) if status.code != StatusCode::UNAUTHORIZED => format!("discovery failed: {cause}"),
            _ => cause,
        };
        Error::new(ErrorKind::Cluster, text).with_hint(error.hint())
    })
}

/// Does the same, and returns the error of the request.
pub async fn request(server: &ApiServer) -> Result<Discovery, ApiError> {
    let (core, groups) = tokio::try_join!(
        fetch_versions(server, Root::Core),
        fetch_versions(server, Root::Groups)
    )?;
    Ok(Discovery::new(core.into_iter().chain(groups)))
}

async fn fetch_versions(server: &ApiServer, root: Root) -> Result<Vec<VersionResult>, ApiError> {
    let path = match root {
        Root::Core => "/api",
        Root::Groups => "/apis",
    };
    let reply = server.get_list(path, ACCEPT_ROOT).await?;
    parse::parse_root(root, &reply.body)
        .map_err(|error| ApiError::for_invalid_answer(path, error.to_string()))
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::collections::HashMap;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use http::{Request, Response, header};
    use kube::client::Body;

    use super::*;

    const AGGREGATED_API: &str = include_str!("../../../testdata/discovery/aggregated-api.json");
    const AGGREGATED_APIS: &str = include_str!("../../../testdata/discovery/aggregated-apis.json");
    const FORBIDDEN: &str =
        r#"{"kind": "Status", "message": "no rights", "reason": "Forbidden", "code": 403}"#;
    const HTML: &str = "<!DOCTYPE html><html><body>Sign in</body></html>";

    /// A server that gives these answers, 404 to everything else, and remembers the requests.
    struct FakeServer {
        server: ApiServer,
        requests: Arc<Mutex<Vec<(String, String)>>>,
    }

    impl FakeServer {
        fn new(answers: &[(&'static str, u16, &'static str)]) -> Self {
            let answers: Arc<HashMap<_, _>> = Arc::new(
                answers
                    .iter()
                    .map(|&(path, code, body)| (path, (code, body)))
                    .collect(),
            );
            let requests = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&requests);
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
                requests,
            }
        }

        fn requests(&self) -> Vec<(String, String)> {
            let mut requests = self
                .requests
                .lock()
                .expect("no test panics while it holds the lock")
                .clone();
            requests.sort();
            requests
        }
    }

    #[tokio::test]
    async fn the_server_is_asked_twice() {
        let fake = FakeServer::new(&[("/api", 200, AGGREGATED_API), ("/apis", 200, AGGREGATED_APIS)]);
        let discovery = fetch(&fake.server).await.expect("discovery succeeds");

        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
        application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(
            fake.requests(),
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
    async fn a_refused_or_invalid_answer_is_an_error() {
        let truncated = &AGGREGATED_APIS[..4000];
        for (path, code, body, expected) in [
            ("/apis", 401, "", "Unauthorized: "),
            ("/apis", 403, FORBIDDEN, "discovery failed: no rights"),
            ("/api", 403, FORBIDDEN, "discovery failed: no rights"),
            ("/apis", 404, "not found", "discovery failed: "),
            ("/apis", 500, "", "discovery failed: "),
            ("/apis", 200, HTML, "invalid response from the server: "),
            ("/apis", 200, truncated, "invalid response from the server: "),
            (
                "/apis",
                200,
                r#"{"kind": "APIGroupDiscoveryList", "items": []}"#,
                "invalid response from the server: ",
            ),
            (
                "/apis",
                200,
                r#"{"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [{"version": "v1"}]}]}"#,
                "invalid response from the server: ",
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
            let error = request(&fake.server).await.expect_err("the root cannot be had");
            assert_eq!(error.path, path);
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
        assert!(error.to_string().contains("connection refused"), "{error}");
    }
}
