//! The settings of a connection. Most fields are flags of the command line; `settings::connection` fills those that clap
//! skips.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

/// Settings of the connection. A setting that is not given is left to the kubeconfig.
#[derive(Debug, Clone, Default, Args)]
pub struct ConnectionOptions {
    /// Kubeconfig (default ~/.kube/config)
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,
    /// Kuberc file with credential plugin policy
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kuberc: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Cluster of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,
    /// User of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,
    /// Group to impersonate; repeatable
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub impersonate_groups: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", global = true, value_name = "UID")]
    pub impersonate_uid: Option<String>,
    /// URL of the API server
    #[arg(short, long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// Bearer token for authentication
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// User name for basic authentication
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "token")]
    pub username: Option<String>,
    /// Password for basic authentication
    #[arg(long, global = true, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// CA certificate of the API server
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub certificate_authority: Option<PathBuf>,
    /// Client certificate for authentication
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_certificate: Option<PathBuf>,
    /// Private key of the client certificate
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_key: Option<PathBuf>,
    /// Server name to expect in the certificate
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Do not verify TLS certificates (insecure)
    #[arg(long, global = true)]
    pub insecure_skip_tls_verify: bool,
    /// `--request-timeout`; parsed in `settings::connection`.
    #[arg(skip)]
    pub request_timeout: Option<Duration>,
    /// Not a flag: the command decides it.
    #[arg(skip)]
    pub plugin_prompts: PluginPrompts,
}

/// Whether credentials plugins may prompt the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PluginPrompts {
    /// As the kubeconfig says.
    #[default]
    AsKubeconfig,
    /// Plugins may not prompt, and print nothing, because the user does not expect it now (shell completion, for
    /// example).
    Forbidden,
}
