//! The cluster as the tests see it: plain requests with an administrator's rights,
//! past the program and past its library.

#![expect(
    clippy::disallowed_types,
    reason = "what the program did is looked at past its own door to the server"
)]

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use controlplane::ControlPlane;
use futures_util::future::join_all;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::time::sleep;

use super::everything::{Found, Objects, Wanted};
use super::{PART_OF, PATIENCE, PAUSE, own, runtime};

/// The shared control plane.
pub(crate) struct Cluster {
    client: kube::Client,
    /// `None` where etcd is a program of its own.
    pub(super) objects: Option<Objects>,
}

/// One object that carries a part-of label, wherever it was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    /// `Kind.group`, a core kind bare.
    pub(crate) group_kind: String,
    /// Namespace; `None` for a cluster-scoped object.
    pub(crate) namespace: Option<String>,
    /// Name.
    pub(crate) name: String,
    /// Whether it has a deletion timestamp.
    pub(crate) is_terminating: bool,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.as_deref().unwrap_or("-");
        write!(f, "{} {namespace}/{}", self.group_kind, self.name)
    }
}

/// Every object of some namespaces with its resourceVersion.
pub(crate) type State = BTreeMap<String, String>;

/// The kubeconfig of an administrator of `cluster()`.
pub(crate) fn admin_kubeconfig() -> &'static Path {
    own::current().map_or_else(
        || ControlPlane::shared().admin_kubeconfig(),
        |own| own.control_plane.admin_kubeconfig(),
    )
}

/// The shared control plane, or the one that the test of this thread has to itself; started by
/// the first call.
pub(crate) fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    own::current().map_or_else(
        || CLUSTER.get_or_init(|| Cluster::of(ControlPlane::shared())),
        |own| &own.cluster,
    )
}

/// A client that sends each request once.
pub(super) fn client(kubeconfig: &Path) -> kube::Client {
    runtime().block_on(async {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig of the control plane");
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("a configuration");
        config.default_retry = false;
        ClientBuilder::try_from(config).expect("a client").build()
    })
}

/// A new namespace.
pub(crate) fn namespace(prefix: &str) -> String {
    let name = super::fresh(prefix);
    cluster().create(&super::namespace_object(&name));
    name
}

impl Cluster {
    /// A control plane of a test's own, for what would disturb all others.
    pub(crate) fn of(control_plane: &ControlPlane) -> Self {
        Self {
            client: client(control_plane.admin_kubeconfig()),
            objects: control_plane.objects_url().map(Objects::at),
        }
    }

    /// The client, with its connections.
    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The object or list at a path; `None` where there is none.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let (status, body) = runtime().block_on(self.send(Method::GET, path, "application/json", None));
        match status {
            StatusCode::NOT_FOUND => None,
            status => {
                assert!(status.is_success(), "GET {path}: {body}");
                Some(body)
            }
        }
    }

    /// The text at a path.
    pub(crate) fn text(&self, path: &str) -> String {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        let text = runtime().block_on(self.client.request_text(request));
        text.expect("an answer")
    }

    /// Whether there is anything at this path, be it out of order for a moment.
    pub(crate) fn knows(&self, path: &str) -> bool {
        let (status, _) = runtime().block_on(self.send(Method::GET, path, "application/json", None));
        status != StatusCode::NOT_FOUND
    }

    /// The live object that this manifest is of.
    pub(crate) fn live(&self, object: &Value) -> Option<Value> {
        self.get(&super::path_of(object))
    }

    /// The live object without what any write changes, and without its part-of label.
    pub(crate) fn content(&self, object: &Value) -> Value {
        let mut live = self.live(object).expect("the object");
        let metadata = live["metadata"].as_object_mut().expect("metadata");
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(PART_OF);
            if labels.is_empty() {
                metadata.remove("labels");
            }
        }
        live
    }

    /// Creates an object as the field manager `tests`.
    pub(crate) fn create(&self, object: &Value) -> Value {
        self.create_as("tests", object)
    }

    /// Creates an object as this field manager.
    pub(crate) fn create_as(&self, manager: &str, object: &Value) -> Value {
        let path = super::path_of(object);
        let (collection, _) = path.rsplit_once('/').expect("a path");
        self.write(
            &Method::POST,
            &format!("{collection}?fieldManager={manager}"),
            "application/json",
            Some(object),
        )
    }

    /// Why the server would not create this object; `None` if it would.
    pub(crate) fn dry_run_create(&self, object: &Value) -> Option<String> {
        let path = super::path_of(object);
        let (collection, _) = path.rsplit_once('/').expect("a path");
        let path = format!("{collection}?dryRun=All");
        let send = self.send(Method::POST, &path, "application/json", Some(object));
        let (status, answer) = runtime().block_on(send);
        (!status.is_success()).then(|| answer["message"].to_string())
    }

    /// Creates a CRD, and returns when its kind is served.
    pub(crate) fn define(&self, definition: &Value) {
        self.create(definition);
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
        let group = text("/spec/group").expect("a group");
        let version = text("/spec/versions/0/name").expect("a version");
        let plural = text("/spec/names/plural").expect("a plural");
        let path = format!("/apis/{group}/{version}/{plural}");
        super::eventually("the kind is served", || {
            let (status, _) = runtime().block_on(self.send(Method::GET, &path, "application/json", None));
            status.is_success().then_some(())
        });
    }

    /// Merges a patch into the object as the field manager `tests`.
    pub(crate) fn patch(&self, object: &Value, patch: &Value) -> Value {
        let target = format!("{}?fieldManager=tests", super::path_of(object));
        self.write(
            &Method::PATCH,
            &target,
            "application/merge-patch+json",
            Some(patch),
        )
    }

    /// Merges a patch into the status of the object, as its controller does.
    pub(crate) fn patch_status(&self, object: &Value, status: &Value) -> Value {
        let target = format!("{}/status?fieldManager=tests", super::path_of(object));
        let patch = serde_json::json!({"status": status});
        self.write(
            &Method::PATCH,
            &target,
            "application/merge-patch+json",
            Some(&patch),
        )
    }

    /// Lets the Job fail for good, with `BackoffLimitExceeded: too often`, as its controller does.
    pub(crate) fn fail_job(&self, job: &Value) {
        let failed = ["FailureTarget", "Failed"].map(|condition| {
            serde_json::json!({
                "type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "too often",
            })
        });
        self.patch_status(
            job,
            &serde_json::json!({"startTime": "2026-01-01T00:00:00Z", "conditions": failed}),
        );
    }

    /// Lets the container `app` of the Pod crash again and again, as the kubelet reports it. `terminated` is the end of
    /// its last instance.
    pub(crate) fn crash_pod(&self, pod: &Value, restarts: u32, terminated: &Value) {
        let container = serde_json::json!({
            "name": "app", "image": "app", "imageID": "", "ready": false, "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
            "lastState": {"terminated": terminated},
        });
        self.patch_status(
            pod,
            &serde_json::json!({"phase": "Running", "containerStatuses": [container]}),
        );
    }

    /// Scales the object as its autoscaler does.
    pub(crate) fn scale(&self, object: &Value, replicas: u32) -> Value {
        let target = format!(
            "{}/scale?fieldManager=kube-controller-manager",
            super::path_of(object)
        );
        let patch = serde_json::json!({"spec": {"replicas": replicas}});
        self.write(
            &Method::PATCH,
            &target,
            "application/merge-patch+json",
            Some(&patch),
        )
    }

    /// Server-side apply under another field manager.
    pub(crate) fn apply_as(&self, manager: &str, object: &Value) -> Value {
        let path = format!("{}?fieldManager={manager}&force=true", super::path_of(object));
        self.write(
            &Method::PATCH,
            &path,
            "application/apply-patch+yaml",
            Some(object),
        )
    }

    /// Asks for the deletion of the object.
    pub(crate) fn delete(&self, object: &Value) {
        self.write(&Method::DELETE, &super::path_of(object), "application/json", None);
    }

    /// Asks for the deletion of all that this list holds.
    pub(crate) fn delete_all(&self, path: &str) {
        self.write(&Method::DELETE, path, "application/json", None);
    }

    /// Whether the server lets an administrator delete the object; it stays as it is.
    pub(crate) fn allows_deletion(&self, object: &Value) -> bool {
        let path = format!("{}?dryRun=All", super::path_of(object));
        let (status, _) = runtime().block_on(self.send(Method::DELETE, &path, "application/json", None));
        status.is_success()
    }

    /// The items of all of these lists, which are read at once.
    pub(crate) fn list_all(&self, paths: &[String]) -> Vec<Vec<Value>> {
        runtime().block_on(join_all(paths.iter().map(|path| self.items(path))))
    }

    /// Every object of any kind in any place that carries this part-of label. Knows
    /// nothing of what a parent records, so nothing can hide from it. Kinds of a group that only
    /// a test had which is over count as gone.
    pub(crate) fn members(&self, id: &str) -> Vec<Member> {
        let found = self.find(Wanted::PartOf(id)).into_iter();
        let mut members: Vec<Member> = found
            .map(|object| Member {
                group_kind: object.group_kind,
                namespace: object.namespace,
                name: object.name,
                is_terminating: object.is_terminating,
            })
            .collect();
        members.sort();
        members
    }

    /// The resourceVersions of the objects that carry this part-of label, by their identities.
    pub(crate) fn versions(&self, id: &str) -> State {
        let found = self.find(Wanted::PartOf(id)).into_iter();
        found.map(with_version).collect()
    }

    /// Everything in these namespaces and the namespaces themselves, with
    /// resourceVersions: equal before and after where nothing was written.
    pub(crate) fn state(&self, namespaces: &[&str]) -> State {
        let found = self.find(Wanted::InNamespaces(namespaces)).into_iter();
        found
            .map(with_version)
            .filter(|(object, _)| !is_event_of_the_server(object))
            .collect()
    }

    /// The items of a list; none where the kind has gone, as other tests' kinds do.
    pub(super) async fn items(&self, path: &str) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, body) = self.send(Method::GET, path, "application/json", None).await;
            match status {
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => return Vec::new(),
                // A kind that was defined a moment ago cannot be listed yet.
                StatusCode::TOO_MANY_REQUESTS if Instant::now() < deadline => sleep(PAUSE).await,
                _ => {
                    assert!(status.is_success(), "GET {path}: {body}");
                    return body["items"].as_array().cloned().unwrap_or_default();
                }
            }
        }
    }

    fn write(&self, method: &Method, path: &str, content_type: &str, body: Option<&Value>) -> Value {
        let (status, answer) = runtime().block_on(self.send(method.clone(), path, content_type, body));
        assert!(status.is_success(), "{method} {path}: {answer}");
        answer
    }

    /// `media_type` is what is sent, or where there is no body what is asked for.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.attempt(&method, path, media_type, body).await {
                Ok(answer) => return answer,
                // The server breaks off lists of a kind whose definition another test deletes.
                Err(_) if method == Method::GET && Instant::now() < deadline => sleep(PAUSE).await,
                Err(error) => panic!("{method} {path}: no answer of the API server: {error}"),
            }
        }
    }

    async fn attempt(
        &self,
        method: &Method,
        path: &str,
        media_type: &str,
        body: Option<&Value>,
    ) -> kube::Result<(StatusCode, Value)> {
        let header = if body.is_some() {
            header::CONTENT_TYPE
        } else {
            header::ACCEPT
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header, media_type)
            .body(Body::from(
                body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
            ))
            .expect("a request");
        let (head, body) = self.client.send(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
        let value = serde_json::from_slice(&body).unwrap_or_else(|_| text());
        Ok((head.status, value))
    }
}

/// Returns whether the server itself may have made it at any time, as for an address that it has not allocated yet: an
/// Event whose name ends with a time, such as `Event home/web.18eb8da9079030c2`.
fn is_event_of_the_server(object: &str) -> bool {
    let time = object
        .strip_prefix("Event ")
        .and_then(|name| name.rsplit_once('.'));
    time.is_some_and(|(_, time)| time.len() == 16 && time.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn with_version(object: Found) -> (String, String) {
    let namespace = object.namespace.as_deref().unwrap_or("-");
    let identity = format!("{} {namespace}/{}", object.group_kind, object.name);
    (identity, object.version)
}
