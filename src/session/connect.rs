//! Connects to the cluster and discovers what it serves.

use futures_util::future::join;

use crate::cli::GlobalFlags;
use crate::cluster::connection::{Connection, ConnectionOptions, Login};
use crate::cluster::discovery;
use crate::error::Error;
use crate::manifest::{self, Manifest, Manifests, Recursion, Source};
use crate::model::applyset::record::is_dns_label;
use crate::read::{Cluster, KindWaits};
use crate::report::{self, Place, Style};
use crate::settings;

/// Sets the connection up; nothing is sent yet.
pub async fn connect(shared: &GlobalFlags) -> Result<Connection, Error> {
    connect_for(shared, Login::Attended).await
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

/// The cluster of a connection, for people.
pub fn place(connection: &Connection) -> Place {
    Place {
        context: connection.context.clone(),
        server: connection.endpoint.address.clone(),
    }
}

/// Returns the waits of a command without a time limit, which prints what it waits for.
pub fn unlimited_waits(style: Style) -> KindWaits {
    KindWaits::new(None, move |text| report::note(text, style))
}

/// Asks the server what it serves.
pub async fn discover(connection: Connection, kind_waits: KindWaits) -> Result<Cluster, Error> {
    Ok(Cluster {
        discovery: discovery::fetch(&connection.server).await?,
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
