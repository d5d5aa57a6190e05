//! From kubeconfig and flags to a connection: whom to talk to, and as whom.
//!
//! What is said over the connection is the business of `apiserver`.

#![expect(clippy::disallowed_types, reason = "clients are made here")]

use std::path::PathBuf;
use std::time::Duration;

use kube::Config;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::apiserver::ApiServer;

/// What the command line says about the connection; `None` leaves it to the kubeconfig.
#[derive(Debug, Clone, Default)]
pub struct ConnectionOptions {
    /// `--kubeconfig`
    pub kubeconfig: Option<PathBuf>,
    /// `--context`
    pub context: Option<String>,
    /// `--cluster`
    pub cluster: Option<String>,
    /// `--user`
    pub user: Option<String>,
    /// `--as`
    pub impersonate: Option<String>,
    /// `--as-group`
    pub impersonate_groups: Vec<String>,
    /// `--server`
    pub server: Option<String>,
    /// `--token`
    pub token: Option<String>,
    /// `--certificate-authority`
    pub certificate_authority: Option<PathBuf>,
    /// `--client-certificate`
    pub client_certificate: Option<PathBuf>,
    /// `--client-key`
    pub client_key: Option<PathBuf>,
    /// `--tls-server-name`
    pub tls_server_name: Option<String>,
    /// `--insecure-skip-tls-verify`
    pub certificates: Certificates,
    /// `--request-timeout`
    pub request_timeout: Option<Duration>,
}

/// Whether the server's certificate is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certificates {
    /// As the kubeconfig says, which is checked by default.
    #[default]
    Verified,
    /// Whoever answers is believed.
    Unverified,
}

/// The limit of one request where the user sets none: the API server's own, and some.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);
/// A server that does not even answer the connection attempt is gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection, and the namespace that the kubeconfig's context names.
pub struct Connection {
    /// The server.
    pub server: ApiServer,
    /// The context's namespace, else `default`.
    pub namespace: String,
}

/// No connection can be made of the kubeconfig and the flags.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// A file named by flag or environment cannot be read.
    #[error("the kubeconfig {} cannot be read: {error}", path.display())]
    UnreadableKubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Neither a kubeconfig nor the environment of a Pod.
    #[error("there is no kubeconfig, and this is not a Pod of a cluster")]
    NoConfiguration,
    /// An address that is none.
    #[error("--server {0:?} is no address")]
    InvalidServer(String),
    /// Certificates or credentials that cannot be used.
    #[error("the connection cannot be set up: {0}")]
    Client(#[from] kube::Error),
    /// A certificate authority file that cannot be read.
    #[error("--certificate-authority {path:?} cannot be read: {error}", path = .0, error = .1)]
    CertificateAuthority(PathBuf, std::io::Error),
}

impl ConnectionError {
    /// Whether a flag or the kubeconfig names something that is not there.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::NoConfiguration | Self::Client(_))
    }

    /// What to type next.
    pub fn hint(&self) -> String {
        match self {
            Self::Kubeconfig(_) => {
                "`kubectl config get-contexts` shows the contexts that there are".to_owned()
            }
            Self::UnreadableKubeconfig { .. } => "check --kubeconfig".to_owned(),
            Self::NoConfiguration => "name a file with --kubeconfig or KUBECONFIG".to_owned(),
            Self::InvalidServer(_) => "write it as https://HOST:PORT".to_owned(),
            Self::Client(_) => "`kubectl cluster-info` uses the same kubeconfig".to_owned(),
            Self::CertificateAuthority(..) => "name a file of PEM certificates".to_owned(),
        }
    }
}

impl ConnectionOptions {
    /// Reads the kubeconfig and sets the connection up. Nothing is sent yet.
    pub async fn connect(&self) -> Result<Connection, ConnectionError> {
        let config = self.config().await?;
        let namespace = config.default_namespace.clone();
        let address = config.cluster_url.to_string();
        let client = ClientBuilder::try_from(config)?.build();
        let timeout = self
            .request_timeout
            .filter(|limit| !limit.is_zero())
            .unwrap_or(REQUEST_TIMEOUT);
        Ok(Connection {
            server: ApiServer::new(client, address.trim_end_matches('/'), timeout),
            namespace,
        })
    }

    async fn config(&self) -> Result<Config, ConnectionError> {
        let mut config = match self.kubeconfig()? {
            Some(mut kubeconfig) => {
                self.override_user(&mut kubeconfig);
                let options = KubeConfigOptions {
                    context: self.context.clone(),
                    cluster: self.cluster.clone(),
                    user: self.user.clone(),
                };
                Config::from_custom_kubeconfig(kubeconfig, &options).await?
            }
            None => match &self.server {
                Some(server) => Config::new(parse_server(server)?),
                None => Config::incluster().map_err(|_| ConnectionError::NoConfiguration)?,
            },
        };
        self.override_config(&mut config)?;
        Ok(config)
    }

    fn kubeconfig(&self) -> Result<Option<Kubeconfig>, ConnectionError> {
        if let Some(path) = &self.kubeconfig {
            return match Kubeconfig::read_from(path) {
                Ok(kubeconfig) => Ok(Some(kubeconfig)),
                Err(KubeconfigError::ReadConfig(error, path)) => {
                    Err(ConnectionError::UnreadableKubeconfig { path, error })
                }
                Err(error) => Err(error.into()),
            };
        }
        match Kubeconfig::read() {
            Ok(kubeconfig) => Ok(Some(kubeconfig)),
            Err(KubeconfigError::FindPath) => Ok(None),
            Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A token given by flag replaces whatever way of logging in the kubeconfig has.
    fn override_user(&self, kubeconfig: &mut Kubeconfig) {
        if self.token.is_none() {
            return;
        }
        for named in &mut kubeconfig.auth_infos {
            if let Some(user) = &mut named.auth_info {
                user.exec = None;
                user.auth_provider = None;
                user.token_file = None;
                user.username = None;
                user.password = None;
            }
        }
    }

    fn override_config(&self, config: &mut Config) -> Result<(), ConnectionError> {
        // Requests are repeated by `ApiServer`, which counts them.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        if let Some(server) = &self.server {
            config.cluster_url = parse_server(server)?;
        }
        if let Some(path) = &self.certificate_authority {
            let read = std::fs::read(path)
                .map_err(|error| ConnectionError::CertificateAuthority(path.clone(), error))?;
            let invalid = |error: String| {
                ConnectionError::CertificateAuthority(
                    path.clone(),
                    std::io::Error::new(std::io::ErrorKind::InvalidData, error),
                )
            };
            let certificates = pem::parse_many(read).map_err(|error| invalid(error.to_string()))?;
            config.root_cert = Some(certificates.into_iter().map(pem::Pem::into_contents).collect());
        }
        if self.certificates == Certificates::Unverified {
            config.accept_invalid_certs = true;
        }
        if let Some(name) = &self.tls_server_name {
            config.tls_server_name = Some(name.clone());
        }
        let auth = &mut config.auth_info;
        if let Some(token) = &self.token {
            auth.token = Some(token.clone().into());
        }
        if let Some(path) = &self.client_certificate {
            auth.client_certificate_data = None;
            auth.client_certificate = Some(path.display().to_string());
        }
        if let Some(path) = &self.client_key {
            auth.client_key_data = None;
            auth.client_key = Some(path.display().to_string());
        }
        if let Some(user) = &self.impersonate {
            auth.impersonate = Some(user.clone());
        }
        if !self.impersonate_groups.is_empty() {
            auth.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        Ok(())
    }
}

fn parse_server(server: &str) -> Result<http::Uri, ConnectionError> {
    let invalid = || ConnectionError::InvalidServer(server.to_owned());
    let with_scheme = if server.contains("://") {
        server.to_owned()
    } else {
        format!("https://{server}")
    };
    let uri: http::Uri = with_scheme.parse().map_err(|_| invalid())?;
    uri.authority().is_some().then_some(uri).ok_or_else(invalid)
}
