//! Connects to the cluster and discovers what it serves.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::try_join3;
use tokio::task::{JoinError, spawn_blocking};

use crate::cli::GlobalFlags;
use crate::cluster::connection::{Connection, ConnectionOptions, PluginPrompts};
use crate::cluster::discovery::{self, Discovery, KindLookup};
use crate::cluster::identity::ClusterUid;
use crate::error::Error;
use crate::execute::estimate_concurrent_writes_at_start;
use crate::manifest::{self, Manifest, Manifests, Recursion, Source};
use crate::model::applyset::record::is_dns_label;
use crate::model::list_targets::Reach;
use crate::model::resource::Resource;
use crate::read::{Cluster, EarlyReads, KindWaits, Wanted, unknowable_kind};
use crate::report::{self, ContextAndServer, Style};
use crate::settings::{self, SetReference};

/// The connections for the requests before the lists of members: two for discovery, one for the parent, and one for a
/// namespace.
const CONNECTIONS_BEFORE_LISTS: usize = 4;
/// The most connections that are opened for the lists of members before discovery allows to send these lists.
const MAX_CONNECTIONS_FOR_LISTS: usize = 16;
/// The connections in which a first apply asks, while it lists, what the user may do and who the user is.
const CONNECTIONS_ABOUT_USER: usize = 2;
/// The time after which a note says that the program still waits for an answer.
const LONG_SILENCE: Duration = Duration::from_secs(5);
/// The time between two checks whether requests wait for an answer.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Sets the connection up for a command that can print its result as a document; nothing is sent yet. Only `-o json`,
/// `yaml` and `kyaml` print the UID of the cluster, so [`discover`] asks for the UID only with these formats.
pub async fn connect(shared: &GlobalFlags) -> Result<Connection, Error> {
    let style = settings::read_style(shared);
    let connection = connect_with_prompts(shared, PluginPrompts::AsKubeconfig).await?;
    spawn_notes_on_silence(&connection, style);
    Ok(Connection {
        uid: style.has_document().then(ClusterUid::default),
        ..connection
    })
}

/// Prints a note each time that the server has not answered any request for some seconds. Otherwise, if a firewall
/// drops the requests, the user would see nothing until they time out, which may take more than a minute.
fn spawn_notes_on_silence(connection: &Connection, style: Style) {
    let (server, address) = (connection.server.clone(), connection.endpoint.address.clone());
    tokio::spawn(async move {
        let mut is_noted = false;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let silence = server.time_without_answer();
            let is_long = silence.is_some_and(|time| time >= LONG_SILENCE);
            if is_long && !is_noted {
                report::print_note(&format!("still waiting for an answer from {address}"), style);
            }
            is_noted = is_long;
        }
    });
}

/// Sets the connection up; `plugin_prompts` says whether the user can be asked to log in.
pub async fn connect_with_prompts(
    shared: &GlobalFlags,
    plugin_prompts: PluginPrompts,
) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        plugin_prompts,
        ..settings::read_connection(&shared.connection)?
    };
    set_up_connection(options, shared).await
}

/// Sets the connection up as the user of the kubeconfig's context, whatever `--as` and `--user` say: for `rbac`, these
/// flags name the subjects of the permissions that it prints, and the subjects need not exist yet.
pub async fn connect_as_user_of_context(shared: &GlobalFlags) -> Result<Connection, Error> {
    let options = ConnectionOptions {
        user: None,
        impersonate: None,
        impersonate_groups: Vec::new(),
        impersonate_uid: None,
        ..settings::read_connection(&shared.connection)?
    };
    set_up_connection(options, shared).await
}

/// Sets the connection up, without a request to the server. A credentials plugin may run.
async fn set_up_connection(options: ConnectionOptions, shared: &GlobalFlags) -> Result<Connection, Error> {
    let mut connection = options.connect().await?;
    connection.server = connection
        .server
        .with_limit_of_early_connections(shared.concurrency.into());
    if let Some(namespace) = &shared.namespace {
        if !is_dns_label(namespace) {
            return Err(Error::usage(
                format!("--namespace: invalid namespace {namespace:?}"),
                "use at most 63 lower-case letters, digits and \"-\"",
            ));
        }
        connection.namespace.clone_from(namespace);
    }
    Ok(connection)
}

/// Returns the context and the server of a connection, for messages and documents.
pub fn context_and_server(connection: &Connection) -> ContextAndServer {
    ContextAndServer {
        context: connection.context.clone(),
        server: connection.endpoint.address.clone(),
        uid: connection.uid.clone().unwrap_or_default(),
    }
}

/// Returns the waits for kinds that are not served yet, for a command without `--timeout`. They print a note.
pub fn unlimited_kind_waits(style: Style) -> KindWaits {
    KindWaits::new(|| None, move |text| report::print_note(text, style))
}

/// Asks the server what it serves. At the same time, asks for the cluster's UID if the connection needs it, and reads
/// those of the `wanted` objects that can be read without discovery.
pub async fn discover(
    connection: Connection,
    kind_waits: KindWaits,
    wanted: Wanted<'_>,
) -> Result<Cluster, Error> {
    let (server, namespace) = (connection.server.clone(), connection.namespace.clone());
    let reads = Box::pin(EarlyReads::read(&server, wanted, &namespace));
    discover_while_reading(connection, kind_waits, reads).await
}

/// Asks the server what it serves while `reads` run.
async fn discover_while_reading(
    connection: Connection,
    kind_waits: KindWaits,
    reads: impl Future<Output = EarlyReads>,
) -> Result<Cluster, Error> {
    let server = &connection.server;
    let identify = async {
        if let Some(uid) = &connection.uid {
            uid.fill_from_server(server).await;
        }
        Ok(())
    };
    // `try_join3` returns as soon as one of them fails: an error of discovery does not wait for the other reads.
    let reads = async { Ok(reads.await) };
    let (discovery, (), early_reads) = try_join3(discovery::fetch(server), identify, reads).await?;
    Ok(Cluster {
        discovery,
        early_reads,
        server: connection.server,
        namespace: connection.namespace,
        endpoint: connection.endpoint,
        kind_waits,
    })
}

/// Reads the manifests and discovery concurrently, and adds the kinds that the manifests define. If both fail, returns
/// the error of the manifests.
///
/// `divide` separates the manifests to be applied from hooks and others. With `set`, its parent and the namespaces of
/// the manifests are read as soon as the manifests are known.
pub async fn discover_and_read_manifests(
    connection: Connection,
    sources: Vec<Source>,
    recursion: Recursion,
    kind_waits: KindWaits,
    divide: impl FnOnce(Vec<Manifest>) -> Manifests,
    set: Option<&SetReference>,
) -> Result<(Cluster, Manifests), Error> {
    if set.is_some() {
        // The parent and the namespaces are read once the manifests are known. Discovery occupies its connections by
        // then, so these reads would have to wait for connections of their own.
        connection
            .server
            .open_connections_for(CONNECTIONS_BEFORE_LISTS + usize::from(connection.uid.is_some()));
    }
    let mut reading_task = spawn_blocking(move || manifest::read(&sources, recursion));
    let mut manifests_read = None;
    let (server, namespace) = (connection.server.clone(), connection.namespace.clone());
    let early_reads = async {
        let manifests = manifests_read.insert(unwrap_joined((&mut reading_task).await).map(divide));
        match (set, manifests) {
            (Some(set), Ok(manifests)) => {
                let for_lists = estimate_list_count(&manifests.applied).min(MAX_CONNECTIONS_FOR_LISTS);
                server.open_connections_for(for_lists + CONNECTIONS_ABOUT_USER);
                let wanted = Wanted::ParentAndNamespaces(set, &manifests.applied);
                EarlyReads::read(&server, wanted, &namespace).await
            }
            _ => EarlyReads::default(),
        }
    };
    let cluster = discover_while_reading(connection, kind_waits, early_reads).await;
    let manifests = match manifests_read {
        Some(manifests) => manifests?,
        // Discovery failed before the manifests were read. They are read only for their own error, which comes first;
        // `cluster?` ends the run otherwise.
        None => Manifests::with_hooks_not_separated(unwrap_joined(reading_task.await)?),
    };
    let mut cluster = cluster?;
    cluster
        .complete_discovery_for_manifests(&manifests.applied)
        .await?;
    Ok((cluster, manifests))
}

/// Opens connections for the writes of these manifests if the server has shown that the parent does not exist. A set
/// without a parent hardly ever has members, so nearly all objects will be written, and the connections are open by the
/// time that the lists have shown which objects exist.
pub fn open_connections_for_new_set(cluster: &Cluster, manifests: &Manifests) {
    if cluster.early_reads.is_parent_known_missing() {
        cluster
            .server
            .open_connections_for(estimate_concurrent_writes_at_start(manifests.applied.len()));
    }
}

/// Returns the number of lists of a first apply with these manifests: those that show the members where the manifests
/// are, and one of each kind in all namespaces. Whether the set has a parent is known too late to open connections, so
/// a later run leaves the latter unused. It is an estimate: before discovery, the program does not know which kinds are
/// namespaced, nor what the record adds.
fn estimate_list_count(manifests: &[Manifest]) -> usize {
    let kinds: BTreeSet<_> = manifests.iter().map(|manifest| &manifest.gvk).collect();
    let namespaces: BTreeSet<_> = manifests.iter().map(|manifest| &manifest.namespace).collect();
    let where_manifests_are = match Reach::cheapest(namespaces.len()) {
        Reach::Cluster => kinds.len(),
        Reach::Namespace => kinds.len() * namespaces.len(),
    };
    where_manifests_are + kinds.len()
}

/// Finds the resource that a user has named in a flag as for kubectl: `Job`, `jobs`, `jobs.batch`.
///
/// # Errors
///
/// The server does not have it, or does not answer for its group.
pub fn find_resource_of_flag<'d>(
    discovery: &'d Discovery,
    flag: &str,
    name: &str,
) -> Result<&'d Resource, Error> {
    match discovery.find_by_argument(name) {
        KindLookup::Found(resource) => Ok(resource),
        KindLookup::GroupFailed(failure) => Err(unknowable_kind(name, failure)),
        KindLookup::Absent => Err(Error::usage(
            format!("{flag}: the server doesn't have a resource type {name:?}"),
            "list the types with `kubectl api-resources`",
        )),
    }
}

/// Returns the result of a blocking task, or passes its panic on.
pub(super) fn unwrap_joined<T>(joined: Result<T, JoinError>) -> T {
    match joined {
        Ok(returned) => returned,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::sync::Barrier;

    use super::*;
    use crate::cluster::apiserver::{ApiServer, ConnectionOpener};
    use crate::cluster::connection::Endpoint;

    /// Returns the body of the server's answer to a request for discovery or for an object.
    fn body(path: &str) -> Value {
        let list = |group: &str| {
            let versions = json!([{"version": "v1", "resources": []}]);
            let group = json!({"metadata": {"name": group}, "versions": versions});
            json!({"kind": "APIGroupDiscoveryList", "items": [group]})
        };
        match path {
            "/api" => list(""),
            "/apis" => list("apps"),
            _ => json!({"metadata": {"uid": "1c2a"}}),
        }
    }

    fn connection(client: kube::Client, uid: Option<ClusterUid>) -> Connection {
        let address = "https://example.com".to_owned();
        Connection {
            server: ApiServer::new(client, &address, Duration::from_secs(10)),
            namespace: "default".to_owned(),
            endpoint: Endpoint {
                address,
                authorities: Vec::new(),
            },
            context: None,
            uid,
        }
    }

    /// Discovers with a server that answers once so many requests have arrived, and returns their paths.
    async fn paths_at_once(count: usize, uid: Option<ClusterUid>) -> BTreeSet<String> {
        let paths = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&paths);
        let barrier = Arc::new(Barrier::new(count));
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let body = body(&path);
            seen.lock().expect("no panic").insert(path);
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes())))
            }
        });
        let connection = connection(kube::Client::new(service, "default"), uid);
        assert!(
            discover(connection, KindWaits::never(), Wanted::Nothing)
                .await
                .is_ok()
        );
        paths.lock().expect("no panic").clone()
    }

    /// Records how many connections were wanted.
    #[derive(Default)]
    struct NotingOpener(Mutex<Vec<usize>>);

    impl ConnectionOpener for NotingOpener {
        fn open_up_to(&self, wanted: usize) {
            self.0.lock().expect("no panic").push(wanted);
        }

        fn close_unused_connections(&self) {}
    }

    /// Returns the numbers of connections that an apply of twelve ConfigMaps wants before it lists. The server answers
    /// the GET of the parent with the status code `parent`.
    async fn connections_wanted(parent: StatusCode) -> Vec<usize> {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let path = request.uri().path();
            let (code, body) = if path.ends_with("/secrets/web") && parent == StatusCode::NOT_FOUND {
                let details = json!({"name": "web", "kind": "secrets"});
                let status = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": details});
                (parent, status)
            } else {
                (StatusCode::OK, body(path))
            };
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = code;
            Ok::<_, Infallible>(response)
        });
        let opener = Arc::new(NotingOpener::default());
        let connection = connection(kube::Client::new(service, "default"), None);
        let connection = Connection {
            server: connection.server.with_connection_opener(Some(opener.clone())),
            ..connection
        };
        let directory = tempfile::tempdir().expect("a directory");
        let documents = (0..12)
            .map(|number| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-{number}\n---\n"));
        let file = directory.path().join("web.yaml");
        std::fs::write(&file, documents.collect::<String>()).expect("a file");
        let set = SetReference {
            resource: None,
            name: "web".to_owned(),
            namespace: None,
        };
        let (cluster, manifests) = discover_and_read_manifests(
            connection,
            vec![Source::Path(file)],
            Recursion::Flat,
            KindWaits::never(),
            Manifests::with_hooks_not_separated,
            Some(&set),
        )
        .await
        .unwrap_or_else(|error| panic!("{error}"));
        open_connections_for_new_set(&cluster, &manifests);
        opener.0.lock().expect("no panic").clone()
    }

    #[tokio::test]
    async fn connections_are_open_before_requests_need_them() {
        // Two lists of ConfigMaps, and two questions about the user.
        let before_and_for_lists = [4, 4];
        assert_eq!(connections_wanted(StatusCode::OK).await, before_and_for_lists);
        let [before, lists] = before_and_for_lists;
        assert_eq!(
            connections_wanted(StatusCode::NOT_FOUND).await,
            [before, lists, 12]
        );
    }

    #[tokio::test]
    async fn the_uid_is_asked_for_during_discovery_if_it_is_needed() {
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
