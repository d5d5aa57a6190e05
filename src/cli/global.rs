//! The flags that all commands share: output and connection. A flag that kubectl has, too, has
//! kubectl's name.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, ValueHint};

use super::help::{CONNECTION, OUTPUT, RUNNING};
use crate::cluster::connection::ConnectionOptions;
use crate::report::Format;

/// Flags that all commands share.
#[derive(Debug, Args)]
pub struct GlobalFlags {
    /// json, yaml, kyaml, name; some: wide, markdown
    #[arg(short, long, global = true, help_heading = OUTPUT, value_name = "FORMAT")]
    pub output: Option<Format>,
    /// Print phases and reasons
    #[arg(
        short,
        long,
        alias = "v",
        global = true,
        help_heading = OUTPUT,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        action = ArgAction::Append,
        value_name = "N"
    )]
    pub verbose: Vec<u8>,
    /// Print only errors
    #[arg(short, long, global = true, help_heading = OUTPUT, conflicts_with = "verbose")]
    pub quiet: bool,
    /// auto (default), always or never
    #[arg(long, global = true, help_heading = OUTPUT, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Do not draw progress bars
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub no_progress: bool,
    /// Maximum concurrent requests (default 64)
    #[arg(long, global = true, help_heading = RUNNING, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Namespace of the set and of manifests
    #[arg(short, long, global = true, help_heading = CONNECTION, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// The connection to the cluster.
    #[command(flatten, next_help_heading = CONNECTION)]
    pub connection: ConnectionFlags,
}

impl GlobalFlags {
    /// Returns the sum of the levels: `-vv` is the same as kubectl's `-v=2`.
    pub fn verbosity(&self) -> u8 {
        self.verbose
            .iter()
            .fold(0, |sum, level| sum.saturating_add(*level))
    }
}

/// Flags of kubectl about the connection.
#[derive(Debug, Args)]
pub struct ConnectionFlags {
    /// The flags that need no reading.
    #[command(flatten)]
    pub options: ConnectionOptions,
    /// Time limit for one request (default 75s)
    #[arg(long, global = true, value_name = "DURATION")]
    pub request_timeout: Option<String>,
    /// Accepted for compatibility with kubectl; responses are never compressed
    #[arg(long, global = true, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub disable_compression: Option<bool>,
    /// Accepted for compatibility with kubectl; nothing is cached between runs
    #[arg(long, global = true, hide = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cache_dir: Option<PathBuf>,
    /// Accepted for compatibility with kubectl; discovery is always read
    #[arg(long, global = true, hide = true)]
    pub match_server_version: bool,
    /// Accepted for compatibility with kubectl; -v applies to everything
    #[arg(long, global = true, hide = true, value_name = "LEVELS")]
    pub vmodule: Option<String>,
    /// Accepted for compatibility with kubectl; no profile is written
    #[arg(long, global = true, hide = true, value_name = "KIND")]
    pub profile: Option<String>,
    /// Accepted for compatibility with kubectl; no profile is written
    #[arg(long, global = true, hide = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub profile_output: Option<PathBuf>,
    /// Accepted for compatibility with kubectl; messages are not buffered
    #[arg(long, global = true, hide = true, value_name = "DURATION")]
    pub log_flush_frequency: Option<String>,
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
