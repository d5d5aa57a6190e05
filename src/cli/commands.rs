//! The commands, and the flags of those without a file of their own.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use clap_complete::Shell;

use super::adopt_move_disband::{Adopt, Disband, Move};
use super::apply::{Apply, Diff};
use super::arguments::{
    ManifestFlags, SetArgument, WAIT_WITHOUT_VALUE, WaitFailuresFlag, WaitFlags, WriteFlags,
};
use super::examples;
use super::help::{ARGUMENTS, CONNECTION, MANIFESTS, OUTPUT, OWNERSHIP, PRUNING, RUNNING, SUBJECTS, WAITING};
use crate::model::write_settings::Hooks;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply manifests, and prune objects removed from them
    #[command(
        after_help = examples::APPLY,
        override_usage = "kubectl applyset apply SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
                          kubectl applyset apply --plan FILE [flags]"
    )]
    Apply(Apply),
    /// Show what apply would change and prune; exit code 1 if anything
    #[command(
        after_help = examples::DIFF,
        override_usage = "kubectl applyset diff SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
                          kubectl applyset diff --plan FILE [flags]"
    )]
    Diff(Diff),
    /// List the sets of a namespace or of the cluster (alias: ls)
    #[command(
        alias = "ls",
        after_help = examples::LIST,
        override_usage = "kubectl applyset list [-n NAMESPACE | -A] [flags]"
    )]
    List(List),
    /// Show a set: parent, record, and status of members (alias: status)
    #[command(
        alias = "status",
        after_help = examples::VIEW,
        override_usage = "kubectl applyset view SET -n NAMESPACE [flags]"
    )]
    View(View),
    /// Show the last runs of a set, and those under way
    #[command(after_help = examples::HISTORY, override_usage = "kubectl applyset history SET -n NAMESPACE [flags]")]
    History(SetArgument),
    /// Print the manifests of a set, as they were last applied
    #[command(after_help = examples::EXPORT, override_usage = "kubectl applyset export SET -n NAMESPACE [flags]")]
    Export(Export),
    /// Delete the members of a set in reverse order, then its parent
    #[command(after_help = examples::DELETE, override_usage = "kubectl applyset delete SET -n NAMESPACE [flags]")]
    Delete(Delete),
    /// Forget a set, and keep its objects as they are
    #[command(after_help = examples::DISBAND, override_usage = "kubectl applyset disband SET -n NAMESPACE [flags]")]
    Disband(Disband),
    /// Take live objects into a set as they are
    #[command(
        after_help = examples::ADOPT,
        override_usage = "kubectl applyset adopt SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
                          kubectl applyset adopt SET -n NAMESPACE -l SELECTOR [-A] [flags]\n       \
                          kubectl applyset adopt SET -n NAMESPACE --from TOOL/NAME [flags]"
    )]
    Adopt(Adopt),
    /// Rename or split a set; its members stay as they are
    #[command(
        after_help = examples::MOVE,
        override_usage = "kubectl applyset move SET NEW -n NAMESPACE [-l LABELS | -f FILE] [flags]"
    )]
    Move(Move),
    /// Print the permissions that applying a set needs, as RBAC manifests
    #[command(
        after_help = examples::RBAC,
        override_usage = "kubectl applyset rbac SET -n NAMESPACE (-f FILE | -k DIR) [flags]"
    )]
    Rbac(Rbac),
    /// Find inconsistent sets, and repair their records
    #[command(
        after_help = examples::VERIFY,
        override_usage = "kubectl applyset verify [SET] [-n NAMESPACE | -A] [flags]"
    )]
    Verify(Verify),
    /// Print a shell completion script
    #[command(after_help = examples::COMPLETION, override_usage = "kubectl applyset completion SHELL")]
    Completion {
        /// bash, zsh, fish, elvish or powershell
        #[arg(value_name = "SHELL", help_heading = ARGUMENTS)]
        shell: Shell,
    },
    /// Print the version
    #[command(override_usage = "kubectl applyset version")]
    Version,
    /// Flags for the cluster, the user and TLS, which every command accepts
    #[command(hide = true, override_usage = "kubectl applyset COMMAND [flags]")]
    Connection,
    /// Write the manual pages into a directory
    #[command(
        name = "__manual",
        hide = true,
        override_usage = "kubectl applyset __manual DIRECTORY"
    )]
    Manual {
        /// An existing directory
        #[arg(value_hint = ValueHint::DirPath, help_heading = ARGUMENTS)]
        directory: PathBuf,
    },
}

/// `list`
#[derive(Debug, Args)]
pub struct List {
    /// List the sets of all namespaces
    #[arg(short = 'A', long, help_heading = CONNECTION)]
    pub all_namespaces: bool,
}

/// `view`
#[derive(Debug, Args)]
pub struct View {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// Wait until all are ready (default 5m; 0: no limit)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = WAIT_WITHOUT_VALUE, value_name = "DURATION", help_heading = WAITING)]
    pub wait: Option<String>,
    /// The failures of Pods.
    #[command(flatten)]
    pub failures: WaitFailuresFlag,
    /// Wait for Jobs to complete, not only to start
    #[arg(long, requires = "wait", help_heading = WAITING)]
    pub wait_for_jobs: bool,
    /// Status rules (Flux's healthCheckExprs), or none
    #[arg(long, value_name = "FILE", help_heading = WAITING, value_hint = ValueHint::FilePath)]
    pub wait_rules: Option<String>,
}

/// `export`
#[derive(Debug, Args)]
pub struct Export {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// Write each manifest to a file in this directory
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Field manager of members (default applyset)
    #[arg(long, value_name = "NAME", help_heading = OWNERSHIP)]
    pub field_manager: Option<String>,
}

/// `delete`
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
#[command(mut_arg("wait", |wait| wait.help("Wait until all are gone (default 5m; 0: no limit)")))]
pub struct Delete {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// Allow deleting volumes, non-empty namespaces and CRDs
    #[arg(long, help_heading = PRUNING)]
    pub allow_data_loss: bool,
    /// Delete a set that another tool manages
    #[arg(long, help_heading = OWNERSHIP)]
    pub take_over_set: bool,
    /// Field manager of members (default applyset)
    #[arg(long, value_name = "NAME", help_heading = OWNERSHIP)]
    pub field_manager: Option<String>,
    /// The time limits.
    #[command(flatten)]
    pub waiting: WaitFlags,
    /// The dry-run mode, and the treatment of other runs.
    #[command(flatten)]
    pub writes: WriteFlags,
    /// Confirm without a question, unless data is lost
    #[arg(short, long, help_heading = RUNNING)]
    pub yes: bool,
    /// Delete the set only if it has expired
    #[arg(long, help_heading = RUNNING)]
    pub expired: bool,
    /// Exit 0 if the set does not exist
    #[arg(long, help_heading = RUNNING)]
    pub ignore_not_found: bool,
}

/// `rbac`
#[derive(Debug, Args)]
#[command(mut_arg("filename", |filename| filename.required_unless_present("kustomize")))]
pub struct Rbac {
    /// The set.
    #[command(flatten)]
    pub set: SetArgument,
    /// The manifests.
    #[command(flatten, next_help_heading = MANIFESTS)]
    pub manifests: ManifestFlags,
    /// User who gets the permissions; repeatable
    // Has the name of a shared flag, which it replaces here: as in `kubectl create rolebinding`.
    #[arg(id = "user", long, value_name = "USER", help_heading = SUBJECTS)]
    pub users: Vec<String>,
    /// Group that gets the permissions; repeatable
    #[arg(id = "group", long, value_name = "GROUP", help_heading = SUBJECTS)]
    pub groups: Vec<String>,
    /// ServiceAccount; by default NAMESPACE:SET
    #[arg(id = "serviceaccount", long, value_name = "NS:NAME", help_heading = SUBJECTS)]
    pub service_accounts: Vec<String>,
    /// Recreate if immutable: never, marked, KIND
    #[arg(long, value_name = "WHICH,...", help_heading = OWNERSHIP, value_delimiter = ',', default_value = "marked")]
    pub recreate: Vec<String>,
    /// Grant only what `diff --dry-run=client` reads
    #[arg(long, help_heading = OWNERSHIP, conflicts_with = "recreate")]
    pub read_only: bool,
    /// Also grant what only the record or members name
    #[arg(long, help_heading = OWNERSHIP)]
    pub include_recorded: bool,
    /// Hooks: refuse (default), skip or apply
    #[arg(long, value_name = "MODE", help_heading = RUNNING, default_value = "refuse")]
    pub hooks: Hooks,
}

/// `verify`
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag; `settings` makes enums of them"
)]
pub struct Verify {
    /// One set (default: all sets of the namespace)
    #[arg(value_name = "SET", help_heading = ARGUMENTS, display_order = 0, conflicts_with = "all_namespaces")]
    pub set: Option<String>,
    /// The same as SET, as kubectl spells it
    #[arg(long, value_name = "SET", help_heading = ARGUMENTS, display_order = 1, conflicts_with_all = ["set", "all_namespaces"])]
    pub applyset: Option<String>,
    /// Field manager of members (default applyset)
    #[arg(long, value_name = "NAME", help_heading = OWNERSHIP)]
    pub field_manager: Option<String>,
    /// Check all sets, and find orphaned members
    #[arg(short = 'A', long, help_heading = CONNECTION)]
    pub all_namespaces: bool,
    /// Repair parents; for a SET, also end killed runs
    #[arg(long, help_heading = RUNNING)]
    pub fix: bool,
    /// With --fix, also add namespaces found by label
    #[arg(long, help_heading = RUNNING)]
    pub include_namespaces: bool,
    /// Do not ask before --fix writes
    #[arg(short, long, help_heading = RUNNING, requires = "fix")]
    pub yes: bool,
}
