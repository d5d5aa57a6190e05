//! Builds the HTTP clients of a connection.

#![expect(clippy::disallowed_types, reason = "clients are made here")]

use std::sync::Arc;

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use super::early_connections::EarlyConnector;
use crate::cluster::apiserver::ConnectionOpener;

/// The clients of a connection.
pub(super) struct Clients {
    /// Sends all requests but probes.
    pub(super) client: Client,
    /// Opens a new connection for each request. Behind a proxy, it is the same as `client`.
    pub(super) probe_client: Client,
    /// Opens connections of `client` before requests need them; `None` behind a proxy.
    pub(super) connection_opener: Option<Arc<dyn ConnectionOpener>>,
}

/// Builds the clients for this configuration. Sends nothing.
pub(super) fn build_clients(config: Config) -> Result<Clients, kube::Error> {
    if config.proxy_url.is_none() {
        return build_direct_clients(&config);
    }
    let client = ClientBuilder::try_from(config)?.build();
    Ok(Clients {
        probe_client: client.clone(),
        client,
        connection_opener: None,
    })
}

/// Builds clients that use no proxy, as kube does, but with `TCP_NODELAY`. kube leaves Nagle's
/// algorithm on, which holds back the end of each larger manifest until the server has acknowledged
/// its beginning, and a server may take 40 ms for that.
fn build_direct_clients(config: &Config) -> Result<Clients, kube::Error> {
    let mut tcp_connector = HttpConnector::new();
    tcp_connector.enforce_http(false);
    tcp_connector.set_nodelay(true);
    // hyper divides this time limit among the addresses of the server. Without it, a first address that does not answer
    // would use up the whole time limit below, and the others would not be tried.
    tcp_connector.set_connect_timeout(config.connect_timeout);
    let tls_connector = config.rustls_https_connector_with_connector(tcp_connector)?;
    let mut connector = TimeoutConnector::new(tls_connector);
    connector.set_connect_timeout(config.connect_timeout);
    let probe_client: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(connector.clone());
    let early_connector = EarlyConnector::new(connector, config.cluster_url.clone());
    let client: HttpClient<_, Body> =
        HttpClient::builder(TokioExecutor::new()).build(early_connector.clone());
    Ok(Clients {
        client: add_layers(config, client)?,
        probe_client: add_layers(config, probe_client)?,
        connection_opener: Some(Arc::new(early_connector)),
    })
}

/// Adds to an HTTP client what each request to this server needs: its address, credentials and extra headers.
fn add_layers<C>(config: &Config, client: HttpClient<C, Body>) -> Result<Client, kube::Error>
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
