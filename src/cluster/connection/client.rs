//! The HTTP client of a connection.

#![expect(clippy::disallowed_types, reason = "clients are made here")]

use std::sync::Arc;

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use super::early_connections::EarlyConnections;
use crate::cluster::apiserver::ConnectionOpener;

/// The clients of a connection.
pub(super) struct Clients {
    pub(super) client: Client,
    /// Opens a connection for each request; the same client through a proxy.
    pub(super) probe_client: Client,
    /// Opens connections for the first client early; `None` through a proxy.
    pub(super) opener: Option<Arc<dyn ConnectionOpener>>,
}

/// Makes the clients for this configuration. Nothing is sent yet.
pub(super) fn clients(config: Config) -> Result<Clients, kube::Error> {
    if config.proxy_url.is_none() {
        return direct(&config);
    }
    let client = ClientBuilder::try_from(config)?.build();
    Ok(Clients {
        probe_client: client.clone(),
        client,
        opener: None,
    })
}

/// Makes clients without a proxy, as kube does, but with `TCP_NODELAY`. kube leaves Nagle's
/// algorithm on, which holds back the end of each larger manifest until the server has acknowledged
/// its beginning, and a server may take 40 ms for that.
fn direct(config: &Config) -> Result<Clients, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    // Divided among the addresses of the server: the first one may be down.
    connector.set_connect_timeout(config.connect_timeout);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    let probe_client: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(connector.clone());
    let connector = EarlyConnections::new(connector);
    let opener = connector.opener(config.cluster_url.clone());
    let client: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(connector);
    Ok(Clients {
        client: with_layers(config, client)?,
        probe_client: with_layers(config, probe_client)?,
        opener: Some(opener),
    })
}

fn with_layers<C>(config: &Config, client: HttpClient<C, Body>) -> Result<Client, kube::Error>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Client::new(service, config.default_namespace.clone()))
}
