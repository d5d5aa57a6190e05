//! The flags of `apply` and `diff`, which share those that change the plan.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, ValueHint};

use super::arguments::{DryRunFlag, ManifestFlags, SetArgument, WaitFlags};

/// `apply`
#[derive(Debug, Args)]
#[command(
    mut_arg("set", |set| set.required_unless_present("plan")),
    mut_arg("filename", |filename| filename.required(false).required_unless_present("plan"))
)]
pub struct Apply {
    /// Do exactly what `diff --out FILE` saved, or nothing; the file names its set
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = [
            "set", "applyset", "filename", "recursive", "kustomize", "namespace", "validate", "prune", "allow_prune_all", "max_prune",
            "allow_data_loss", "apply_unchanged", "force_conflicts", "take_ownership", "only_new_or_owned", "take_over_set", "field_manager", "tooling",
        ]
    )]
    pub plan: Option<PathBuf>,
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestFlags,
    /// The flags that change the plan.
    #[command(flatten)]
    pub planning: PlanningFlags,
    /// The dry-run mode.
    #[command(flatten)]
    pub dry_run: DryRunFlag,
    /// Go on without asking whether to take over
    #[arg(short, long)]
    pub yes: bool,
    /// The time limits.
    #[command(flatten)]
    pub waiting: WaitFlags,
}

/// `diff`
#[derive(Debug, Args)]
pub struct Diff {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten)]
    pub manifests: ManifestFlags,
    /// The flags that change the plan.
    #[command(flatten)]
    pub planning: PlanningFlags,
    /// Save the plan for `apply --plan FILE`, which does exactly that or nothing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// The flags that change the plan of a run.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
pub struct PlanningFlags {
    /// Delete members that left the manifests
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_name = "true|false"
    )]
    pub prune: bool,
    /// Let a run without any manifest prune everything
    #[arg(long)]
    pub allow_prune_all: bool,
    /// Refuse to prune more objects than this
    #[arg(long, value_name = "N")]
    pub max_prune: Option<usize>,
    /// Prune volumes, and namespaces and kinds with what others put into them
    #[arg(long)]
    pub allow_data_loss: bool,
    /// Send members that are unchanged, too
    #[arg(long)]
    pub apply_unchanged: bool,
    /// Take fields that other field managers own
    #[arg(long)]
    pub force_conflicts: bool,
    /// Take objects of the manifests that belong to another set
    #[arg(long)]
    pub take_ownership: bool,
    /// Refuse to take in objects that exist and are in no set
    #[arg(long)]
    pub only_new_or_owned: bool,
    /// Take over a set that another tool manages, or an object that is no parent yet
    #[arg(long)]
    pub take_over_set: bool,
    /// Field manager that owns the members' fields [default: applyset, or the tool of --tooling]
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// Keep the set another tool's, so that both can operate it: kubectl/vX.Y.Z
    #[arg(long, value_name = "TOOL/VERSION")]
    pub tooling: Option<String>,
    /// Field validation that the server is asked for; unknown fields of server-side apply
    /// are refused with each
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE", default_value = "strict", default_missing_value = "strict")]
    pub validate: ValidateMode,
    /// Accepted because kubectl has it; apply is always server-side
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub server_side: Option<bool>,
}

/// `--validate`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ValidateMode {
    /// Refuse the object.
    #[value(alias = "true")]
    Strict,
    /// Warn.
    Warn,
    /// Nothing.
    #[value(alias = "false")]
    Ignore,
}
