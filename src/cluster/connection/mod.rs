//! Turns the kubeconfig, the flags and the environment into a connection to a server as a user.
//!
//! `apiserver` sends the requests.

mod apply_flags_to_kubeconfig;
mod client;
mod contradictory_settings;
mod early_connections;
mod error;
mod exec_credential_plugin;
mod home;
mod kubeconfig;
mod kuberc;
mod options;
mod user_credentials;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use kube::Config;
use kube::config::{Cluster, ExecAuthCluster, Kubeconfig};
use tokio::task::spawn_blocking;

use self::apply_flags_to_kubeconfig::ConnectionSettings;
use self::error::{invalid_kubeconfig, unusable_credentials};
use self::kubeconfig::Chosen;
pub use self::options::{ConnectionOptions, PluginPrompts};
use crate::cluster::apiserver::ApiServer;
use crate::cluster::identity::ClusterUid;
use crate::cluster::proxy::Proxy;
use crate::error::{Error, ErrorKind};
use crate::model::text::format_os_error;
use crate::regular_file::{self, SMALL};

/// The default time limit of one request. It is longer than the API server's own limit, so that the server's error
/// arrives.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);
/// The time limit of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection, and the namespace of the kubeconfig's context.
pub struct Connection {
    /// Sends the requests of this connection.
    pub server: ApiServer,
    /// The context's namespace, else `default`.
    pub namespace: String,
    /// The server's address and authorities.
    pub endpoint: Endpoint,
    /// The kubeconfig's context; `None` without one.
    pub context: Option<String>,
    /// The UID of the cluster, which is asked for during discovery; `None` if nothing needs it.
    pub uid: Option<ClusterUid>,
}

/// The part of a connection that does not depend on the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Scheme, host, port and path, without credentials.
    pub address: String,
    /// The certificates of the authority, in DER; empty if the certificates of the system are used.
    pub authorities: Vec<Vec<u8>>,
}

impl Endpoint {
    fn from_config(config: &Config) -> Self {
        let url = &config.cluster_url;
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let host = strip_user_and_password(authority);
        let scheme = url.scheme_str().unwrap_or("https");
        Self {
            address: format!("{scheme}://{host}{}", url.path().trim_end_matches('/')),
            authorities: config.root_cert.clone().unwrap_or_default(),
        }
    }
}

impl ConnectionOptions {
    /// Reads the kubeconfig, runs its credentials plugin, and sets up the connection. Nothing is
    /// sent yet.
    pub async fn connect(&self) -> Result<Connection, Error> {
        let options = self.clone();
        match spawn_blocking(move || options.log_in_and_set_up()).await {
            Ok(connection) => connection,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Reads the kubeconfig; an empty one if there is none.
    pub fn read_kubeconfig(&self) -> Result<Kubeconfig, Error> {
        Ok(kubeconfig::read(self.kubeconfig.as_deref())?.unwrap_or_default())
    }

    /// Does what [`Self::connect`] does, and blocks while it reads files and while the plugin runs.
    fn log_in_and_set_up(&self) -> Result<Connection, Error> {
        let mut context = None;
        let kubeconfig = kubeconfig::read(self.kubeconfig.as_deref())?;
        let (mut config, proxy) = match kubeconfig {
            Some(kubeconfig) if !kubeconfig::is_empty(&kubeconfig) => {
                let files = join_paths(&self.existing_kubeconfig_paths(), " and ");
                let chosen = kubeconfig::select_cluster_and_user(&kubeconfig, &files, self)?;
                context.clone_from(&chosen.context);
                self.build_config(&chosen)?
            }
            _ if self.server.is_some() => self.build_config(&Chosen::default())?,
            // The user named a kubeconfig, so the credentials of the Pod, which may be for another cluster, are not
            // used.
            Some(_) => {
                let paths = join_paths(&self.existing_kubeconfig_paths(), " and ");
                return Err(Error::usage(
                    format!("kubeconfig {paths}: it has no cluster and no context"),
                    "add a cluster and a context to it; to use the ServiceAccount of a Pod, unset KUBECONFIG",
                ));
            }
            None => {
                self.refuse_names_without_kubeconfig()?;
                self.build_pod_config()?
            }
        };
        // Requests are repeated by `ApiServer`, which counts them.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        let credential =
            user_credentials::log_in(&mut config.auth_info, self.plugin_prompts, self.kuberc.as_deref())?;
        config.proxy_url = proxy.as_ref().map(|proxy| proxy.uri().clone());
        let namespace = config.default_namespace.clone();
        let endpoint = Endpoint::from_config(&config);
        let clients = client::build_clients(config)
            .map_err(|error| unusable_credentials(context.as_deref(), &error))?;
        let timeout = self
            .request_timeout
            .filter(|limit| !limit.is_zero())
            .unwrap_or(REQUEST_TIMEOUT);
        Ok(Connection {
            server: ApiServer::new(clients.client, &endpoint.address, timeout)
                .with_probe_client(clients.probe_client)
                .with_credential(credential)
                .with_proxy_in_messages(proxy)
                .with_connection_opener(clients.connection_opener),
            namespace,
            endpoint,
            context,
            uid: None,
        })
    }

    /// Makes the configuration. The proxy is returned separately, since a configuration has no place for the name of
    /// the setting that holds the proxy.
    fn build_config(&self, chosen: &Chosen) -> Result<(Config, Option<Proxy>), Error> {
        let ConnectionSettings {
            server,
            cluster,
            mut user,
        } = apply_flags_to_kubeconfig::resolve(self, chosen)?;
        let mut config = Config::new(server);
        let proxy = match non_empty(cluster.proxy_url.as_ref()) {
            Some(address) => {
                let setting_name = format!("proxy-url of the cluster {:?}", chosen.cluster_name);
                Some(Proxy::parse(address, &setting_name)?)
            }
            None => Proxy::from_environment(&config.cluster_url)?,
        };
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
        config.root_cert = read_root_certificates(&cluster)?;
        if let Some(exec) = &mut user.exec
            && exec.provide_cluster_info
        {
            exec.cluster =
                Some(ExecAuthCluster::try_from(&cluster).map_err(|error| invalid_kubeconfig(&error))?);
        }
        config.tls_server_name = cluster.tls_server_name;
        config.auth_info = user;
        if let Some(namespace) = &chosen.namespace {
            config.default_namespace.clone_from(namespace);
        }
        Ok((config, proxy))
    }

    /// Refuses `--context`, `--cluster` and `--user` if there is no kubeconfig, as kubectl does: the user means another
    /// cluster than the one that this Pod runs in.
    fn refuse_names_without_kubeconfig(&self) -> Result<(), Error> {
        let names = [
            ("context", &self.context),
            ("cluster", &self.cluster),
            ("user", &self.user),
        ];
        for (what, name) in names {
            if let Some(name) = non_empty(name.as_ref()) {
                return Err(Error::usage(
                    format!(
                        "{what} {name:?} does not exist: {}",
                        self.describe_missing_kubeconfig()
                    ),
                    format!(
                        "set --kubeconfig or KUBECONFIG; without --{what}, a Pod uses its ServiceAccount"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Makes the configuration that every Pod has. Flags replace the token, the authority and the impersonated user,
    /// and `POD_NAMESPACE` the namespace; the server's certificate is always verified, as in kubectl.
    fn build_pod_config(&self) -> Result<(Config, Option<Proxy>), Error> {
        let mut config = Config::incluster().map_err(|_| self.no_kubeconfig_found())?;
        if let Some(namespace) = non_empty(std::env::var("POD_NAMESPACE").ok().as_ref()) {
            namespace.clone_into(&mut config.default_namespace);
        }
        let authority = self.certificate_authority.as_ref();
        let chosen = Chosen {
            cluster: Cluster {
                server: Some(config.cluster_url.to_string()),
                certificate_authority: authority.map(|path| path.display().to_string()),
                tls_server_name: self.tls_server_name.clone(),
                ..Cluster::default()
            },
            user: std::mem::take(&mut config.auth_info),
            ..Chosen::default()
        };
        let verified = Self {
            insecure_skip_tls_verify: false,
            ..self.clone()
        };
        let ConnectionSettings { cluster, user, .. } =
            apply_flags_to_kubeconfig::resolve(&verified, &chosen)?;
        if let Some(certificates) = read_root_certificates(&cluster)? {
            config.root_cert = Some(certificates);
            config.root_cert_file = None;
        }
        config.tls_server_name = cluster.tls_server_name;
        config.auth_info = user;
        let proxy = Proxy::from_environment(&config.cluster_url)?;
        Ok((config, proxy))
    }

    fn no_kubeconfig_found(&self) -> Error {
        let text = format!("{}, and not running in a Pod", self.describe_missing_kubeconfig());
        Error::new(ErrorKind::Cluster, text).with_hint("set --kubeconfig or KUBECONFIG")
    }

    /// `no kubeconfig at /home/me/.kube/config`
    fn describe_missing_kubeconfig(&self) -> String {
        let paths = self.searched_kubeconfig_paths();
        let at = if paths.is_empty() { "" } else { " at " };
        format!("no kubeconfig{at}{}", join_paths(&paths, " or "))
    }

    fn existing_kubeconfig_paths(&self) -> Vec<PathBuf> {
        let mut paths = self.searched_kubeconfig_paths();
        paths.retain(|path| path.exists());
        paths
    }

    /// Returns the paths at which kubeconfigs were looked for.
    fn searched_kubeconfig_paths(&self) -> Vec<PathBuf> {
        match &self.kubeconfig {
            Some(path) if !path.as_os_str().is_empty() => vec![path.clone()],
            _ => kubeconfig::default_paths(),
        }
    }
}

fn join_paths(paths: &[PathBuf], separator: &str) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(separator)
}

/// Returns the text unless it is empty: an empty text counts as unset in kubeconfigs and flags.
fn non_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Reads the certificates of the authority, in DER; `None` if the certificates of the system are to be used.
fn read_root_certificates(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>, Error> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let (place, pem_text) = match (
        non_empty(cluster.certificate_authority_data.as_ref()),
        non_empty(cluster.certificate_authority.as_ref()),
    ) {
        (Some(data), _) => (
            "certificate-authority-data",
            STANDARD.decode(data).map_err(|error| error.to_string()),
        ),
        (None, Some(path)) => (
            path,
            regular_file::read(Path::new(path), SMALL).map_err(|error| format_os_error(&error)),
        ),
        (None, None) => return Ok(None),
    };
    let invalid = |reason: String| {
        Error::usage(
            format!("certificate authority {place}: cannot be used: {reason}"),
            "pass a file of PEM certificates",
        )
    };
    let certificates: Vec<Vec<u8>> = pem::parse_many(pem_text.map_err(invalid)?)
        .map_err(|error| invalid(error.to_string()))?
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(pem::Pem::into_contents)
        .collect();
    if certificates.is_empty() {
        return Err(invalid("the file contains no certificate".to_owned()));
    }
    Ok(Some(certificates))
}

/// Returns a text of a file or a program; `None` if it is empty, which means the same as a missing text.
fn unless_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Removes the user name and the password from an address.
fn strip_user_and_password(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, host)| host)
}

fn parse_server(server: &str) -> Result<Uri, Error> {
    let invalid = || {
        let server = strip_user_and_password(server);
        Error::usage(
            format!("{server:?} is not a valid server URL"),
            "write it as https://HOST:PORT",
        )
    };
    let address = if server.contains("://") {
        server.to_owned()
    } else {
        format!("https://{server}")
    };
    let uri: Uri = address.parse().map_err(|_| invalid())?;
    let authority = uri.authority().ok_or_else(invalid)?;
    let names_port = strip_user_and_password(authority.as_str()) != authority.host();
    if names_port && authority.port_u16().is_none() {
        return Err(invalid());
    }
    Ok(uri)
}

#[cfg(test)]
mod tests;
