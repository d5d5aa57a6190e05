//! From kubeconfig and flags to a connection: whom to talk to, and as whom.
//!
//! What is said over the connection is the business of `apiserver`.

#![expect(clippy::disallowed_types, reason = "clients are made here")]

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::config::{ExecInteractiveMode, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

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
    /// Whether somebody can be asked to log in.
    pub login: Login,
}

/// Whether a credentials plugin may ask whoever sits at the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Login {
    /// As the kubeconfig says.
    #[default]
    Attended,
    /// Never: nobody expects a question now.
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
    #[error("there is no kubeconfig, and this is not a Pod of a cluster")]
    NoConfiguration,
    /// Groups are impersonated, and nobody who would be in them.
    #[error("--as-group impersonates a member of groups, but --as names no user")]
    GroupsWithoutUser,
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
            Self::UnparsableKubeconfig { path, .. } => {
                format!(
                    "`kubectl config view --kubeconfig {}` reads the same file",
                    path.display()
                )
            }
            Self::UnreadableKubeconfig { .. } => "check --kubeconfig and KUBECONFIG".to_owned(),
            Self::GroupsWithoutUser => "add --as USER".to_owned(),
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
            server: ApiServer::new(client, address.trim_end_matches('/'), timeout),
            namespace,
        })
    }

    /// Reads what the kubeconfig names; nothing where there is none.
    pub fn names(&self) -> Result<KubeconfigNames, ConnectionError> {
        let kubeconfig = self.kubeconfig()?.unwrap_or_default();
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

    async fn config(&self) -> Result<Config, ConnectionError> {
        let mut config = match self.kubeconfig()? {
            Some(mut kubeconfig) => {
                self.override_user(&mut kubeconfig);
                self.override_login(&mut kubeconfig);
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

    /// The file that the flag names, else those of `KUBECONFIG`, else that of the home
    /// directory; `None` where none of the latter is there.
    fn kubeconfig(&self) -> Result<Option<Kubeconfig>, ConnectionError> {
        match &self.kubeconfig {
            Some(path) if !path.as_os_str().is_empty() => read_kubeconfig(path).map(Some),
            _ => {
                let variable = std::env::var_os("KUBECONFIG");
                merged_kubeconfig(&kubeconfig_paths(variable.as_deref(), std::env::home_dir()))
            }
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

    fn override_login(&self, kubeconfig: &mut Kubeconfig) {
        if self.login == Login::Attended {
            return;
        }
        let users = kubeconfig
            .auth_infos
            .iter_mut()
            .filter_map(|named| named.auth_info.as_mut());
        for plugin in users.filter_map(|user| user.exec.as_mut()) {
            plugin.interactive_mode = Some(ExecInteractiveMode::Never);
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
        if auth.impersonate.is_none()
            && auth
                .impersonate_groups
                .as_ref()
                .is_some_and(|groups| !groups.is_empty())
        {
            return Err(ConnectionError::GroupsWithoutUser);
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

/// Where kubeconfigs may be: an empty variable counts as unset, and empty paths in it are
/// passed over (client-go, `NewDefaultClientConfigLoadingRules`).
fn kubeconfig_paths(variable: Option<&OsStr>, home: Option<PathBuf>) -> Vec<PathBuf> {
    match variable {
        Some(list) if !list.is_empty() => std::env::split_paths(list)
            .filter(|path| !path.as_os_str().is_empty())
            .collect(),
        _ => home
            .map(|home| home.join(".kube").join("config"))
            .into_iter()
            .collect(),
    }
}

/// Merges the files that are there, the first to say a thing prevailing; `None` where
/// none is (client-go, `ClientConfigLoadingRules.Load`).
fn merged_kubeconfig(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, ConnectionError> {
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        let next = match read_kubeconfig(path) {
            Err(ConnectionError::UnreadableKubeconfig { error, .. })
                if error.kind() == ErrorKind::NotFound =>
            {
                continue;
            }
            read => read?,
        };
        merged = Some(match merged {
            Some(merged) => merged.merge(next)?,
            None => next,
        });
    }
    Ok(merged)
}

/// Reads one file. The parser's own message shows the lines around the fault, which hold
/// tokens and keys, and often the faulty value; so nothing but the place is taken from it.
fn read_kubeconfig(path: &Path) -> Result<Kubeconfig, ConnectionError> {
    let path = path.to_owned();
    let mut kubeconfig = Kubeconfig::read_from(&path).map_err(|error| match error {
        KubeconfigError::ReadConfig(error, _) => ConnectionError::UnreadableKubeconfig { path, error },
        KubeconfigError::Parse(error) => ConnectionError::UnparsableKubeconfig {
            path,
            line_and_column: error
                .location()
                .map(|location| (location.line(), location.column())),
        },
        error => ConnectionError::Kubeconfig(error),
    })?;
    // kubectl writes `current-context: ""`, which says nothing; merging would keep it.
    kubeconfig.current_context = kubeconfig.current_context.filter(|context| !context.is_empty());
    Ok(kubeconfig)
}

fn position(line_and_column: Option<(u64, u64)>) -> String {
    line_and_column.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(name: &str, current_context: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {current_context:?}\n\
             contexts: [{{name: {name}, context: {{cluster: {name}}}}}]\n"
        )
    }

    #[test]
    fn kubeconfigs_are_looked_for_where_kubectl_looks() {
        let home = || Some(PathBuf::from("/home/me"));
        let at_home = vec![PathBuf::from("/home/me/.kube/config")];
        assert_eq!(kubeconfig_paths(None, home()), at_home);
        assert_eq!(kubeconfig_paths(Some(OsStr::new("")), home()), at_home);
        assert_eq!(kubeconfig_paths(None, None), Vec::<PathBuf>::new());
        let list = std::env::join_paths(["/a", "", "b"]).expect("paths without separators");
        let paths = ["/a", "b"].map(PathBuf::from);
        assert_eq!(kubeconfig_paths(Some(&list), home()), paths);
    }

    #[test]
    fn files_that_are_not_there_are_left_out_and_the_others_merged() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let missing = directory.path().join("missing");
        let silent = file("silent", &kubeconfig("one", ""));
        let telling = file("telling", &kubeconfig("two", "two"));

        let merged = merged_kubeconfig(&[missing.clone(), silent, missing.clone(), telling]);
        let merged = merged.expect("files that can be read").expect("files");
        let contexts: Vec<&str> = merged.contexts.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(contexts, ["one", "two"]);
        assert_eq!(merged.current_context.as_deref(), Some("two"));

        let none = merged_kubeconfig(std::slice::from_ref(&missing));
        assert!(none.expect("nothing to read").is_none());
        let named = ConnectionOptions {
            kubeconfig: Some(missing),
            ..ConnectionOptions::default()
        };
        let error = named.kubeconfig().expect_err("a named file has to be there");
        assert!(error.is_usage(), "{error}");
    }

    #[test]
    fn what_a_kubeconfig_holds_is_not_shown() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("config");
        let secret = "SUPERSECRETTOKEN";
        let broken = [
            (
                4,
                format!("users:\n- name: me\n  user:\n    token {secret}\n    \tx: y\n"),
            ),
            (3, format!("users:\n- name: me\n  user: {secret}\n")),
            (
                4,
                format!("users:\n- name: me\n  user:\n    token: [{secret}]\n    \"client-key\n"),
            ),
            (1, secret.to_owned()),
        ];
        for (line, text) in broken {
            std::fs::write(&path, &text).expect("a file");
            let error = read_kubeconfig(&path).expect_err(&text);
            let told = format!("{error} {}", error.hint());
            assert!(!told.contains("SECRET"), "{told}");
            let ConnectionError::UnparsableKubeconfig { line_and_column, .. } = error else {
                panic!("{told}");
            };
            assert_eq!(line_and_column.map(|(line, _)| line), Some(line), "{text}");
        }
    }

    #[test]
    fn groups_are_impersonated_by_somebody() {
        let groups = ConnectionOptions {
            impersonate_groups: vec!["admins".to_owned()],
            ..ConnectionOptions::default()
        };
        let config = || Config::new(http::Uri::from_static("https://127.0.0.1:1"));
        let error = groups.override_config(&mut config()).expect_err("nobody");
        assert!(error.is_usage(), "{error}");
        let mut of_kubeconfig = config();
        of_kubeconfig.auth_info.impersonate = Some("me".to_owned());
        groups.override_config(&mut of_kubeconfig).expect("somebody");
    }
}
