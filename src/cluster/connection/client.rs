//! The HTTP client of a connection.

#![expect(clippy::disallowed_types, reason = "clients are made here")]

use std::sync::Arc;

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use super::early_connections::EarlyConnections;
use crate::cluster::apiserver::ConnectionOpener;

/// Makes the client for this configuration, and what opens connections for it early; `None` through a
/// proxy. Nothing is sent yet.
pub(super) fn client(config: Config) -> Result<(Client, Option<Arc<dyn ConnectionOpener>>), kube::Error> {
    if config.proxy_url.is_some() {
        Ok((ClientBuilder::try_from(config)?.build(), None))
    } else {
        let (client, opener) = direct(&config)?;
        Ok((client, Some(opener)))
    }
}

/// Makes a client without a proxy, as kube does, but with `TCP_NODELAY`. kube leaves Nagle's
/// algorithm on, which holds back the end of each larger manifest until the server has acknowledged
/// its beginning, and a server may take 40 ms for that.
fn direct(config: &Config) -> Result<(Client, Arc<dyn ConnectionOpener>), kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    let connector = EarlyConnections::new(connector);
    let opener = connector.opener(config.cluster_url.clone());
    let client: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok((Client::new(service, config.default_namespace.clone()), opener))
}
