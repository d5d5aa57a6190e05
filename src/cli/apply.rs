//! The flags of `apply` and `diff`, which share the flags that change the plan.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, ValueHint};

use super::arguments::{ManifestFlags, SetArgument, WaitFailuresFlag, WaitFlags, WriteFlags};
use super::help::{MANIFESTS, OUTPUT, OWNERSHIP, PRUNING, RUNNING, WAITING};
use crate::model::write_settings::{Conflicts, Hooks, Validation};
use crate::plan::PruneWhen;
use crate::report::DifferenceKind;

/// The arguments that cannot be used with `--plan`, because the saved plan was made with their values.
#[rustfmt::skip]
const SAVED_WITH_PLAN: [&str; 21] = [
    "set", "applyset", "filename", "recursive", "kustomize", "namespace", "validate", "prune", "prune_when", "allow_prune_all", "max_prune",
    "apply_unchanged", "force_conflicts", "take_ownership", "only_new_or_owned", "take_over_set", "recreate", "field_manager", "tooling", "hooks", "ignore",
];

/// `apply`
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
#[command(
    mut_arg("set", |set| set.required_unless_present("plan")),
    mut_arg("filename", |filename| filename.required_unless_present_any(["kustomize", "plan"]))
)]
pub struct Apply {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten, next_help_heading = MANIFESTS)]
    pub manifests: ManifestFlags,
    /// Apply what `diff --out` saved
    #[arg(
        long,
        value_name = "FILE",
        help_heading = MANIFESTS,
        value_hint = ValueHint::FilePath,
        conflicts_with_all = SAVED_WITH_PLAN,
    )]
    pub plan: Option<PathBuf>,
    /// The flags that change the plan.
    #[command(flatten)]
    pub planning: PlanningFlags,
    /// The time limits.
    #[command(flatten)]
    pub waiting: WaitFlags,
    /// The failures of Pods.
    #[command(flatten)]
    pub failures: WaitFailuresFlag,
    /// Wait for Jobs to complete, not only to start
    #[arg(long, requires = "wait", help_heading = WAITING)]
    pub wait_for_jobs: bool,
    /// Status rules (Flux's healthCheckExprs), or none
    #[arg(long, value_name = "FILE", help_heading = WAITING, value_hint = ValueHint::FilePath)]
    pub wait_rules: Option<String>,
    /// The dry-run mode, and the treatment of other runs.
    #[command(flatten)]
    pub writes: WriteFlags,
    /// Show the plan and ask before any change
    #[arg(long, help_heading = RUNNING, conflicts_with = "yes")]
    pub confirm: bool,
    /// Confirm --take-over-set, but no loss of data
    #[arg(short, long, help_heading = RUNNING)]
    pub yes: bool,
    /// Text for the history, if anything changes
    #[arg(long, value_name = "TEXT", help_heading = RUNNING)]
    pub message: Option<String>,
    /// Mark the set as expiring after DURATION (e.g. 72h)
    #[arg(long, value_name = "DURATION", help_heading = RUNNING)]
    pub expires: Option<String>,
    /// Save the set's manifests first, to undo the run
    #[arg(long, value_name = "FILE", help_heading = RUNNING, value_hint = ValueHint::FilePath)]
    pub undo_out: Option<PathBuf>,
    /// List unchanged objects at a terminal, too
    #[arg(long, help_heading = OUTPUT)]
    pub show_unchanged: bool,
    /// The limit of Markdown.
    #[command(flatten)]
    pub markdown: MarkdownFlags,
}

/// The flags of `-o markdown`.
#[derive(Debug, Args)]
pub struct MarkdownFlags {
    /// Cut -o markdown to N bytes (default 64512)
    #[arg(long, value_name = "N", help_heading = OUTPUT, requires = "output", value_parser = clap::value_parser!(u32).range(1024..))]
    pub max_bytes: Option<u32>,
    /// Also write a page for a comment (64512 bytes)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, requires = "output", value_hint = ValueHint::FilePath)]
    pub brief_out: Option<PathBuf>,
}

/// The flags that change the plan of a run.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
pub struct PlanningFlags {
    /// Validation: strict (default), warn or ignore
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        value_name = "MODE",
        help_heading = MANIFESTS,
        default_value = "strict",
        default_missing_value = "strict"
    )]
    pub validate: Validation,
    /// Prune objects removed from the manifests
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_name = "BOOL",
        help_heading = PRUNING
    )]
    pub prune: bool,
    /// Prune once all is applied (default), or ready
    #[arg(long, value_name = "WHEN", help_heading = PRUNING, default_value = "applied")]
    pub prune_when: PruneWhen,
    /// Refuse to prune more than N objects
    #[arg(long, value_name = "N", help_heading = PRUNING)]
    pub max_prune: Option<usize>,
    /// Allow pruning all members
    #[arg(long, help_heading = PRUNING)]
    pub allow_prune_all: bool,
    /// Allow pruning volumes, non-empty namespaces and CRDs
    #[arg(long, help_heading = PRUNING)]
    pub allow_data_loss: bool,
    /// Take fields of all managers, or only NAME,...
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "NAME", help_heading = OWNERSHIP, default_missing_value = "true")]
    pub force_conflicts: Vec<Conflicts>,
    /// Leave fields to others, as Flux's spec.ignore
    #[arg(long, value_name = "FILE", help_heading = OWNERSHIP, value_hint = ValueHint::FilePath)]
    pub ignore: Vec<String>,
    /// Take objects that belong to another set
    #[arg(long, help_heading = OWNERSHIP)]
    pub take_ownership: bool,
    /// Take over a tool's set, or an object as parent
    #[arg(long, help_heading = OWNERSHIP)]
    pub take_over_set: bool,
    /// Recreate if immutable: never, marked, KIND
    #[arg(long, value_name = "WHICH,...", help_heading = OWNERSHIP, value_delimiter = ',', default_value = "marked")]
    pub recreate: Vec<String>,
    /// Field manager of members (default applyset)
    #[arg(long, value_name = "NAME", help_heading = OWNERSHIP)]
    pub field_manager: Option<String>,
    /// Keep the set operable by kubectl/vX.Y.Z
    #[arg(long, value_name = "VERSION", help_heading = OWNERSHIP)]
    pub tooling: Option<String>,
    /// Refuse objects that exist outside any set
    #[arg(long, help_heading = RUNNING)]
    pub only_new_or_owned: bool,
    /// Hooks: refuse (default), skip or apply
    #[arg(long, value_name = "MODE", help_heading = RUNNING, default_value = "refuse")]
    pub hooks: Hooks,
    /// Send unchanged members, too
    #[arg(long, help_heading = RUNNING)]
    pub apply_unchanged: bool,
    /// Accepted for compatibility with kubectl; apply is always server-side
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub server_side: Option<bool>,
}

/// The dry runs of `diff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffDryRun {
    /// The server predicts each object.
    Server,
    /// This program predicts each object, and sends only reads.
    Client,
}

/// `diff`
#[derive(Debug, Args)]
#[command(
    mut_arg("set", |set| set.required_unless_present("plan")),
    mut_arg("filename", |filename| filename.required_unless_present_any(["kustomize", "plan"]))
)]
pub struct Diff {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten, next_help_heading = MANIFESTS)]
    pub manifests: ManifestFlags,
    /// Show only what differs from these; repeatable
    #[arg(long, value_name = "FILE", help_heading = MANIFESTS, value_hint = ValueHint::AnyPath, conflicts_with_all = ["plan", "out"])]
    pub base: Vec<String>,
    /// Compare with what a saved plan applied
    #[arg(
        long,
        value_name = "FILE",
        help_heading = MANIFESTS,
        value_hint = ValueHint::FilePath,
        conflicts_with_all = SAVED_WITH_PLAN,
        conflicts_with_all = ["allow_data_loss", "out"],
    )]
    pub plan: Option<PathBuf>,
    /// The flags that change the plan.
    #[command(flatten)]
    pub planning: PlanningFlags,
    /// Who predicts the changes: server or client
    #[arg(long, value_name = "MODE", help_heading = RUNNING, default_value = "server")]
    pub dry_run: DiffDryRun,
    /// Save the plan for `apply --plan FILE`
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Exit 1 only for CHANGES (drift, change, prune)
    #[arg(long, value_name = "CHANGES", help_heading = OUTPUT, value_delimiter = ',')]
    pub exit_code_on: Vec<DifferenceKind>,
    /// Print the full text at a terminal, too
    #[arg(long, help_heading = OUTPUT)]
    pub full: bool,
    /// The limit of Markdown.
    #[command(flatten)]
    pub markdown: MarkdownFlags,
}
