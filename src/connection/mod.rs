//! From kubeconfig and flags to a connection: whom to talk to, and as whom.
//!
//! What is said over the connection is the business of `apiserver`.

#![expect(clippy::disallowed_types, reason = "clients are made here")]

mod exec;
mod kubeconfig;
mod login;

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, KubeconfigError};
use kube::{Client, Config};
use tokio::task::spawn_blocking;
use tower::{BoxError, ServiceBuilder};

pub use self::exec::{ExecError, ExecFault};
use self::kubeconfig::{Chosen, Names};
use crate::apiserver::{ApiServer, Credential};
use crate::proxy::{InvalidProxy, Proxy};

/// What the command line says about the connection; `None` leaves it to the kubeconfig.
#[derive(Clone, Default)]
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
    /// `--as-uid`
    pub impersonate_uid: Option<String>,
    /// `--server`
    pub server: Option<String>,
    /// `--token`
    pub token: Option<String>,
    /// `--username`
    pub username: Option<String>,
    /// `--password`
    pub password: Option<String>,
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
    /// Whether somebody can be asked to log in.
    pub login: Login,
}

/// Whether a credentials plugin may ask whoever sits at the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Login {
    /// As the kubeconfig says.
    #[default]
    Attended,
    /// Never, nor may it say anything: nobody expects it now.
    Silent,
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

/// What a kubeconfig names, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubeconfigNames {
    /// For `--context`.
    pub contexts: Vec<String>,
    /// For `--cluster`.
    pub clusters: Vec<String>,
    /// For `--user`.
    pub users: Vec<String>,
}

/// A connection, and the namespace that the kubeconfig's context names.
pub struct Connection {
    /// The server.
    pub server: ApiServer,
    /// The context's namespace, else `default`.
    pub namespace: String,
    /// Where it leads.
    pub endpoint: Endpoint,
}

/// What a kubeconfig says of the server, whoever asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Scheme, host, port and path, without credentials.
    pub address: String,
    /// The certificates that the server's is checked against, in DER; none where those of the
    /// system count.
    pub authorities: Vec<Vec<u8>>,
}

/// No connection can be made of the kubeconfig and the flags.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// A kubeconfig holds something else. What, is not shown, for it may be a credential.
    #[error("the kubeconfig {}{} cannot be parsed", path.display(), position(*.line_and_column))]
    UnparsableKubeconfig {
        /// The file.
        path: PathBuf,
        /// Where in it, both counted from 1, if that is known.
        line_and_column: Option<(u64, u64)>,
    },
    /// A file named by flag or environment cannot be read.
    #[error("the kubeconfig {} cannot be read: {error}", path.display())]
    UnreadableKubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Neither a kubeconfig nor the environment of a Pod.
    #[error("there is no kubeconfig{}, and this is not a Pod of a cluster", at(.0))]
    NoConfiguration(Vec<PathBuf>),
    /// A name that the kubeconfig does not have.
    #[error("the kubeconfig has no {what} {name:?}")]
    NotInKubeconfig {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A kubeconfig that names no server.
    #[error("the kubeconfig says of no server which one is meant")]
    NoServer,
    /// Groups, a uid or more are impersonated, and nobody who would have them.
    #[error("a group, a uid or an extra is impersonated, but no user who has it")]
    ImpersonatedNobody,
    /// An address that is none.
    #[error("{0:?} is no address of a server")]
    InvalidServer(String),
    /// A proxy that cannot be used.
    #[error(transparent)]
    Proxy(#[from] InvalidProxy),
    /// A way of logging in that kubectl has given up, too.
    #[error("the auth-provider {0:?} of the kubeconfig is not supported, by kubectl neither")]
    AuthProvider(String),
    /// The program that fetches credentials gave none.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A token file that holds no token.
    #[error("the token file {path} cannot be used: {reason}", path = .0.display(), reason = .1)]
    TokenFile(PathBuf, String),
    /// A token with characters that no token has.
    #[error("the token holds characters that cannot be sent")]
    UnusableToken,
    /// Certificates or credentials that cannot be used.
    #[error("the connection cannot be set up: {0}")]
    Client(#[from] kube::Error),
    /// A file of a certificate or a key that cannot be read.
    #[error("the {what} {} cannot be read: {error}", path.display())]
    UnreadableFile {
        /// `client certificate` or `client key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A certificate authority file that cannot be read.
    #[error("the certificate authority {path} cannot be used: {reason}", path = .0.display(), reason = .1)]
    CertificateAuthority(PathBuf, String),
}

impl ConnectionError {
    /// Whether a flag or the kubeconfig is wrong, and not what they lead to.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoConfiguration(_) | Self::Client(_) => false,
            Self::Exec(error) => error.fault.is_configuration(),
            _ => true,
        }
    }

    /// What to type next.
    pub fn hint(&self) -> String {
        match self {
            Self::Kubeconfig(_) | Self::NoServer => {
                "`kubectl config get-contexts` shows the contexts that there are".to_owned()
            }
            Self::NotInKubeconfig { what, known, .. } if known.is_empty() => {
                format!("it has no {what} at all; check --kubeconfig and KUBECONFIG")
            }
            Self::NotInKubeconfig { known, .. } => format!("it has {}", known.join(", ")),
            Self::UnparsableKubeconfig { path, .. } => {
                format!(
                    "`kubectl config view --kubeconfig {}` reads the same file",
                    path.display()
                )
            }
            Self::UnreadableKubeconfig { .. } => "check --kubeconfig and KUBECONFIG".to_owned(),
            Self::ImpersonatedNobody => "add --as USER".to_owned(),
            Self::NoConfiguration(_) => "name a file with --kubeconfig or KUBECONFIG".to_owned(),
            Self::InvalidServer(_) => "write it as https://HOST:PORT".to_owned(),
            Self::Proxy(_) => {
                "write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT".to_owned()
            }
            Self::AuthProvider(_) => {
                "use the exec plugin of your provider, such as gke-gcloud-auth-plugin or kubelogin".to_owned()
            }
            Self::Exec(error) => exec_hint(error),
            Self::TokenFile(..) | Self::UnusableToken => {
                "`kubectl auth whoami` shows whether the same token works there".to_owned()
            }
            Self::Client(_) => "`kubectl cluster-info` uses the same kubeconfig".to_owned(),
            Self::CertificateAuthority(..) => "name a file of PEM certificates".to_owned(),
            Self::UnreadableFile { .. } => {
                "check --client-certificate, --client-key, and the user of the kubeconfig".to_owned()
            }
        }
    }
}

/// Words of the kubeconfig, in one line.
fn exec_hint(error: &ExecError) -> String {
    match (&error.fault, &error.install_hint) {
        (ExecFault::NotInstalled, Some(hint)) => hint.split_whitespace().collect::<Vec<_>>().join(" "),
        (ExecFault::NotInstalled, None) => "install it, or put it on the search path".to_owned(),
        (ExecFault::ApiVersion(_) | ExecFault::OtherVersion { .. }, _) => {
            "update the plugin, and let it write the kubeconfig anew".to_owned()
        }
        (ExecFault::NoTerminal, _) => {
            "log in at a terminal first, or use credentials that ask nothing".to_owned()
        }
        _ => "log in again as the plugin says; `kubectl auth whoami` runs it, too".to_owned(),
    }
}

impl ConnectionOptions {
    /// Reads the kubeconfig, runs the program that it names for credentials, and sets the
    /// connection up. Nothing is sent yet.
    pub async fn connect(&self) -> Result<Connection, ConnectionError> {
        let options = self.clone();
        let (config, proxy, credential) = match spawn_blocking(move || options.config()).await {
            Ok(config) => config?,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        let namespace = config.default_namespace.clone();
        let address = config.cluster_url.to_string();
        let endpoint = Endpoint::of(&config);
        let client = if config.proxy_url.is_some() {
            ClientBuilder::try_from(config)?.build()
        } else {
            direct(&config)?
        };
        let timeout = self
            .request_timeout
            .filter(|limit| !limit.is_zero())
            .unwrap_or(REQUEST_TIMEOUT);
        Ok(Connection {
            server: ApiServer::new(client, address.trim_end_matches('/'), timeout)
                .with_credential(credential)
                .with_proxy(proxy),
            namespace,
            endpoint,
        })
    }

    /// Reads what the kubeconfig names; nothing where there is none.
    pub fn names(&self) -> Result<KubeconfigNames, ConnectionError> {
        let kubeconfig = kubeconfig::read(self.kubeconfig.as_deref())?.unwrap_or_default();
        Ok(KubeconfigNames {
            contexts: kubeconfig.contexts.into_iter().map(|named| named.name).collect(),
            clusters: kubeconfig.clusters.into_iter().map(|named| named.name).collect(),
            users: kubeconfig
                .auth_infos
                .into_iter()
                .map(|named| named.name)
                .collect(),
        })
    }

    fn config(&self) -> Result<(Config, Option<Proxy>, Option<Credential>), ConnectionError> {
        let kubeconfig = kubeconfig::read(self.kubeconfig.as_deref())?;
        let (mut config, proxy) = match kubeconfig.filter(|it| !kubeconfig::is_empty(it)) {
            Some(kubeconfig) => {
                let names = Names {
                    context: given(self.context.as_ref()),
                    cluster: given(self.cluster.as_ref()),
                    user: given(self.user.as_ref()),
                    flags_hold_credentials: self.token.is_some()
                        || self.username.is_some()
                        || self.client_certificate.is_some(),
                };
                self.config_of(kubeconfig::choose(&kubeconfig, names)?)?
            }
            None if self.server.is_some() => self.config_of(Chosen::default())?,
            None => self.config_of_pod()?,
        };
        // Requests are repeated by `ApiServer`, which counts them.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        let credential = login::log_in(&mut config.auth_info, self.login)?;
        config.proxy_url = proxy.as_ref().map(|proxy| proxy.uri().clone());
        Ok((config, proxy, credential))
    }

    /// The proxy is told apart, since a configuration does not say where it came from.
    fn config_of(&self, mut chosen: Chosen) -> Result<(Config, Option<Proxy>), ConnectionError> {
        self.override_cluster(&mut chosen.cluster);
        self.override_user(&mut chosen.user)?;
        check_files(&chosen.user)?;
        let cluster = chosen.cluster;
        let server = cluster.server.as_deref().filter(|server| !server.is_empty());
        let server = parse_server(server.ok_or(ConnectionError::NoServer)?)?;
        let mut config = Config::new(server);
        let proxy = match given(cluster.proxy_url.as_ref()) {
            Some(address) => {
                let named_by = format!("proxy-url of the cluster {:?}", chosen.cluster_name);
                Some(Proxy::parse(address, &named_by)?)
            }
            None => Proxy::of_environment(&config.cluster_url)?,
        };
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
        config.root_cert = root_certificates(&cluster)?;
        if let Some(exec) = &mut chosen.user.exec
            && exec.provide_cluster_info
        {
            exec.cluster = Some(ExecAuthCluster::try_from(&cluster)?);
        }
        config.tls_server_name = cluster.tls_server_name.filter(|name| !name.is_empty());
        config.auth_info = chosen.user;
        if let Some(namespace) = chosen.namespace {
            config.default_namespace = namespace;
        }
        Ok((config, proxy))
    }

    /// The connection that every Pod is given.
    fn config_of_pod(&self) -> Result<(Config, Option<Proxy>), ConnectionError> {
        let mut config =
            Config::incluster().map_err(|_| ConnectionError::NoConfiguration(self.looked_at()))?;
        let mut cluster = Cluster::default();
        self.override_cluster(&mut cluster);
        self.override_user(&mut config.auth_info)?;
        check_files(&config.auth_info)?;
        if let Some(certificates) = root_certificates(&cluster)? {
            config.root_cert = Some(certificates);
            config.root_cert_file = None;
        }
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
        config.tls_server_name = cluster.tls_server_name;
        let proxy = Proxy::of_environment(&config.cluster_url)?;
        Ok((config, proxy))
    }

    /// The kubeconfigs that were looked for.
    fn looked_at(&self) -> Vec<PathBuf> {
        match &self.kubeconfig {
            Some(path) if !path.as_os_str().is_empty() => vec![path.clone()],
            _ => kubeconfig::default_paths(),
        }
    }

    fn override_cluster(&self, cluster: &mut Cluster) {
        if let Some(server) = given(self.server.as_ref()) {
            cluster.server = Some(server.to_owned());
        }
        if let Some(path) = &self.certificate_authority {
            cluster.certificate_authority_data = None;
            cluster.certificate_authority = Some(path.display().to_string());
        }
        if self.certificates == Certificates::Unverified {
            cluster.insecure_skip_tls_verify = Some(true);
        }
        if let Some(name) = given(self.tls_server_name.as_ref()) {
            cluster.tls_server_name = Some(name.to_owned());
        }
    }

    /// A token or a password given by flag replaces whatever way of logging in the
    /// kubeconfig has, apart from certificates.
    fn override_user(&self, user: &mut AuthInfo) -> Result<(), ConnectionError> {
        if self.token.is_some() || self.username.is_some() {
            user.exec = None;
            user.auth_provider = None;
            user.token_file = None;
            user.username.clone_from(&self.username);
            user.password = self.password.clone().map(Into::into);
            user.token = self.token.clone().map(Into::into);
        }
        if user.username.is_some() && user.password.is_none() {
            user.password = Some(String::new().into());
        }
        if let Some(path) = &self.client_certificate {
            user.client_certificate_data = None;
            user.client_certificate = Some(path.display().to_string());
        }
        if let Some(path) = &self.client_key {
            user.client_key_data = None;
            user.client_key = Some(path.display().to_string());
        }
        if let Some(name) = &self.impersonate {
            user.impersonate = Some(name.clone());
        }
        if let Some(uid) = &self.impersonate_uid {
            user.impersonate_uid = Some(uid.clone());
        }
        if !self.impersonate_groups.is_empty() {
            user.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        let is_somebody = user.impersonate.as_ref().is_some_and(|name| !name.is_empty());
        let has_more = user.impersonate_uid.as_ref().is_some_and(|uid| !uid.is_empty())
            || user
                .impersonate_groups
                .as_ref()
                .is_some_and(|groups| !groups.is_empty())
            || user
                .impersonate_user_extra
                .as_ref()
                .is_some_and(|extra| !extra.is_empty());
        if has_more && !is_somebody {
            return Err(ConnectionError::ImpersonatedNobody);
        }
        Ok(())
    }
}

/// A client without a proxy in between, as kube makes it, but one that sends at once.
/// kube leaves it to the system to gather small segments (Nagle's algorithm), which holds
/// the end of each larger manifest back until the server has acknowledged its beginning,
/// and a server may take 40 ms for that.
fn direct(config: &Config) -> Result<Client, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    let client: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// An empty text says nothing, in kubeconfigs as in flags.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// The certificates of the authority, DER; `None` where those of the system are meant.
fn root_certificates(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>, ConnectionError> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let (place, read) = match (
        given(cluster.certificate_authority_data.as_ref()),
        given(cluster.certificate_authority.as_ref()),
    ) {
        (Some(data), _) => (
            "certificate-authority-data",
            STANDARD.decode(data).map_err(|error| error.to_string()),
        ),
        (None, Some(path)) => (path, std::fs::read(path).map_err(|error| error.to_string())),
        (None, None) => return Ok(None),
    };
    let invalid = |reason: String| ConnectionError::CertificateAuthority(place.into(), reason);
    let certificates: Vec<Vec<u8>> = pem::parse_many(read.map_err(invalid)?)
        .map_err(|error| invalid(error.to_string()))?
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(pem::Pem::into_contents)
        .collect();
    if certificates.is_empty() {
        return Err(invalid("it holds no certificate".to_owned()));
    }
    Ok(Some(certificates))
}

/// Whether the files can be opened that kube will read; its own error names neither file nor flag.
fn check_files(user: &AuthInfo) -> Result<(), ConnectionError> {
    let certificate = user
        .client_certificate
        .as_ref()
        .filter(|_| user.client_certificate_data.is_none());
    let key = user
        .client_key
        .as_ref()
        .filter(|_| user.client_key_data.is_none());
    let certificate = certificate.map(|path| ("client certificate", path));
    let key = key.map(|path| ("client key", path));
    for (what, path) in certificate.into_iter().chain(key) {
        std::fs::File::open(path).map_err(|error| ConnectionError::UnreadableFile {
            what,
            path: path.into(),
            error,
        })?;
    }
    Ok(())
}

fn at(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() {
        String::new()
    } else {
        format!(" at {}", paths.join(" or "))
    }
}

fn position(line_and_column: Option<(u64, u64)>) -> String {
    line_and_column.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}

impl Endpoint {
    fn of(config: &Config) -> Self {
        let url = &config.cluster_url;
        let authority = url.authority().map_or("", |authority| authority.as_str());
        // The address may hold a password.
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let scheme = url.scheme_str().unwrap_or("https");
        Self {
            address: format!("{scheme}://{host}{}", url.path().trim_end_matches('/')),
            authorities: config.root_cert.clone().unwrap_or_default(),
        }
    }
}

fn parse_server(server: &str) -> Result<Uri, ConnectionError> {
    let invalid = || ConnectionError::InvalidServer(server.to_owned());
    let with_scheme = if server.contains("://") {
        server.to_owned()
    } else {
        format!("https://{server}")
    };
    let uri: Uri = with_scheme.parse().map_err(|_| invalid())?;
    uri.authority().is_some().then_some(uri).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_connection_leads_holds_no_password() {
        let address = |server: &str| {
            let config = Config::new(parse_server(server).expect("an address"));
            Endpoint::of(&config).address
        };
        assert_eq!(
            address("https://me:hush@example.com:6443/"),
            "https://example.com:6443"
        );
        assert_eq!(address("example.com/k8s/"), "https://example.com/k8s");
    }

    #[test]
    fn what_is_impersonated_belongs_to_somebody() {
        let groups = ConnectionOptions {
            impersonate_groups: vec!["admins".to_owned()],
            ..ConnectionOptions::default()
        };
        let uid = ConnectionOptions {
            impersonate_uid: Some("1".to_owned()),
            ..ConnectionOptions::default()
        };
        for options in [groups, uid] {
            let nobody = options.override_user(&mut AuthInfo::default());
            assert!(nobody.expect_err("nobody").is_usage());
            let mut of_kubeconfig = AuthInfo {
                impersonate: Some("me".to_owned()),
                ..AuthInfo::default()
            };
            options.override_user(&mut of_kubeconfig).expect("somebody");
        }
    }

    #[test]
    fn credentials_given_by_flag_replace_those_of_the_kubeconfig() {
        let of_kubeconfig = || AuthInfo {
            token: Some("t".to_owned().into()),
            token_file: Some("f".to_owned()),
            client_certificate: Some("c".to_owned()),
            ..AuthInfo::default()
        };
        let options = ConnectionOptions {
            username: Some("me".to_owned()),
            ..ConnectionOptions::default()
        };
        let mut user = of_kubeconfig();
        options.override_user(&mut user).expect("a user");
        assert!(user.token.is_none() && user.token_file.is_none() && user.password.is_some());
        assert_eq!(user.client_certificate.as_deref(), Some("c"));
        let mut user = of_kubeconfig();
        ConnectionOptions::default()
            .override_user(&mut user)
            .expect("a user");
        assert!(user.token.is_some() && user.username.is_none());
    }
}
