//! Connects to the cluster and discovers what it serves.

use futures_util::future::{join, try_join};

use crate::cli::GlobalFlags;
use crate::cluster::connection::{Connection, ConnectionOptions, Login};
use crate::cluster::discovery;
use crate::cluster::identity::ClusterUid;
use crate::error::Error;
use crate::manifest::{self, Manifest, Manifests, Recursion, Source};
use crate::model::applyset::record::is_dns_label;
use crate::read::{Cluster, KindWaits};
use crate::report::{self, ContextAndServer, Format, Style};
use crate::settings;

/// Sets the connection up for a command with a document; nothing is sent yet. Only `-o json` and
/// `-o yaml` name the cluster by its UID, so no other format asks for it.
pub async fn connect(shared: &GlobalFlags) -> Result<Connection, Error> {
    let needs_uid = matches!(settings::style(shared).format, Format::Json | Format::Yaml);
    Ok(Connection {
        uid: needs_uid.then(ClusterUid::default),
        ..connect_for(shared, Login::Attended).await?
    })
}

/// Sets the connection up for a command that may be unable to ask the user to log in.
pub async fn connect_for(shared: &GlobalFlags, login: Login) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        login,
        ..settings::connection(&shared.connection)?
    };
    connect_with(options, shared).await
}

/// Sets the connection up as the user of the kubeconfig's context. `--as` and `--user` are the subjects
/// of `rbac`, which need not exist yet.
pub async fn connect_as_oneself(shared: &GlobalFlags) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        user: None,
        impersonate: None,
        impersonate_groups: Vec::new(),
        impersonate_uid: None,
        ..settings::connection(&shared.connection)?
    };
    connect_with(options, shared).await
}

async fn connect_with(options: ConnectionOptions, shared: &GlobalFlags) -> Result<Connection, Error> {
    let mut connection = options.connect().await?;
    if let Some(namespace) = &shared.namespace {
        if !is_dns_label(namespace) {
            return Err(Error::Usage {
                message: format!("--namespace: invalid namespace {namespace:?}"),
                hint: "use at most 63 lower-case letters, digits and \"-\"".to_owned(),
            });
        }
        connection.namespace.clone_from(namespace);
    }
    Ok(connection)
}

/// The cluster of a connection, for people and for documents.
pub fn place(connection: &Connection) -> ContextAndServer {
    ContextAndServer {
        context: connection.context.clone(),
        server: connection.endpoint.address.clone(),
        uid: connection.uid.clone().unwrap_or_default(),
    }
}

/// Returns the waits of a command without a time limit, which prints what it waits for.
pub fn unlimited_waits(style: Style) -> KindWaits {
    KindWaits::new(None, move |text| report::note(text, style))
}

/// Asks the server what it serves, and at the same time for the cluster's UID if the connection needs it.
pub async fn discover(connection: Connection, kind_waits: KindWaits) -> Result<Cluster, Error> {
    let server = &connection.server;
    let identify = async {
        if let Some(uid) = &connection.uid {
            uid.ask(server).await;
        }
        Ok(())
    };
    // A server without discovery is not waited for.
    let (discovery, ()) = try_join(discovery::fetch(server), identify).await?;
    Ok(Cluster {
        discovery,
        server: connection.server,
        namespace: connection.namespace,
        endpoint: connection.endpoint,
        kind_waits,
    })
}

/// Reads the manifests and discovery concurrently, and adds the kinds that the manifests define. Errors
/// of the manifests come first, even if the server fails. `divide` selects the manifests that count.
pub async fn discover_with(
    connection: Connection,
    sources: Vec<Source>,
    recursion: Recursion,
    kind_waits: KindWaits,
    divide: impl FnOnce(Vec<Manifest>) -> Manifests,
) -> Result<(Cluster, Manifests), Error> {
    let reading = tokio::task::spawn_blocking(move || manifest::read(&sources, recursion));
    let (manifests, cluster) = join(reading, discover(connection, kind_waits)).await;
    let manifests = match manifests {
        Ok(manifests) => manifests?,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    };
    let mut cluster = cluster?;
    let manifests = divide(manifests);
    cluster.add_definitions(&manifests.applied).await?;
    Ok((cluster, manifests))
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "a server that is a function")]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::Barrier;

    use super::*;
    use crate::cluster::apiserver::ApiServer;
    use crate::cluster::connection::Endpoint;

    /// Discovers with a server that answers once so many requests have arrived, and returns their paths.
    async fn paths_at_once(count: usize, uid: Option<ClusterUid>) -> BTreeSet<String> {
        let paths = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&paths);
        let barrier = Arc::new(Barrier::new(count));
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let list = |group: &str| {
                let versions = json!([{"version": "v1", "resources": []}]);
                let group = json!({"metadata": {"name": group}, "versions": versions});
                json!({"kind": "APIGroupDiscoveryList", "items": [group]})
            };
            let body = match path.as_str() {
                "/api" => list(""),
                "/apis" => list("apps"),
                _ => json!({"metadata": {"uid": "1c2a"}}),
            };
            seen.lock().expect("no panic").insert(path);
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes())))
            }
        });
        let address = "https://example.com".to_owned();
        let client = kube::Client::new(service, "default");
        let connection = Connection {
            server: ApiServer::new(client, &address, Duration::from_secs(10)),
            namespace: "default".to_owned(),
            endpoint: Endpoint {
                address,
                authorities: Vec::new(),
            },
            context: None,
            uid,
        };
        assert!(discover(connection, KindWaits::none()).await.is_ok());
        paths.lock().expect("no panic").clone()
    }

    #[tokio::test]
    async fn the_uid_is_asked_for_beside_discovery_if_it_is_needed() {
        let roots = ["/api", "/apis"];
        assert_eq!(
            paths_at_once(2, None).await,
            roots.map(str::to_owned).into_iter().collect()
        );
        let uid = ClusterUid::default();
        let paths = paths_at_once(3, Some(uid.clone())).await;
        assert_eq!(uid.get(), Some("1c2a"));
        assert!(paths.contains("/api/v1/namespaces/kube-system"), "{paths:?}");
    }
}
