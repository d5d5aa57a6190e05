//! The identity of a cluster: by convention, the UID of its namespace kube-system.

use std::sync::{Arc, OnceLock};

use super::apiserver::ApiServer;

/// The namespace that every cluster has and that cannot be deleted.
pub const SYSTEM_NAMESPACE: &str = "kube-system";

/// The UID of a cluster, once it is known. Clones share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterUid(Arc<OnceLock<String>>);

impl ClusterUid {
    /// Returns the UID; `None` if the server was not asked, or if the user may not read the namespace.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Asks the server for the UID. If that fails, the UID stays unknown, which is not an error: no decision depends on
    /// it.
    pub async fn fill_from_server(&self, server: &ApiServer) {
        let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}");
        let Ok(reply) = server.get(&path, "application/json").await else {
            return;
        };
        let namespace = reply.json_or_null();
        if let Some(uid) = namespace["metadata"]["uid"].as_str() {
            let _ = self.0.set(uid.to_owned());
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;

    use super::*;

    async fn answered(status: StatusCode, body: &'static str) -> Option<String> {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let mut response = Response::new(Body::from(body.as_bytes().to_vec()));
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        });
        let client = kube::Client::new(service, "default");
        let server = ApiServer::new(client, "https://example.com", Duration::from_secs(1));
        let uid = ClusterUid::default();
        uid.clone().fill_from_server(&server).await;
        uid.get().map(str::to_owned)
    }

    #[tokio::test]
    async fn a_uid_that_cannot_be_read_is_unknown() {
        let uid = Some("1c2a".to_owned());
        let namespace = r#"{"metadata": {"name": "kube-system", "uid": "1c2a"}}"#;
        assert_eq!(answered(StatusCode::OK, namespace).await, uid);
        let status = r#"{"kind": "Status", "reason": "Forbidden", "code": 403}"#;
        assert_eq!(answered(StatusCode::FORBIDDEN, status).await, None);
        assert_eq!(answered(StatusCode::NOT_FOUND, "{}").await, None);
        assert_eq!(answered(StatusCode::OK, "{}").await, None);
    }
}
