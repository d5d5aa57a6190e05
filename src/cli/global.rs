//! The flags that all commands share: about the output, and about the connection. They have
//! kubectl's names, if it has the flag.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, ValueHint};

/// Flags that all commands share.
#[derive(Debug, Args)]
pub struct GlobalFlags {
    /// Namespace of the parent, and of manifests that name none
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Print a document or names instead of lines for people
    #[arg(short, long, global = true, value_name = "FORMAT")]
    pub output: Option<OutputFormat>,
    /// Tell more: the phases of the run, and why each member is sent
    #[arg(
        short,
        long,
        alias = "v",
        global = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        action = ArgAction::Append,
        value_name = "N"
    )]
    pub verbose: Vec<u8>,
    /// Tell only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Colour in messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Draw no progress bars
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// The most requests under way at once; it begins with 16 and heeds the server
    #[arg(long, global = true, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// The connection to the cluster.
    #[command(flatten, next_help_heading = "Connection")]
    pub connection: ConnectionFlags,
}

impl GlobalFlags {
    /// The sum of the levels: `-vv` is the same as kubectl's `-v=2`.
    pub fn verbosity(&self) -> u8 {
        self.verbose
            .iter()
            .fold(0, |sum, level| sum.saturating_add(*level))
    }
}

/// Flags of kubectl about the connection.
#[derive(Debug, Args)]
pub struct ConnectionFlags {
    /// Path of the kubeconfig file
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,
    /// Path of the kuberc file; only its policy for credential plugins is read
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kuberc: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Cluster of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,
    /// User of the kubeconfig to use
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub impersonate_groups: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", global = true, value_name = "UID")]
    pub impersonate_uid: Option<String>,
    /// Address of the API server
    #[arg(short, long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// Bearer token
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// User name for basic authentication, which only proxies of API servers take
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "token")]
    pub username: Option<String>,
    /// Password for basic authentication
    #[arg(long, global = true, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// File of the certificate authority
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub certificate_authority: Option<PathBuf>,
    /// File of the client certificate
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_certificate: Option<PathBuf>,
    /// File of the client certificate's key
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_key: Option<PathBuf>,
    /// Name to expect in the server's certificate
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Believe any server
    #[arg(long, global = true)]
    pub insecure_skip_tls_verify: bool,
    /// Limit of a single request, such as 30s or 2m; 0 is the default of 75s
    #[arg(long, global = true, value_name = "DURATION")]
    pub request_timeout: Option<String>,
    /// Accepted because kubectl has it; answers are never compressed
    #[arg(long, global = true, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub disable_compression: Option<bool>,
    /// Accepted because kubectl has it; nothing is kept between runs
    #[arg(long, global = true, hide = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cache_dir: Option<PathBuf>,
    /// Accepted because kubectl has it; what the server serves is asked in any case
    #[arg(long, global = true, hide = true)]
    pub match_server_version: bool,
    /// Accepted because kubectl has it; -v tells the same of all parts
    #[arg(long, global = true, hide = true, value_name = "LEVELS")]
    pub vmodule: Option<String>,
    /// Accepted because kubectl has it; no profile is written
    #[arg(long, global = true, hide = true, value_name = "KIND")]
    pub profile: Option<String>,
    /// Accepted because kubectl has it; no profile is written
    #[arg(long, global = true, hide = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub profile_output: Option<PathBuf>,
    /// Accepted because kubectl has it; messages are not held back
    #[arg(long, global = true, hide = true, value_name = "DURATION")]
    pub log_flush_frequency: Option<String>,
}

/// `--output`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// One document.
    Json,
    /// One document.
    Yaml,
    /// Names alone, a line each.
    Name,
    /// A table with more columns; of `list` and `view`.
    Wide,
}

/// `--color`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// At a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
