//! Arguments of several commands, with the same meaning in each.

use clap::{Args, ValueEnum, ValueHint};

/// The set.
#[derive(Debug, Args)]
pub struct SetArgument {
    /// The set's parent as [RESOURCE[.VERSION][.GROUP]/]NAME; a bare NAME is a Secret
    #[arg(value_name = "SET", required_unless_present = "applyset")]
    pub set: Option<String>,
    /// The same as SET, written as kubectl writes it
    #[arg(long, value_name = "SET", conflicts_with = "set")]
    pub applyset: Option<String>,
}

/// The sources of manifests.
#[derive(Debug, Args)]
pub struct ManifestFlags {
    /// File, directory or address of manifests, - for standard input; may be repeated
    #[arg(short, long, required_unless_present = "kustomize", value_name = "FILE|DIR|URL|-", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<String>,
    /// Look into directories of directories, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Directory of a kustomization, in place of -f
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["filename", "recursive"])]
    pub kustomize: Option<String>,
}

/// The time limits.
#[derive(Debug, Args)]
pub struct WaitFlags {
    /// Wait until what was applied is ready and what was deleted is gone, for 5m unless told
    /// otherwise; 0 waits without limit
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "5m", value_name = "DURATION")]
    pub wait: Option<String>,
    /// Stop when this time is over; requests under way are waited for 5s longer
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
}

/// The dry-run mode.
#[derive(Debug, Args)]
pub struct DryRunFlag {
    /// Write nothing: `client` tells what the plan is, `server` lets the server check it
    #[arg(id = "dry_run", long = "dry-run", num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "none", default_missing_value = "client")]
    pub mode: DryRunMode,
}

/// `--dry-run`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRunMode {
    /// Write.
    None,
    /// Tell from the plan.
    Client,
    /// Ask the server.
    Server,
}
