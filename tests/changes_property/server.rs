//! A running API server, as far as this test needs one.

use controlplane::ControlPlane;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

#[derive(Clone)]
pub(crate) struct Server {
    client: kube::Client,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn succeeded(&self) -> bool {
        self.status < 300
    }
}

impl Server {
    /// The throw-away control plane that all tests share.
    pub(crate) async fn connect() -> Self {
        let path = ControlPlane::shared().admin_kubeconfig();
        let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
                .await
                .unwrap();
        Self {
            client: kube::Client::try_from(config).unwrap(),
        }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => Vec::new(),
            body => serde_json::to_vec(body).unwrap(),
        };
        for _ in 0..3 {
            let request = Request::builder()
                .method(method.clone())
                .uri(path)
                .header("content-type", content)
                .header("accept", "application/json")
                .body(Body::from(body.clone()))
                .unwrap();
            let Ok(response) = self.client.send(request).await else {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let status = response.status().as_u16();
            if status == 429 {
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                continue;
            }
            // On a busy machine an answer may break off. What is sent again finds the version
            // that the first time left, so a write is not hidden by it.
            let Ok(collected) = response.into_body().collect().await else {
                continue;
            };
            let bytes = collected.to_bytes();
            let body = serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
            return Answer { status, body };
        }
        panic!("no answer to {method} {path}");
    }

    pub(crate) async fn apply(&self, path: &str, manager: &str, force: bool, manifest: &Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}&force={force}&fieldValidation=Ignore");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", manifest)
            .await
    }

    pub(crate) async fn merge(&self, path: &str, manager: &str, body: &Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}");
        self.send(Method::PATCH, &path, "application/merge-patch+json", body)
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "application/json", &Value::Null)
            .await
    }
}

/// Where the objects of a kind live, and one of them.
pub(crate) struct Place {
    pub(crate) collection: String,
    pub(crate) object: String,
}

const CLUSTER_SCOPED: [&str; 14] = [
    "CSIDriver",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

pub(crate) fn place(manifest: &Value, namespace: &str) -> Place {
    let text = |name: &str| manifest[name].as_str().unwrap();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let root = if version.contains('/') { "apis" } else { "api" };
    let singular = kind.to_lowercase();
    let plural = match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    };
    // What limits other objects would have the server refuse them.
    let limits = if matches!(kind, "LimitRange" | "ResourceQuota") {
        "-limits"
    } else {
        ""
    };
    let collection = if CLUSTER_SCOPED.contains(&kind) {
        format!("/{root}/{version}/{plural}")
    } else {
        format!("/{root}/{version}/namespaces/{namespace}{limits}/{plural}")
    };
    let name = manifest["metadata"]["name"].as_str().unwrap();
    Place {
        object: format!("{collection}/{name}"),
        collection,
    }
}
