//! Connects to the cluster and discovers what it serves.

use std::collections::BTreeSet;

use futures_util::future::try_join3;
use tokio::task::{JoinError, spawn_blocking};

use crate::cli::GlobalFlags;
use crate::cluster::connection::{Connection, ConnectionOptions, Login};
use crate::cluster::discovery;
use crate::cluster::identity::ClusterUid;
use crate::error::Error;
use crate::manifest::{self, Manifest, Manifests, Recursion, Source};
use crate::model::applyset::record::is_dns_label;
use crate::model::list_targets::Reach;
use crate::read::{Cluster, KindWaits, ReadBesideDiscovery, Wanted};
use crate::report::{self, ContextAndServer, Format, Style};
use crate::settings::{self, SetReference};

/// The most connections that are opened for the lists of members before these can be sent.
const LISTS_AT_ONCE: usize = 16;
/// One more, in which a first apply asks about permissions.
const BESIDE_LISTS: usize = 1;

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
    connection.server = connection
        .server
        .with_most_early_connections(shared.concurrency.into());
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

/// Asks the server what it serves, and at the same time for the cluster's UID if the connection needs it,
/// and for what `wanted` names, as far as that can be read without discovery.
pub async fn discover(
    connection: Connection,
    kind_waits: KindWaits,
    wanted: Wanted<'_>,
) -> Result<Cluster, Error> {
    let (server, namespace) = (connection.server.clone(), connection.namespace.clone());
    let reads = Box::pin(ReadBesideDiscovery::read(&server, wanted, &namespace));
    Box::pin(discover_beside(connection, kind_waits, reads)).await
}

async fn discover_beside(
    connection: Connection,
    kind_waits: KindWaits,
    reads: impl Future<Output = ReadBesideDiscovery>,
) -> Result<Cluster, Error> {
    let server = &connection.server;
    let identify = async {
        if let Some(uid) = &connection.uid {
            uid.ask(server).await;
        }
        Ok(())
    };
    // A server without discovery is not waited for.
    let reads = async { Ok(reads.await) };
    let (discovery, (), read_beside) = try_join3(discovery::fetch(server), identify, reads).await?;
    Ok(Cluster {
        discovery,
        read_beside_discovery: read_beside.valid_until_next_request(server),
        server: connection.server,
        namespace: connection.namespace,
        endpoint: connection.endpoint,
        kind_waits,
    })
}

/// Reads the manifests and discovery concurrently, and adds the kinds that the manifests define. Errors
/// of the manifests come first, even if the server fails. `divide` selects the manifests that count.
/// The parent of `set`, if there is one, and the namespaces are read as soon as the manifests are known.
pub async fn discover_with(
    connection: Connection,
    sources: Vec<Source>,
    recursion: Recursion,
    kind_waits: KindWaits,
    divide: impl FnOnce(Vec<Manifest>) -> Manifests,
    set: Option<&SetReference>,
) -> Result<(Cluster, Manifests), Error> {
    let mut reading = spawn_blocking(move || manifest::read(&sources, recursion));
    let mut read = None;
    let (server, namespace) = (connection.server.clone(), connection.namespace.clone());
    let read_beside = async {
        let manifests = read.insert(finished((&mut reading).await).map(divide));
        match (set, manifests) {
            (Some(set), Ok(manifests)) => {
                server.prepare_for(lists(&manifests.applied).min(LISTS_AT_ONCE) + BESIDE_LISTS);
                let wanted = Wanted::ParentAndNamespaces(set, &manifests.applied);
                Box::pin(ReadBesideDiscovery::read(&server, wanted, &namespace)).await
            }
            _ => ReadBesideDiscovery::default(),
        }
    };
    let cluster = Box::pin(discover_beside(connection, kind_waits, read_beside)).await;
    let manifests = match read {
        Some(manifests) => manifests?,
        // Discovery failed before the manifests were read.
        None => Manifests::undivided(finished(reading.await)?),
    };
    let mut cluster = cluster?;
    cluster.add_definitions(&manifests.applied).await?;
    Ok((cluster, manifests))
}

/// Returns the number of lists that show the members with these manifests, as far as that is known before
/// discovery.
fn lists(manifests: &[Manifest]) -> usize {
    let kinds: BTreeSet<_> = manifests.iter().map(|manifest| &manifest.gvk).collect();
    let namespaces: BTreeSet<_> = manifests.iter().map(|manifest| &manifest.namespace).collect();
    match Reach::cheapest(namespaces.len()) {
        Reach::Cluster => kinds.len(),
        Reach::Namespace => kinds.len() * namespaces.len(),
    }
}

/// Returns the result of a thread, or passes its panic on.
fn finished<T>(joined: Result<T, JoinError>) -> T {
    match joined {
        Ok(returned) => returned,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "a server that is a function")]
mod tests {
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
        assert!(
            discover(connection, KindWaits::none(), Wanted::Nothing)
                .await
                .is_ok()
        );
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
