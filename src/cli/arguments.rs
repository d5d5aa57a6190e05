//! Arguments of several commands, with the same meaning in each.

use clap::{Args, ValueHint};

use super::help::{ARGUMENTS, RUNNING, WAITING};
use crate::model::write_settings::DryRun;

/// The set.
#[derive(Debug, Args)]
pub struct SetArgument {
    /// Secret NAME, or RESOURCE[.VERSION][.GROUP]/NAME
    #[arg(value_name = "SET", help_heading = ARGUMENTS, display_order = 0, required_unless_present = "applyset")]
    pub set: Option<String>,
    /// The same as SET, as kubectl spells it
    #[arg(long, value_name = "SET", help_heading = ARGUMENTS, display_order = 1, conflicts_with = "set")]
    pub applyset: Option<String>,
}

/// The sources of manifests. Commands choose the heading, and whether manifests are required.
#[derive(Debug, Args)]
pub struct ManifestFlags {
    /// File, directory, URL or - for stdin; repeatable
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<String>,
    /// Process directories recursively
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Kustomization directory, instead of -f
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["filename", "recursive"])]
    pub kustomize: Option<String>,
}

/// The value that `--wait` without a value gets: wait as long as `--timeout` allows, else
/// `DEFAULT_WAIT` (in `settings`).
pub const WAIT_WITHOUT_VALUE: &str = "true";

/// The value that `--exclusive` without a value gets: do not wait for other runs.
pub(super) const EXCLUSIVE_WITHOUT_VALUE: &str = "0";

/// The time limits.
#[derive(Debug, Args)]
pub struct WaitFlags {
    /// Wait until ready/gone (default 5m; 0: no limit)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = WAIT_WITHOUT_VALUE, value_name = "DURATION", help_heading = WAITING)]
    pub wait: Option<String>,
    /// Time limit for the whole run, such as 10m
    #[arg(long, value_name = "DURATION", help_heading = WAITING)]
    pub timeout: Option<String>,
}

/// The flag for Pods that do not become ready.
#[derive(Debug, Args)]
pub struct WaitFailuresFlag {
    /// Pods fail after N restarts (default 5; 0: never)
    #[arg(long, requires = "wait", value_name = "N", help_heading = WAITING, allow_negative_numbers = true)]
    pub wait_failures: Option<String>,
}

/// The flags of commands that write.
#[derive(Debug, Args)]
pub struct WriteFlags {
    /// Write nothing; client without MODE, or server
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", help_heading = RUNNING, default_value = "none", default_missing_value = "client")]
    pub dry_run: DryRun,
    /// Refuse, or wait, while another run is under way
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "TIME", help_heading = RUNNING, default_missing_value = EXCLUSIVE_WITHOUT_VALUE)]
    pub exclusive: Option<String>,
}
